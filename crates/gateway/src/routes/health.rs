//! `/healthz` and `/readyz`, for supervisors and load balancers. They need no token and reveal only one word.

use axum::extract::State;

use crate::problem::{Fault, Problem};
use crate::server::Phase;
use crate::state::App;

/// Report that the process is alive.
#[utoipa::path(
    get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "The gateway answers", body = String))
)]
pub(super) async fn live() -> &'static str {
    "ok"
}

/// Report whether the gateway can serve requests.
///
/// 503 while ZooKeeper does not serve this gateway, and while the gateway is stopping.
#[utoipa::path(
    get, path = "/readyz", tag = "health", security(()),
    responses(
        (status = 200, description = "The gateway has a live session", body = String),
        (status = 503, description = "The gateway has no live session, or is stopping", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn ready(State(app): State<App>) -> Result<&'static str, Problem> {
    if *app.phase.borrow() > Phase::Serving {
        return Err(Fault::Unavailable.because("the gateway is stopping"));
    }
    if !app.client.is_connected() {
        return Err(Fault::Unavailable.because("ZooKeeper does not serve this gateway now"));
    }
    Ok("ready")
}
