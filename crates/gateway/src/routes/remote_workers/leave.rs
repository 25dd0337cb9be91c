//! `POST /v1/remote-workers/{key}/drain` and `DELETE /v1/remote-workers/{key}`.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;

use crate::extract::Key;
use crate::layers::Caller;
use crate::problem::Problem;
use crate::state::App;

/// Drain a remote worker.
///
/// It gets no further attempts. Running ones may be finished. Repeating the request is safe.
#[utoipa::path(
    post, path = "/v1/remote-workers/{key}/drain", tag = "remote workers", security(("token" = ["work"])),
    params(("key" = String, Path, description = "The worker's key")),
    responses(
        (status = 204, description = "The worker gets no more attempts"),
        (status = 404, description = "The worker is unknown to this gateway", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn drain_remote_worker(
    State(app): State<App>,
    Key(key): Key,
    Extension(caller): Extension<Caller>,
) -> Result<StatusCode, Problem> {
    app.remote_workers.called(key, &caller.name)?.drain();
    Ok(StatusCode::NO_CONTENT)
}

/// Deregister a remote worker.
///
/// Attempts that it still runs are handed back without a loss and run elsewhere. Answers when the worker is deregistered.
/// Repeating the request is safe: an unknown worker is deregistered.
#[utoipa::path(
    delete, path = "/v1/remote-workers/{key}", tag = "remote workers", security(("token" = ["work"])),
    params(("key" = String, Path, description = "The worker's key")),
    responses(
        (status = 204, description = "The worker is deregistered"),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The outcome is unknown: repeat the request", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn remove_remote_worker(
    State(app): State<App>,
    Key(key): Key,
    Extension(caller): Extension<Caller>,
) -> StatusCode {
    if let Ok(worker) = app.remote_workers.called(key, &caller.name) {
        worker.leave().await;
    }
    StatusCode::NO_CONTENT
}
