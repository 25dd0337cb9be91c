//! `/v1/groups`.

use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use bellwether::client::GroupError;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::batch::{BatchAnswer, One};
use super::document::Submitted;
use super::submit::NewJob;
use super::wait::{HowLong, within};
use crate::http::extract::{Asked, Bounded, GroupName, Json, Traced};
use crate::http::front::Told;
use crate::http::limits::{MAX_BATCH, MAX_BATCH_BODY, MAX_BODY};
use crate::http::problem::{Fault, Problem};
use crate::http::server::Phase;
use crate::http::state::App;
use bellwether::client::{Group, GroupCursor, GroupStage, GroupSummary, GroupView, GroupWaitError, MAX_PAGE};

/// A group to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewGroup {
    /// The kind of its members.
    #[schema(example = "record-set", pattern = "^[A-Za-z0-9._-]{1,128}$")]
    kind: String,
    /// Its name.
    #[schema(example = "2026-11-21", pattern = "^[A-Za-z0-9._-]{1,128}$")]
    name: String,
    /// How many members it has; may be said later, by making it again, and never changed.
    total: Option<u32>,
    /// Whether the first member that ends without success ends the group.
    #[serde(default)]
    fail_fast: bool,
    /// Whether its join runs once its members have ended. Default yes.
    join: Option<bool>,
}

impl Bounded for NewGroup {
    const MAX_BYTES: usize = MAX_BODY;
}

/// Members to submit.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewMembers {
    /// The number of the first; those after it have the numbers after it.
    #[serde(default)]
    first: u32,
    /// 1 to 1,000, of the group's kind, without ids of their own.
    #[schema(min_items = 1, max_items = 1000)]
    jobs: Vec<NewJob>,
}

impl Bounded for NewMembers {
    const MAX_BYTES: usize = MAX_BATCH_BODY;
}

/// A group.
#[derive(ToSchema)]
#[schema(as = Group)]
#[expect(dead_code, reason = "describes what another type writes")]
pub(super) struct GroupDocument {
    /// Its id.
    id: String,
    /// The kind of its members.
    kind: String,
    /// `open`, `joining`, `finishing` or `done`.
    stage: String,
    /// Stage, and what it waits for, in a line.
    status: String,
    /// How many members it has, once that was said.
    #[schema(required)]
    total: Option<u32>,
    /// Members that are open.
    open: u32,
    /// Members that succeeded.
    succeeded: u32,
    /// Members that were cancelled.
    cancelled: u32,
    /// Members that are dead.
    dead: u32,
    /// Members that were said to be there and were not submitted yet.
    #[schema(required)]
    missing: Option<u32>,
    /// Whether the first member that ends without success ends the group.
    fail_fast: bool,
    /// Why it did not wait for all of its members.
    #[schema(required)]
    stopped: Option<String>,
    /// The job whose sub-jobs its members are.
    #[schema(required)]
    parent: Option<String>,
    /// Its join, once that was made.
    #[schema(required)]
    join: Option<String>,
    /// Its parent's finished job, once that was made.
    #[schema(required)]
    finish: Option<String>,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was done.
    #[schema(required, format = DateTime)]
    done_at: Option<String>,
}

/// Make a group, or say its total.
///
/// The same group again is the same group. A total is said once, with the group or later.
#[utoipa::path(
    post, path = "/v1/groups", tag = "groups", security(("token" = ["submit"])),
    request_body = NewGroup,
    responses(
        (status = 200, description = "It is there; `Location` tells where", body = GroupDocument),
        (status = 409, description = "It was made with other rules or another total", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Nothing was done", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was done, or unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn make_group(
    State(app): State<App>,
    Traced(trace): Traced,
    Json(new): Json<NewGroup>,
) -> Result<Response, Problem> {
    let mut group = Group::new(&new.kind, &new.name)?.trace_context(trace);
    if let Some(total) = new.total {
        group = group.total(total);
    }
    if new.fail_fast {
        group = group.fail_fast();
    }
    if new.join == Some(false) {
        group = group.without_join();
    }
    let group = app.client.group(group).await?;
    let view = group.view().await?;
    let location = [(LOCATION, format!("/v1/groups/{}", view.id))];
    let told = Told(format!("group {}", view.id));
    let mut answer = (location, Answer(view)).into_response();
    answer.extensions_mut().insert(told);
    Ok(answer)
}

/// Which groups, and how many.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WhichGroups {
    /// Only those in this stage.
    #[param(inline)]
    stage: Option<StageName>,
    /// How many at most; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before, as it was, with the same filter.
    after: Option<String>,
}

