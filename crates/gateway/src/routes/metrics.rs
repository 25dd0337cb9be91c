//! `/metrics`, for Prometheus.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use crate::metrics_server::TEXT;
use crate::problem::{Fault, Problem};
use crate::state::App;

/// Show the metrics of this process.
///
/// The format is the text format of Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "health", security(("token" = ["read"])),
    responses(
        (status = 200, description = "Metrics in the text format of Prometheus", body = String, content_type = "text/plain"),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn scrape(State(app): State<App>) -> Result<impl IntoResponse, Problem> {
    let metrics = app.metrics.as_ref();
    let metrics = metrics.ok_or_else(|| Fault::NotFound.because("this process does not record metrics"))?;
    Ok(([(CONTENT_TYPE, TEXT)], metrics.render()))
}
