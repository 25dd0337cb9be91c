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
use bellwether::client;

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
    match app.client.on_behalf_of(&caller.author()).cancel(&id).await? {
        client::Cancelled::Cancelled => Ok(Changed::new(&id, "cancelled")),
        client::Cancelled::Requested(worker) => {
            Ok(Changed { worker: Some(worker.to_string()), ..Changed::new(&id, "requested") })
        }
        client::Cancelled::AlreadyTerminal(client::State::Cancelled) => {
            Ok(Changed::new(&id, "already_cancelled"))
        }
        client::Cancelled::AlreadyTerminal(state) => {
            let said = format!("job {id} is {state} already: it cannot be cancelled");
            Err(Fault::Conflict.because(said).about(id))
        }
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
    match app.client.on_behalf_of(&caller.author()).retry(&id).await? {
        client::Retried::Reopened(generation) => {
            Ok(Changed { generation: Some(generation), ..Changed::new(&id, "reopened") })
        }
        client::Retried::Released => Ok(Changed::new(&id, "released")),
        client::Retried::StillOpen => Ok(Changed::new(&id, "still_open")),
        client::Retried::Succeeded => {
            let said = format!("job {id} succeeded: it keeps its result and is not run again");
            Err(Fault::Conflict.because(said).about(id))
        }
    }
}