/// A stage in the life of a group.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StageName {
    /// Members are submitted and run.
    Open,
    /// Its join waits for a worker, or runs.
    Joining,
    /// Its parent's finished handler waits for a worker, or runs.
    Finishing,
    /// Nothing of it will happen any more.
    Done,
}

impl From<StageName> for GroupStage {
    fn from(name: StageName) -> Self {
        match name {
            StageName::Open => Self::Open,
            StageName::Joining => Self::Joining,
            StageName::Finishing => Self::Finishing,
            StageName::Done => Self::Done,
        }
    }
}

/// A group without the counts of its members. What its record says is null when that cannot be read.
#[derive(ToSchema)]
#[schema(as = GroupSummary)]
#[expect(dead_code, reason = "describes what another type writes")]
pub(super) struct SummaryDocument {
    /// Its id.
    id: String,
    /// The kind of its members.
    #[schema(required)]
    kind: Option<String>,
    /// `open`, `joining`, `finishing`, `done`, or `unreadable`.
    stage: String,
    /// How many members it has, once that was said.
    #[schema(required)]
    total: Option<u32>,
    /// The job whose sub-jobs its members are.
    #[schema(required)]
    parent: Option<String>,
    /// When it was made.
    #[schema(required, format = DateTime)]
    created_at: Option<String>,
    /// When it was done.
    #[schema(required, format = DateTime)]
    done_at: Option<String>,
}

/// Groups, and where to go on.
#[derive(Serialize, ToSchema)]
#[schema(as = GroupPage)]
pub(super) struct GroupsPage {
    /// In no order that means anything.
    #[schema(value_type = Vec<SummaryDocument>)]
    groups: Vec<GroupSummary>,
    /// What `after` is for the next page; null after the last. A page may be short, or empty, and still have a next one.
    #[schema(required)]
    next: Option<String>,
}

/// List groups.
///
/// Without the counts of their members: ask for one group to have them. A page looks at 5,000 groups at most, so with a
/// stage that few are in it may be short, or empty, and still have a next one: go on until `next` is null.
#[utoipa::path(
    get, path = "/v1/groups", tag = "groups", security(("token" = ["read"])),
    params(WhichGroups),
    responses(
        (status = 200, description = "A page of groups", body = GroupsPage),
        (status = "4XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_groups(
    State(app): State<App>,
    Asked(which): Asked<WhichGroups>,
) -> Result<Answer<GroupsPage>, Problem> {
    let limit = which.limit.unwrap_or(100);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Fault::Invalid.because(format!("limit must be 1 to {MAX_PAGE}, not {limit}")));
    }
    let after = which.after.map(|after| after.parse::<GroupCursor>()).transpose()?;
    let page = app.client.list_groups(which.stage.map(Into::into), after.as_ref(), limit).await?;
    Ok(Answer(GroupsPage { groups: page.groups, next: page.next.map(|next| next.to_string()) }))
}

