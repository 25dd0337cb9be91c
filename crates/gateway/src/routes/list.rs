//! `GET /v1/jobs`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use serde::Serialize;
use utoipa::ToSchema;

use super::pages::page;
use crate::extract::TwoQueryParameters;
use crate::layers::{AuditNote, Caller};
use crate::limits::PAGE_BYTES;
use crate::problem::Problem;
use crate::state::App;
use bellwether::client::{Filter, PageLimits};
use bellwether_documents::{JobDocument, JobPageQuery};

/// A page of jobs, and the start of the next page.
#[derive(Serialize, ToSchema)]
pub(super) struct JobPage {
    /// The jobs.
    pub(super) jobs: Vec<JobDocument>,
    /// Value of `after` for the next page; null after the last page. A short or empty page may have a next page.
    #[schema(required)]
    pub(super) next: Option<String>,
}

/// List jobs.
///
/// A page reads at most 5,000 jobs and has about 1 MiB, so it may be short or empty and still have a next page: continue
/// until `next` is null. The jobs are in no particular order, each with its state at the time of the read.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs", security(("token" = ["read"])),
    params(Filter, JobPageQuery),
    responses(
        (status = 200, description = "A page of jobs", body = JobPage),
    )
)]
pub(super) async fn list_jobs(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    TwoQueryParameters(filter, which): TwoQueryParameters<Filter, JobPageQuery>,
) -> Result<Response, Problem> {
    let (limit, after) = page(which.limit, which.after.as_deref())?;
    let limits = PageLimits::jobs(limit).bytes(PAGE_BYTES).payloads(which.payloads);
    let _turn = app.pages.next(&caller).await;
    let page = app.client.list_page_within(&filter, after.as_ref(), limits).await?;
    let next = page.next.map(|next| next.to_string());
    let jobs = page.items.iter().map(Into::into).collect::<Vec<_>>();
    let note = which.payloads.then(|| AuditNote(format!("read payloads of {} jobs", jobs.len())));
    Ok((note, Answer(JobPage { jobs, next })).into_response())
}
