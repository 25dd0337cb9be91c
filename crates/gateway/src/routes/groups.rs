//! `/v1/groups`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use bellwether::client::GroupError;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::batch::{BatchAnswer, all_checked, outcomes, some_jobs};
use super::pages::page;
use super::wait::{GroupWaitQuery, WaitTimeout};
use crate::extract::{Bounded, GroupName, Json, QueryParameters, Traced};
use crate::layers::{AuditNote, Caller};
use crate::limits::{MAX_BATCH_BODY, MAX_BODY};
use crate::problem::{Fault, Problem};
use crate::server::Phase;
use crate::state::App;
use bellwether::client::{Group, GroupWaitError, Job, JobHandle};
use bellwether_documents::{GroupDocument, GroupQuery, GroupSummaryDocument};

impl Bounded for Group {
    const MAX_BYTES: usize = MAX_BODY;
}

/// Members to submit.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewMembers {
    /// Number of the first member; the others have the following numbers.
    #[serde(default)]
    first: u32,
    /// 1 to 1,000 jobs of the group's kind, without ids.
    #[schema(min_items = 1, max_items = 1000)]
    #[serde(deserialize_with = "some_jobs")]
    jobs: Vec<Job>,
}

impl Bounded for NewMembers {
    const MAX_BYTES: usize = MAX_BATCH_BODY;
}

/// Create a group, or set its total.
///
/// Creating the same group again changes nothing. The total is set once, with the group or later.
#[utoipa::path(
    post, path = "/v1/groups", tag = "groups", security(("token" = ["submit"])),
    request_body = Group,
    responses(
        (status = 200, description = "The group exists; the header `Location` has its path", body = GroupDocument),
        (status = 409, description = "The group exists with other properties or another total", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn make_group(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Traced(trace): Traced,
    Json(group): Json<Group>,
) -> Result<Response, Problem> {
    caller.may_create_group(group.kind())?;
    let group = app.client.group(group.traceparent(trace)).await?;
    let view = group.view().await?;
    let location = [(LOCATION, format!("/v1/groups/{}", view.id))];
    let note = AuditNote(format!("group {}", view.id));
    Ok((location, note, Answer(GroupDocument::from(&view))).into_response())
}

/// A page of groups, and the start of the next page.
#[derive(Serialize, ToSchema)]
#[schema(as = GroupPage)]
pub(super) struct GroupsPage {
    /// The groups, in no particular order.
    groups: Vec<GroupSummaryDocument>,
    /// Value of `after` for the next page; null after the last page. A short or empty page may have a next page.
    #[schema(required)]
    next: Option<String>,
}

/// List groups.
///
/// The list has no counts of members: request one group to get them. A page reads at most 5,000 groups, so with a stage
/// that few groups are in it may be short or empty and still have a next page: continue until `next` is null.
#[utoipa::path(
    get, path = "/v1/groups", tag = "groups", security(("token" = ["read"])),
    params(GroupQuery),
    responses(
        (status = 200, description = "A page of groups", body = GroupsPage),
    )
)]
pub(super) async fn list_groups(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryParameters(which): QueryParameters<GroupQuery>,
) -> Result<Answer<GroupsPage>, Problem> {
    let (limit, after) = page(which.limit, which.after.as_deref())?;
    let _turn = app.pages.next(&caller).await;
    let page = app.client.list_groups(which.stage, after.as_ref(), limit).await?;
    Ok(Answer(GroupsPage {
        groups: page.items.iter().map(Into::into).collect(),
        next: page.next.map(|next| next.to_string()),
    }))
}

/// Show a group with the counts of its members.
#[utoipa::path(
    get, path = "/v1/groups/{id}", tag = "groups", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The group's id")),
    responses(
        (status = 200, description = "The group as it is now", body = GroupDocument),
    )
)]
pub(super) async fn show_group(
    State(app): State<App>,
    GroupName(id): GroupName,
) -> Result<Answer<GroupDocument>, Problem> {
    let view = app.client.get_group(&id).await?;
    let view = view.ok_or(GroupError::NotFound { group: id })?;
    Ok(Answer((&view).into()))
}

