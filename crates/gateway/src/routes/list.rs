//! `GET /v1/jobs`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use bellwether::{GroupId, Kind, Lane, State as JobState};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::pages::page;
use crate::extract::QueryParameters;
use crate::layers::{AuditNote, Caller};
use crate::limits::PAGE_BYTES;
use crate::problem::Problem;
use crate::state::App;
use bellwether::client::{Filter, PageLimits};
use bellwether_documents::{InstantText, JobDocument, StateWord};

/// Filter for jobs, and page size.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only jobs in this state.
    #[param(inline, value_type = Option<StateWord>)]
    state: Option<JobState>,
    /// Only jobs of this kind.
    #[param(pattern = "^[A-Za-z0-9._-]{1,128}$")]
    kind: Option<String>,
    /// Only jobs of this lane.
    lane: Option<String>,
    /// Only jobs of this group: its members, its join and its finished job.
    group: Option<String>,
    /// Only jobs that were submitted at or after this instant.
    submitted_after: Option<InstantText>,
    /// Only jobs that were submitted before this instant.
    submitted_before: Option<InstantText>,
    /// Only jobs that ended at or after this instant.
    finished_after: Option<InstantText>,
    /// Only jobs that ended before this instant.
    finished_before: Option<InstantText>,
    /// Maximum number of jobs; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the previous page, unchanged, with the same filter.
    after: Option<String>,
    /// Whether the jobs have their payloads and results; default false: then both are null. A single job always has them.
    #[serde(default)]
    payloads: bool,
}

/// A page of jobs, and the start of the next page.
#[derive(Serialize, ToSchema)]
pub(super) struct JobPage {
    /// The jobs, in no particular order.
    jobs: Vec<JobDocument>,
    /// Value of `after` for the next page; null after the last page. A short or empty page may have a next page.
    #[schema(required)]
    next: Option<String>,
}

/// List jobs.
///
/// A page reads at most 5,000 jobs and has about 1 MiB, so it may be short or empty and still have a next page: continue
/// until `next` is null. Each job has its state at the time of the read.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs", security(("token" = ["read"])),
    params(Which),
    responses(
        (status = 200, description = "A page of jobs", body = JobPage),
    )
)]
pub(super) async fn list_jobs(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryParameters(which): QueryParameters<Which>,
) -> Result<Response, Problem> {
    let (limit, after) = page(which.limit, which.after.as_deref())?;
    let kind = which.kind.map(Kind::new).transpose()?;
    let lane = which.lane.map(Lane::new).transpose()?;
    let group = which.group.map(GroupId::new).transpose()?;
    let instant = |given: Option<InstantText>| given.map(|InstantText(at)| at);
    let filter = Filter::default()
        .state(which.state)
        .kind(kind)
        .lane(lane)
        .group(group)
        .submitted_after(instant(which.submitted_after))
        .submitted_before(instant(which.submitted_before))
        .finished_after(instant(which.finished_after))
        .finished_before(instant(which.finished_before));
    let limits = PageLimits::jobs(limit).bytes(PAGE_BYTES).payloads(which.payloads);
    let _turn = app.pages.next(&caller).await;
    let page = app.client.list_page_within(&filter, after.as_ref(), limits).await?;
    let next = page.next.map(|next| next.to_string());
    let jobs = page.items.iter().map(Into::into).collect::<Vec<_>>();
    let told = which.payloads.then(|| AuditNote(format!("read payloads of {} jobs", jobs.len())));
    let mut answer = Answer(JobPage { jobs, next }).into_response();
    if let Some(told) = told {
        answer.extensions_mut().insert(told);
    }
    Ok(answer)
}
