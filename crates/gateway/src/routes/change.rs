//! `POST /v1/jobs/{id}/cancel` and `…/retry`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use bellwether::JobId;
use bellwether_documents::{Invalid, JobOutcomeDocument};

use crate::extract::Id;
use crate::layers::{AuditNote, Caller};
use crate::problem::{Fault, Problem};
use crate::state::App;

fn told(outcome: JobOutcomeDocument) -> Response {
    let note = AuditNote(format!("job {} {}", outcome.id, outcome.outcome));
    (note, Answer(outcome)).into_response()
}

fn refused(id: JobId, Invalid(reason): Invalid) -> Problem {
    Fault::Conflict.because(reason).about(id)
}

/// Cancel a job.
///
/// A waiting job is cancelled immediately, and no further attempt starts. For a running job its worker is asked to stop
/// it; if the job succeeds first, its result stands. Repeating the request is safe.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/cancel", tag = "jobs", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "The job is cancelled, or its worker was asked to stop it", body = JobOutcomeDocument),
        (status = 409, description = "The job has ended in another state", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn cancel_job(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Id(id): Id,
) -> Result<Response, Problem> {
    let cancelled = app.client.on_behalf_of(&caller.author()).cancel(&id).await?;
    JobOutcomeDocument::cancelled(&id, cancelled).map(told).map_err(|kept| refused(id, kept))
}

/// Retry a job.
///
/// Queues a dead or cancelled job again as a new generation with fresh counts, or releases a job from quarantine.
/// Repeating the request is safe.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/retry", tag = "jobs", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "The job is queued again, or was open", body = JobOutcomeDocument),
        (status = 409, description = "The job succeeded and keeps its result", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn retry_job(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Id(id): Id,
) -> Result<Response, Problem> {
    let retried = app.client.on_behalf_of(&caller.author()).retry(&id).await?;
    JobOutcomeDocument::retried(&id, retried).map(told).map_err(|kept| refused(id, kept))
}
