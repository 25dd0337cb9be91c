//! `/v1/schedules`.

use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bellwether::ScheduleId;
use bellwether::schedule::{Misfire, Overlap};
use serde::Deserialize;
use utoipa::ToSchema;

use super::submit::{NewJob, accepted, instant};
use super::submitted::Submitted;
use crate::document::ScheduleDocument;
use crate::http::extract::{Bounded, Json, ScheduleName};
use crate::http::front::Told;
use crate::http::limits::MAX_BODY;
use crate::http::problem::{Fault, Problem};
use crate::http::state::App;
use bellwether::client::{Added, Schedule, ScheduleView};

/// A schedule to add, with one of `cron`, `every_ms` and `once`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSchedule {
    /// Name of the schedule.
    #[schema(example = "nightly", pattern = "^[A-Za-z0-9._-]{1,128}$")]
    id: String,
    /// Cron expression with five fields (minute, hour, day of month, month, day of week), or with six of which the
    /// first is the second.
    #[schema(example = "0 3 * * *")]
    cron: Option<String>,
    /// IANA zone of `cron`; default UTC.
    #[schema(example = "Europe/Berlin")]
    zone: Option<String>,
    /// Interval in milliseconds, 1 s to 366 days.
    every_ms: Option<u64>,
    /// Start of the interval, RFC 3339; default: the Unix epoch.
    #[schema(format = DateTime)]
    anchor: Option<String>,
    /// One tick at this instant, RFC 3339.
    #[schema(format = DateTime)]
    once: Option<String>,
    /// What to do with ticks that were missed because there was no leader. Default `once`.
    misfire: Option<NewMisfire>,
    /// How late a tick may be without being missed, in milliseconds: 1 s to 7 days, default one minute.
    grace_ms: Option<u64>,
    /// What to do with a tick while the job of the last tick has not ended. Default `allow`.
    overlap: Option<NewOverlap>,
    /// Time after its tick until which a job may start, in milliseconds. Default: unlimited.
    expires_after_ms: Option<u64>,
    /// Whether to replace a schedule that has this name and another spec. Otherwise that is a conflict.
    #[serde(default)]
    replace: bool,
    /// The job that each tick submits, without `id`, `run_at` and expiry, which the schedule sets.
    job: NewJob,
}

impl Bounded for NewSchedule {
    const MAX_BYTES: usize = MAX_BODY;
}

/// What to do with missed ticks.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum NewMisfire {
    /// No missed tick gets a job.
    Skip,
    /// The last missed tick gets a job, on behalf of all of them.
    Once,
    /// The last missed ticks get their jobs, in order.
    CatchUp {
        /// Maximum number of ticks.
        at_most: u32,
        /// Maximum age of the ticks in milliseconds.
        within_ms: u64,
    },
}

/// What to do with a tick while the job of the last tick has not ended.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum NewOverlap {
    /// The tick gets its job.
    Allow,
    /// The tick is skipped.
    Forbid,
    /// The tick gets its job, which waits for the other jobs.
    Queue,
}

impl NewSchedule {
    fn schedule(self) -> Result<Schedule, Problem> {
        let job = self.job.job().map_err(|problem| problem.within("job"))?;
        let mut schedule = match (self.cron, self.every_ms, self.once) {
            (Some(cron), None, None) => Schedule::cron(self.id, &cron, job),
            (None, Some(every), None) => Schedule::every(self.id, Duration::from_millis(every), job),
            (None, None, Some(once)) => Schedule::once(self.id, instant("once", &once)?, job),
            (_, _, _) => return Err(Fault::Invalid.because("give one of cron, every_ms and once")),
        };
        if let Some(zone) = self.zone {
            schedule = schedule.zone(&zone);
        }
        if let Some(anchor) = self.anchor {
            schedule = schedule.anchor(instant("anchor", &anchor)?);
        }
        if let Some(misfire) = self.misfire {
            schedule = schedule.misfire(match misfire {
                NewMisfire::Skip => Misfire::Skip,
                NewMisfire::Once => Misfire::Once,
                NewMisfire::CatchUp { at_most, within_ms } => {
                    Misfire::CatchUp { at_most, within: Duration::from_millis(within_ms) }
                }
            });
        }
        if let Some(grace) = self.grace_ms {
            schedule = schedule.grace(Duration::from_millis(grace));
        }
        if let Some(overlap) = self.overlap {
            schedule = schedule.overlap(match overlap {
                NewOverlap::Allow => Overlap::Allow,
                NewOverlap::Forbid => Overlap::Forbid,
                NewOverlap::Queue => Overlap::Queue,
            });
        }
        if let Some(after) = self.expires_after_ms {
            schedule = schedule.expires_after(Duration::from_millis(after));
        }
        if self.replace {
            schedule = schedule.replace();
        }
        schedule.check()?;
        Ok(schedule)
    }
}

