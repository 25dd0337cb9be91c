//! `GET /v1/workers/{id}/jobs`.

use axum::extract::State;
use axum::{Extension, Json as Answer};

use super::list::JobPage;
use super::pages::page;
use super::workers::left;
use crate::extract::{QueryParameters, WorkerName};
use crate::layers::Caller;
use crate::problem::Problem;
use crate::state::App;
use bellwether_documents::PageQuery;

/// List the jobs that are assigned to a worker.
///
/// They are in the order of their ids. Payload and result are null.
#[utoipa::path(
    get, path = "/v1/workers/{id}/jobs", tag = "cluster", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The worker's id"), PageQuery),
    responses(
        (status = 200, description = "A page of jobs", body = JobPage),
    )
)]
pub(super) async fn list_worker_jobs(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    WorkerName(id): WorkerName,
    QueryParameters(which): QueryParameters<PageQuery>,
) -> Result<Answer<JobPage>, Problem> {
    let (limit, after) = page(which.limit, which.after.as_deref())?;
    let _turn = app.pages.next(&caller).await;
    let page = app.client.list_worker_jobs(id, after.as_ref(), limit).await?.ok_or_else(|| left(id))?;
    let next = page.next.map(|next| next.to_string());
    Ok(Answer(JobPage { jobs: page.items.iter().map(Into::into).collect(), next }))
}
