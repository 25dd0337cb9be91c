//! `/healthz` and `/readyz`, for whoever restarts processes and for whoever sends requests to them. No token is needed,
//! and nothing but the two words is told.

use axum::extract::State;

use crate::http::problem::{Fault, Problem};
use crate::http::server::Phase;
use crate::http::state::App;

/// Tell that the process lives.
#[utoipa::path(
    get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "The gateway answers", body = String))
)]
pub(super) async fn live() -> &'static str {
    "ok"
}

/// Tell whether requests should be sent here.
///
/// 503 while ZooKeeper does not serve this gateway, and once it stops.
#[utoipa::path(
    get, path = "/readyz", tag = "health", security(()),
    responses(
        (status = 200, description = "The gateway has a session that serves", body = String),
        (status = 503, description = "It has none, or stops", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn ready(State(app): State<App>) -> Result<&'static str, Problem> {
    if *app.phase.borrow() > Phase::Serving {
        return Err(Fault::Unavailable.because("the gateway stops"));
    }
    if !app.client.is_connected() {
        return Err(Fault::Unavailable.because("ZooKeeper does not serve this gateway now"));
    }
    Ok("ready")
}
