//! `POST /v1/client?first=1&second=2`: the request of the first prototype of Bellwether.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::document::Submitted;
use super::submit::accepted;
use crate::http::extract::{Asked, Traced};
use crate::http::problem::Problem;
use crate::http::state::App;
use bellwether::client::Job;

/// Two numbers.
#[derive(Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Numbers {
    /// One of the numbers.
    #[param(example = 1)]
    first: i64,
    /// The other number.
    #[param(example = 2)]
    second: i64,
}

/// Submit a job that adds two numbers.
///
/// The job has the kind `sum`, which every node of the `bellwether` command runs.
#[utoipa::path(
    post, path = "/v1/client", tag = "demo", security(("token" = ["submit"])),
    params(Numbers),
    responses(
        (status = 201, description = "Accepted; the header `Location` has its path", body = Submitted),
        (status = "4XX", description = "Not accepted", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Not accepted, or the outcome is unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn submit_sum(
    State(app): State<App>,
    Traced(trace): Traced,
    Asked(numbers): Asked<Numbers>,
) -> Result<Response, Problem> {
    let job = app.client.submit(Job::new("sum", &numbers)?.trace_context(trace)).await?;
    Ok(accepted(&job))
}