fn told(what: String, status: StatusCode, schedule: &ScheduleView) -> Response {
    let mut answer = (status, Answer(ScheduleDocument::from(schedule))).into_response();
    answer.extensions_mut().insert(Told(what));
    answer
}

/// List the schedules.
#[utoipa::path(
    get, path = "/v1/schedules", tag = "schedules", security(("token" = ["read"])),
    responses(
        (status = 200, description = "All schedules, by name", body = Vec<ScheduleDocument>),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_schedules(State(app): State<App>) -> Result<Answer<Vec<ScheduleDocument>>, Problem> {
    let schedules = app.client.schedules().list().await?;
    Ok(Answer(schedules.iter().map(Into::into).collect()))
}

/// Add a schedule.
///
/// Adding the same name and spec again changes nothing; another spec is a conflict unless `replace` is set.
#[utoipa::path(
    post, path = "/v1/schedules", tag = "schedules", security(("token" = ["operate"])),
    request_body = NewSchedule,
    responses(
        (status = 201, description = "The schedule was added", body = ScheduleDocument),
        (status = 200, description = "The schedule already existed, or was replaced", body = ScheduleDocument),
        (status = 409, description = "A schedule with another spec has this name", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Nothing was changed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was changed, or the outcome is unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn add_schedule(
    State(app): State<App>,
    Json(new): Json<NewSchedule>,
) -> Result<Response, Problem> {
    let schedule = new.schedule()?;
    schedule.check()?;
    let id = ScheduleId::new(schedule.name())?;
    let schedules = app.client.schedules();
    let (status, done) = match schedules.add(&schedule).await? {
        Added::Made => (StatusCode::CREATED, "made"),
        Added::Same => (StatusCode::OK, "existed"),
        Added::Replaced => (StatusCode::OK, "replaced"),
    };
    Ok(told(format!("schedule {id} {done}"), status, &schedules.get(&id).await?))
}

/// Show a schedule.
#[utoipa::path(
    get, path = "/v1/schedules/{id}", tag = "schedules", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The schedule's name")),
    responses(
        (status = 200, description = "The schedule as it is now", body = ScheduleDocument),
        (status = "4XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The request failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_schedule(
    State(app): State<App>,
    ScheduleName(id): ScheduleName,
) -> Result<Answer<ScheduleDocument>, Problem> {
    Ok(Answer((&app.client.schedules().get(&id).await?).into()))
}

/// Remove a schedule.
///
/// Its jobs are kept.
#[utoipa::path(
    delete, path = "/v1/schedules/{id}", tag = "schedules", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The schedule's name")),
    responses(
        (status = 204, description = "The schedule does not exist"),
        (status = "4XX", description = "Nothing was changed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was changed, or the outcome is unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn remove_schedule(
    State(app): State<App>,
    ScheduleName(id): ScheduleName,
) -> Result<Response, Problem> {
    let there = app.client.schedules().remove(&id).await?;
    let mut answer = StatusCode::NO_CONTENT.into_response();
    let done = if there { "removed" } else { "did not exist" };
    answer.extensions_mut().insert(Told(format!("schedule {id} {done}")));
    Ok(answer)
}

/// Pause a schedule.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/pause", tag = "schedules", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The schedule's name")),
    responses(
        (status = 200, description = "The schedule is paused", body = ScheduleDocument),
        (status = "4XX", description = "Nothing was changed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was changed, or the outcome is unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pause_schedule(
    State(app): State<App>,
    ScheduleName(id): ScheduleName,
) -> Result<Response, Problem> {
    let view = app.client.schedules().pause(&id).await?;
    Ok(told(format!("schedule {id} paused"), StatusCode::OK, &view))
}

/// Resume a schedule, with the first tick after now.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/resume", tag = "schedules", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The schedule's name")),
    responses(
        (status = 200, description = "The schedule is ticking", body = ScheduleDocument),
        (status = "4XX", description = "Nothing was changed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was changed, or the outcome is unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn resume_schedule(
    State(app): State<App>,
    ScheduleName(id): ScheduleName,
) -> Result<Response, Problem> {
    let view = app.client.schedules().resume(&id).await?;
    Ok(told(format!("schedule {id} resumed"), StatusCode::OK, &view))
}

/// Submit the job of a schedule now, in addition to its ticks.
///
/// Repeating the request submits another job.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/trigger", tag = "schedules", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The schedule's name")),
    responses(
        (status = 201, description = "The job; the header `Location` has its path", body = Submitted),
        (status = "4XX", description = "Nothing was changed", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was changed, or the outcome is unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn trigger_schedule(
    State(app): State<App>,
    ScheduleName(id): ScheduleName,
) -> Result<Response, Problem> {
    Ok(accepted(&app.client.schedules().trigger(&id).await?))
}
