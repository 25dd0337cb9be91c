//! The layers of the metrics' own listener.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::request_id::RequestId;
use super::{answered, credentials, finished, framing, origin};
use crate::access::{Accepted, Role};
use crate::problem::{Fault, Problem};

/// Who may read the metrics.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    pub(crate) accepted: Accepted,
    /// Whether it listens on the loopback interface without tokens: then it accepts only host names of this machine.
    pub(crate) local_only: bool,
    pub(crate) is_tls: bool,
}

pub(crate) async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    let answer = answered(async {
        guard.check(&request)?;
        Ok(next.run(request).await)
    });
    finished(answer.await, &id, false, guard.is_tls)
}

impl Guard {
    fn check(&self, request: &Request) -> Result<(), Problem> {
        framing::check(request.headers())?;
        origin::check(self.local_only, request.method(), request.headers())?;
        let caller = credentials::caller(&self.accepted, request)?;
        if caller.role.permits(Role::Read) {
            return Ok(());
        }
        Err(Fault::Forbidden.because(format!(
            "the {} {} has the role {}: metrics need {}",
            caller.credential,
            caller.name,
            caller.role,
            Role::Read
        )))
    }
}
