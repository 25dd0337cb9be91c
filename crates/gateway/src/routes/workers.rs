//! `/v1/workers`: listing, changing and draining workers.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use bellwether::WorkerId;
use bellwether::client::{DrainedWorker, WorkerChange};

use crate::extract::{Bounded, Json, WorkerName};
use crate::layers::{AuditNote, Caller};
use crate::limits::MAX_BODY;
use crate::problem::{Fault, Problem};
use crate::state::App;
use bellwether_documents::{ChangedWorkerDocument, WorkerDocument, WorkerOutcomeDocument};

/// List the live workers.
#[utoipa::path(
    get, path = "/v1/workers", tag = "cluster", security(("token" = ["read"])),
    responses(
        (status = 200, description = "The live workers, oldest first", body = Vec<WorkerDocument>),
    )
)]
pub(super) async fn list_workers(State(app): State<App>) -> Result<Answer<Vec<WorkerDocument>>, Problem> {
    Ok(Answer(app.client.workers().await?.iter().map(Into::into).collect()))
}

/// Drain a worker.
///
/// The worker takes no new jobs, finishes running jobs within its node's drain grace, hands back the rest, and leaves.
/// Its node keeps running without a worker until it is restarted. If the worker's session is lost first, the worker
/// returns under another id: wait until it has left. Repeating the request is safe.
#[utoipa::path(
    post, path = "/v1/workers/{id}/drain", tag = "cluster", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The worker's id")),
    responses(
        (status = 200, description = "The worker is draining", body = WorkerOutcomeDocument),
    )
)]
pub(super) async fn drain_worker(
    State(app): State<App>,
    WorkerName(id): WorkerName,
) -> Result<Response, Problem> {
    let outcome = match app.client.drain_worker(id).await? {
        DrainedWorker::NotFound => return Err(left(id)),
        drained => WorkerOutcomeDocument::drained(id, drained),
    };
    let note = AuditNote(format!("worker {id} {}", outcome.outcome));
    Ok((note, Answer(outcome)).into_response())
}

impl Bounded for WorkerChange {
    const MAX_BYTES: usize = MAX_BODY;
}

/// Change slots and tags of a worker, and pause or resume kinds on it.
///
/// Assignments follow immediately; running jobs continue. Jobs of a paused kind that the worker has not started are handed
/// back. The changes end with the worker's process. Repeating the request is safe.
#[utoipa::path(
    patch, path = "/v1/workers/{id}", tag = "cluster", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The worker's id")),
    request_body = WorkerChange,
    responses(
        (status = 200, description = "The settings of the worker as they are now", body = ChangedWorkerDocument),
    )
)]
pub(super) async fn set_worker(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    WorkerName(id): WorkerName,
    Json(change): Json<WorkerChange>,
) -> Result<Response, Problem> {
    let client = app.client.on_behalf_of(&caller.author());
    let settings = client.change_worker(id, &change).await?;
    let settings = settings.ok_or_else(|| left(id))?;
    let set = ChangedWorkerDocument { id: id.to_string(), settings: (&settings).into(), node: None };
    let note = AuditNote(format!("worker {id} set to {:?}", settings.value));
    Ok((note, Answer(set)).into_response())
}

pub(super) fn left(id: WorkerId) -> Problem {
    Fault::NotFound.because(format!("there is no worker {id}: it has left"))
}
