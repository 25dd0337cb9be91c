//! `/v1/schedules`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json as Answer};
use bellwether::ScheduleId;
use serde::Serialize;
use utoipa::ToSchema;

use super::pages::page;
use super::submit::accepted;
use crate::extract::{Bounded, Json, QueryParameters, SchedulePath};
use crate::layers::{AuditNote, Caller};
use crate::limits::MAX_BODY;
use crate::problem::Problem;
use crate::state::App;
use bellwether::client::{Added, Schedule, ScheduleChange, ScheduleError};
use bellwether_documents::{AddedScheduleDocument, PageQuery, ScheduleDocument, SubmittedDocument};

impl Bounded for Schedule {
    const MAX_BYTES: usize = MAX_BODY;
}

impl Bounded for ScheduleChange {
    const MAX_BYTES: usize = MAX_BODY;
}

fn told(what: String, status: StatusCode, document: impl Serialize) -> Response {
    (status, AuditNote(what), Answer(document)).into_response()
}

/// A page of schedules, and the start of the next page.
#[derive(Serialize, ToSchema)]
pub(super) struct SchedulesPage {
    /// The schedules, by name, without their payloads.
    schedules: Vec<ScheduleDocument>,
    /// Value of `after` for the next page; null after the last page. A short or empty page may have a next page.
    #[schema(required)]
    next: Option<String>,
}

/// List the schedules by id.
///
/// A page reads about 1 MiB of schedules with their payloads, so it may be short and still have a next page: continue until
/// `next` is null.
#[utoipa::path(
    get, path = "/v1/schedules", tag = "schedules", security(("token" = ["read"])),
    params(PageQuery),
    responses(
        (status = 200, description = "A page of schedules", body = SchedulesPage),
    )
)]
pub(super) async fn list_schedules(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryParameters(which): QueryParameters<PageQuery>,
) -> Result<Answer<SchedulesPage>, Problem> {
    let (limit, after) = page(which.limit, which.after.as_deref())?;
    let _turn = app.pages.next(&caller).await;
    let page = app.client.schedules().list(after.as_ref(), limit).await?;
    Ok(Answer(SchedulesPage {
        schedules: ScheduleDocument::list(&page.items),
        next: page.next.map(|next| next.to_string()),
    }))
}

/// Add a schedule.
///
/// Adding the same name and spec again changes nothing; another spec is a conflict unless `replace` is set.
#[utoipa::path(
    post, path = "/v1/schedules", tag = "schedules", security(("token" = ["operate"])),
    request_body = Schedule,
    responses(
        (status = 201, description = "The schedule was added", body = AddedScheduleDocument),
        (status = 200, description = "The schedule already existed, or was replaced", body = AddedScheduleDocument),
        (status = 409, description = "A schedule with another spec has this id, or the namespace has 10,000 schedules", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn add_schedule(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(schedule): Json<Schedule>,
) -> Result<Response, Problem> {
    let of_job = |problem: Problem| problem.within("job");
    caller.may_submit(schedule.job.kind(), schedule.job.given_options(), false).map_err(of_job)?;
    schedule.check().map_err(|error| match error {
        ScheduleError::Job(error) => of_job(error.into()),
        other => other.into(),
    })?;
    let id = ScheduleId::new(schedule.id())?;
    let schedules = app.client.on_behalf_of(&caller.author()).schedules();
    let added = schedules.add(&schedule).await?;
    let status = if added == Added::Created { StatusCode::CREATED } else { StatusCode::OK };
    let read = schedules.get(&id).await.map_err(|error| Problem::from(error).detail().to_owned());
    let document = AddedScheduleDocument::new(&id, added, read.as_ref().map_err(Clone::clone));
    Ok(told(format!("schedule {id} {}", added.as_str()), status, document))
}

/// Show a schedule.
#[utoipa::path(
    get, path = "/v1/schedules/{id}", tag = "schedules", security(("token" = ["read"])),
    params(("id" = String, Path, description = "Id of the schedule")),
    responses(
        (status = 200, description = "The schedule as it is now", body = ScheduleDocument),
    )
)]
pub(super) async fn show_schedule(
    State(app): State<App>,
    SchedulePath(id): SchedulePath,
) -> Result<Answer<ScheduleDocument>, Problem> {
    Ok(Answer((&app.client.schedules().get(&id).await?).into()))
}

/// Change when a schedule ticks, and how it handles missed and overlapping ticks.
///
/// Its jobs do not change: to change them, add the schedule again with `replace`. The first tick by the new rule is the
/// first one after now. Repeating the request is safe.
#[utoipa::path(
    patch, path = "/v1/schedules/{id}", tag = "schedules", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "Id of the schedule")),
    request_body = ScheduleChange,
    responses(
        (status = 200, description = "The schedule as it is now", body = ScheduleDocument),
    )
)]
pub(super) async fn change_schedule(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SchedulePath(id): SchedulePath,
    Json(change): Json<ScheduleChange>,
) -> Result<Response, Problem> {
    let view = app.client.on_behalf_of(&caller.author()).schedules().change(&id, &change).await?;
    Ok(told(format!("schedule {id} changed"), StatusCode::OK, ScheduleDocument::from(&view)))
}

/// Remove a schedule.
///
/// Its jobs are kept.
#[utoipa::path(
    delete, path = "/v1/schedules/{id}", tag = "schedules", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "Id of the schedule")),
    responses(
        (status = 204, description = "The schedule does not exist"),
    )
)]
pub(super) async fn remove_schedule(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SchedulePath(id): SchedulePath,
) -> Result<Response, Problem> {
    let there = app.client.on_behalf_of(&caller.author()).schedules().remove(&id).await?;
    let done = if there { "removed" } else { "did not exist" };
    Ok((AuditNote(format!("schedule {id} {done}")), StatusCode::NO_CONTENT).into_response())
}

/// Pause a schedule.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/pause", tag = "schedules", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "Id of the schedule")),
    responses(
        (status = 200, description = "The schedule is paused", body = ScheduleDocument),
    )
)]
pub(super) async fn pause_schedule(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SchedulePath(id): SchedulePath,
) -> Result<Response, Problem> {
    let view = app.client.on_behalf_of(&caller.author()).schedules().pause(&id).await?;
    Ok(told(format!("schedule {id} paused"), StatusCode::OK, ScheduleDocument::from(&view)))
}

/// Resume a schedule, with the first tick after now.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/resume", tag = "schedules", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "Id of the schedule")),
    responses(
        (status = 200, description = "The schedule is ticking", body = ScheduleDocument),
    )
)]
pub(super) async fn resume_schedule(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SchedulePath(id): SchedulePath,
) -> Result<Response, Problem> {
    let view = app.client.on_behalf_of(&caller.author()).schedules().resume(&id).await?;
    Ok(told(format!("schedule {id} resumed"), StatusCode::OK, ScheduleDocument::from(&view)))
}

/// Submit the job of a schedule now, in addition to its ticks.
///
/// Repeating the request submits another job, unless the schedule has a job id: then it opens that job again once it has
/// ended.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/trigger", tag = "schedules", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "Id of the schedule")),
    responses(
        (status = 200, description = "The job with the schedule's job id is open", body = SubmittedDocument),
        (status = 201, description = "The job; the header `Location` has its path", body = SubmittedDocument),
    )
)]
pub(super) async fn trigger_schedule(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SchedulePath(id): SchedulePath,
) -> Result<Response, Problem> {
    Ok(accepted(&app.client.on_behalf_of(&caller.author()).schedules().trigger(&id).await?))
}
