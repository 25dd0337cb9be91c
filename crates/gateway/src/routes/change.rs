//! `POST /v1/jobs/{id}/cancel` and `…/retry`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::Id;
use crate::layers::{AuditNote, Caller};
use crate::problem::{Fault, Problem};
use crate::state::App;
use bellwether::client::{Cancelled, Retried, State as JobState};

/// The outcome of a change.
#[derive(Serialize, ToSchema)]
pub(super) struct Changed {
    /// The job's id.
    id: String,
    /// The outcome as a word: `cancelled`, `requested` (its worker was asked to stop it), `reopened`, `released` (from
    /// quarantine), `still_open` (no retry needed), `already_cancelled`.
    outcome: &'static str,
    /// The worker that was asked to stop the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    /// The generation that the retry started.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u32>,
}

impl Changed {
    fn new(id: &bellwether::JobId, outcome: &'static str) -> Self {
        Self { id: id.to_string(), outcome, worker: None, generation: None }
    }
}

impl IntoResponse for Changed {
    fn into_response(self) -> Response {
        let told = AuditNote(format!("job {} {}", self.id, self.outcome));
        let mut answer = Answer(self).into_response();
        answer.extensions_mut().insert(told);
        answer
    }
}

/// Cancel a job.
///
/// A waiting job is cancelled immediately, and no further attempt starts. For a running job its worker is asked to stop
/// it; if the job succeeds first, its result stands. Repeating the request is safe.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/cancel", tag = "jobs", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "The job is cancelled, or its worker was asked to stop it", body = Changed),
        (status = 409, description = "The job has ended in another state", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn cancel_job(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Id(id): Id,
) -> Result<Changed, Problem> {
    let cancelled = app.client.on_behalf_of(&caller.author()).cancel(&id).await?;
    let done = Changed::new(&id, cancelled.as_str());
    match cancelled {
        Cancelled::Requested(worker) => Ok(Changed { worker: Some(worker.to_string()), ..done }),
        Cancelled::AlreadyTerminal(state) if state != JobState::Cancelled => {
            let said = format!("job {id} is {state} already: it cannot be cancelled");
            Err(Fault::Conflict.because(said).about(id))
        }
        Cancelled::Cancelled | Cancelled::AlreadyTerminal(_) => Ok(done),
    }
}

/// Retry a job.
///
/// Queues a dead or cancelled job again as a new generation with fresh counts, or releases a job from quarantine.
/// Repeating the request is safe.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/retry", tag = "jobs", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (status = 200, description = "The job is queued again, or was open", body = Changed),
        (status = 409, description = "The job succeeded and keeps its result", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn retry_job(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Id(id): Id,
) -> Result<Changed, Problem> {
    let retried = app.client.on_behalf_of(&caller.author()).retry(&id).await?;
    let done = Changed::new(&id, retried.as_str());
    match retried {
        Retried::Reopened(generation) => Ok(Changed { generation: Some(generation), ..done }),
        Retried::Released | Retried::StillOpen => Ok(done),
        Retried::Succeeded => {
            let said = format!("job {id} succeeded: it keeps its result and is not run again");
            Err(Fault::Conflict.because(said).about(id))
        }
    }
}
