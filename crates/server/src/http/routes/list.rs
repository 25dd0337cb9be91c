//! `GET /v1/jobs`.

use axum::Json as Answer;
use axum::extract::State;
use bellwether::Kind;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::document::{JobDocument, StateName};
use crate::http::extract::Asked;
use crate::http::problem::{Fault, Problem};
use crate::http::state::App;
use bellwether::client::{Cursor, Filter, JobView, MAX_PAGE};

/// Which jobs, and how many.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only those in this state.
    #[param(inline)]
    state: Option<StateName>,
    /// Only those of this kind.
    #[param(pattern = "^[A-Za-z0-9._-]{1,128}$")]
    kind: Option<String>,
    /// How many at most; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before, as it was, with the same filter.
    after: Option<String>,
}

/// Jobs, and where to go on.
#[derive(Serialize, ToSchema)]
pub(super) struct JobPage {
    /// In no order that means anything.
    #[schema(value_type = Vec<JobDocument>)]
    jobs: Vec<JobView>,
    /// What `after` is for the next page; null after the last. A page may be short, or empty, and still have a next one.
    #[schema(required)]
    next: Option<String>,
}

/// List jobs.
///
/// A page looks at 5,000 jobs at most, so with a filter that few jobs match it may be short, or empty, and still have a
/// next one: go on until `next` is null. Each job is told as it is when its page is read.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs", security(("token" = ["read"])),
    params(Which),
    responses(
        (status = 200, description = "A page of jobs", body = JobPage),
        (status = "4XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_jobs(
    State(app): State<App>,
    Asked(which): Asked<Which>,
) -> Result<Answer<JobPage>, Problem> {
    let limit = which.limit.unwrap_or(100);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Fault::Invalid.because(format!("limit must be 1 to {MAX_PAGE}, not {limit}")));
    }
    let kind = which.kind.map(Kind::new).transpose()?;
    let after = which.after.map(|after| after.parse::<Cursor>()).transpose()?;
    let filter = Filter { state: which.state.map(Into::into), kind };
    let page = app.client.list_page(&filter, after.as_ref(), limit).await?;
    Ok(Answer(JobPage { jobs: page.jobs, next: page.next.map(|next| next.to_string()) }))
}
