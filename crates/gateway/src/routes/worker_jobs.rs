//! `GET /v1/workers/{id}/jobs`.

use axum::extract::State;
use axum::{Extension, Json as Answer};
use serde::Serialize;
use utoipa::ToSchema;

use super::pages::page;
use super::workers::left;
use crate::extract::{QueryParameters, WorkerName};
use crate::layers::Caller;
use crate::problem::Problem;
use crate::state::App;
use bellwether_documents::{JobDocument, PageQuery};

/// A page of the jobs on a worker, and the start of the next page.
#[derive(Serialize, ToSchema)]
pub(super) struct WorkerJobsPage {
    /// The jobs, in the order of their ids. Payload and result are null.
    jobs: Vec<JobDocument>,
    /// Value of `after` for the next page; null after the last page. A short or empty page may have a next page.
    #[schema(required)]
    next: Option<String>,
}

/// List the jobs that are assigned to a worker.
#[utoipa::path(
    get, path = "/v1/workers/{id}/jobs", tag = "cluster", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The worker's id"), PageQuery),
    responses(
        (status = 200, description = "A page of jobs", body = WorkerJobsPage),
    )
)]
pub(super) async fn list_worker_jobs(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    WorkerName(id): WorkerName,
    QueryParameters(which): QueryParameters<PageQuery>,
) -> Result<Answer<WorkerJobsPage>, Problem> {
    let (limit, after) = page(which.limit, which.after.as_deref())?;
    let _turn = app.pages.next(&caller).await;
    let page = app.client.list_worker_jobs(id, after.as_ref(), limit).await?.ok_or_else(|| left(id))?;
    let next = page.next.map(|next| next.to_string());
    Ok(Answer(WorkerJobsPage { jobs: page.items.iter().map(Into::into).collect(), next }))
}
