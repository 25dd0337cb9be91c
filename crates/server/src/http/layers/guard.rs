//! The layers of the metrics' own listener.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::request_id::RequestId;
use super::{answered, credentials, finished, framing, origin};
use crate::http::access::{Accepted, Role};
use crate::http::problem::{Fault, Problem};

/// Who may read the metrics.
#[derive(Debug, Clone)]
pub(in crate::http) struct Guard {
    pub(in crate::http) accepted: Accepted,
    /// Whether it listens on the loopback interface without tokens: then it accepts only host names of this machine.
    pub(in crate::http) local_only: bool,
    pub(in crate::http) is_tls: bool,
}

pub(in crate::http) async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
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