/// Show a group, with the counts of its members.
#[utoipa::path(
    get, path = "/v1/groups/{id}", tag = "groups", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The group's id")),
    responses(
        (status = 200, description = "The group as it is now", body = GroupDocument),
        (status = "4XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_group(
    State(app): State<App>,
    GroupName(id): GroupName,
) -> Result<Answer<GroupView>, Problem> {
    let view = app.client.get_group(&id).await?;
    Ok(Answer(view.ok_or(GroupError::Absent { group: id })?))
}

/// Wait until a group is done.
///
/// Answers 200 as soon as its members, its join and its parent's finished handler have ended, and 202 with the group as it
/// is when the time is up: ask again.
#[utoipa::path(
    get, path = "/v1/groups/{id}/wait", tag = "groups", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The group's id"), HowLong),
    responses(
        (status = 200, description = "The group is done", body = GroupDocument),
        (status = 202, description = "It is not done yet", body = GroupDocument),
        (status = "4XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn wait_for_group(
    State(app): State<App>,
    GroupName(id): GroupName,
    Asked(how_long): Asked<HowLong>,
) -> Result<Response, Problem> {
    let within: Duration = within(&how_long)?;
    let _permit = super::wait::permit(&app)?;
    let mut phase = app.phase.clone();
    let waited = tokio::select! {
        waited = app.client.wait_group(&id, within) => waited,
        _ = phase.wait_for(|phase| *phase > Phase::Serving) => {
            return Err(Fault::Unavailable.because("the gateway stops: wait again, elsewhere or a little later"));
        }
    };
    match waited {
        Ok(view) => Ok(Answer(view).into_response()),
        Err(GroupWaitError::TimedOut { last: Some(view), .. }) => {
            Ok((StatusCode::ACCEPTED, Answer(*view)).into_response())
        }
        Err(GroupWaitError::TimedOut { last: None, .. }) => {
            let view = app.client.get_group(&id).await?.ok_or(GroupError::Absent { group: id })?;
            Ok((StatusCode::ACCEPTED, Answer(view)).into_response())
        }
        Err(GroupWaitError::Client(error)) => Err(error.into()),
    }
}

/// Submit members of a group.
///
/// All are checked first: when one is not valid, none is submitted. The same number, kind and payload again is the same
/// member, so all of it may be sent again after any doubt.
#[utoipa::path(
    post, path = "/v1/groups/{id}/members", tag = "groups", security(("token" = ["submit"])),
    params(("id" = String, Path, description = "The group's id")),
    request_body = NewMembers,
    responses(
        (status = 200, description = "What became of each", body = BatchAnswer),
        (status = "4XX", description = "None was submitted", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "None was submitted, or unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn submit_members(
    State(app): State<App>,
    GroupName(id): GroupName,
    request: axum::extract::Request,
) -> Result<Response, Problem> {
    let _permit = super::batch::permit(&app)?;
    let Traced(trace) = Traced::of(request.headers());
    let Json(new) =
        <Json<NewMembers> as axum::extract::FromRequest<App>>::from_request(request, &app).await?;
    let given = new.jobs.len();
    let last = u32::try_from(given).ok().and_then(|given| new.first.checked_add(given));
    if !(1..=MAX_BATCH).contains(&given) || last.is_none() {
        return Err(Fault::Invalid
            .because(format!("jobs must be 1 to {MAX_BATCH}, not {given}, and their numbers of 32 bits")));
    }
    let jobs = new.jobs.into_iter().enumerate();
    let jobs = jobs.map(|(at, new)| new.job().map_err(|problem| problem.within(&format!("jobs[{at}]"))));
    let jobs = jobs.collect::<Result<Vec<_>, _>>()?.into_iter().map(|job| job.trace_context(trace));
    let group = app.client.existing_group(&id).await?;
    let answers = group.submit_stream((new.first..).zip(jobs)).collect::<Vec<_>>().await;
    let accepted = answers.iter().filter(|answer| answer.is_ok()).count();
    let refused = answers.len() - accepted;
    let jobs = answers.into_iter().map(|answer| match answer {
        Ok(job) => One::Accepted(Submitted::of(&job)),
        Err(error) => One::Refused { problem: error.into() },
    });
    let mut answer = Answer(BatchAnswer { accepted, refused, jobs: jobs.collect() }).into_response();
    answer.extensions_mut().insert(Told(format!("group {id}: {accepted} members accepted, {refused} not")));
    Ok(answer)
}