/// Wait until a group is done.
///
/// Answers 200 as soon as the members, the join and the parent's finished handler have ended, and 202 with the current
/// group after the timeout: repeat the request.
#[utoipa::path(
    get, path = "/v1/groups/{id}/wait", tag = "groups", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The group's id"), GroupWaitQuery),
    responses(
        (status = 200, description = "The group is done", body = GroupDocument),
        (status = 202, description = "The group is not done yet", body = GroupDocument),
    )
)]
pub(super) async fn wait_for_group(
    State(app): State<App>,
    GroupName(id): GroupName,
    QueryParameters(GroupWaitQuery { timeout: WaitTimeout(within) }): QueryParameters<GroupWaitQuery>,
) -> Result<Response, Problem> {
    let mut phase = app.phase.clone();
    let waited = tokio::select! {
        waited = app.client.wait_group(&id, within) => waited,
        _ = phase.wait_for(|phase| *phase > Phase::Serving) => {
            return Err(Fault::Unavailable.because("the gateway is stopping: wait again on another gateway, or later"));
        }
    };
    match waited {
        Ok(view) => Ok(Answer(GroupDocument::from(&view)).into_response()),
        Err(GroupWaitError::TimedOut { last: Some(view), .. }) => {
            Ok((StatusCode::ACCEPTED, Answer(GroupDocument::from(&*view))).into_response())
        }
        Err(GroupWaitError::TimedOut { last: None, .. }) => {
            let view = app.client.get_group(&id).await?.ok_or(GroupError::NotFound { group: id })?;
            Ok((StatusCode::ACCEPTED, Answer(GroupDocument::from(&view))).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

/// Abandon a group whose client is gone.
///
/// It accepts no more members, and is done without a join when its members have ended. The members run on. Repeating the
/// request is safe.
#[utoipa::path(
    post, path = "/v1/groups/{id}/abandon", tag = "groups", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The group's id")),
    responses(
        (status = 200, description = "The group is abandoned", body = GroupDocument),
    )
)]
pub(super) async fn abandon_group(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    GroupName(id): GroupName,
) -> Result<Response, Problem> {
    let view = app.client.on_behalf_of(&caller.author()).abandon_group(&id).await?;
    let note = AuditNote(format!("group {id} abandoned"));
    Ok((note, Answer(GroupDocument::from(&view))).into_response())
}

/// Submit members of a group.
///
/// All jobs are checked first: one invalid job rejects the request. The answer has the outcome for each job, because the group may
/// refuse one: for example, its number is not below the total, or it has another kind or an id. The same number, kind and payload is
/// the same member, so repeating the request is safe.
#[utoipa::path(
    post, path = "/v1/groups/{id}/members", tag = "groups", security(("token" = ["submit"])),
    params(("id" = String, Path, description = "The group's id")),
    request_body = NewMembers,
    responses(
        (status = 200, description = "The outcome for each job", body = BatchAnswer),
        (status = "4XX", description = "No job was submitted", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No job was submitted, or the outcome is unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn submit_members(
    State(app): State<App>,
    GroupName(id): GroupName,
    Extension(caller): Extension<Caller>,
    request: axum::extract::Request,
) -> Result<Response, Problem> {
    let _permit = app.batches.enter(&caller)?;
    let Traced(trace) = Traced::of(request.headers());
    let Json(new) =
        <Json<NewMembers> as axum::extract::FromRequest<App>>::from_request(request, &app).await?;
    let given = new.jobs.len();
    if u32::try_from(given).ok().and_then(|given| new.first.checked_add(given)).is_none() {
        return Err(Fault::Invalid.because("the numbers of members have 32 bits"));
    }
    let jobs = all_checked(new.jobs, &caller, trace)?;
    let group = app.client.existing_group(&id).await?;
    let reserved = app.open_jobs.reserve(&app.client, &caller, given).await?;
    let answers = group.submit_stream((new.first..).zip(jobs)).collect::<Vec<_>>().await;
    reserved.submitted(answers.iter().flatten().map(JobHandle::id));
    let note = |accepted, refused| format!("group {id}: {accepted} members accepted, {refused} not");
    Ok(outcomes(answers, note))
}
