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

use super::document::Submitted;
use super::submit::{NewJob, accepted, instant};
use crate::http::extract::{Bounded, Json, ScheduleName};
use crate::http::front::Told;
use crate::http::limits::MAX_BODY;
use crate::http::problem::{Fault, Problem};
use crate::http::state::App;
use bellwether::client::{Added, Schedule, ScheduleView};

/// A schedule to add: one of `cron`, `every_ms` and `once`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSchedule {
    /// Its name.
    #[schema(example = "nightly", pattern = "^[A-Za-z0-9._-]{1,128}$")]
    id: String,
    /// Five fields (minute, hour, day of month, month, day of week), or six with the second first.
    #[schema(example = "0 3 * * *")]
    cron: Option<String>,
    /// The IANA zone of `cron`; UTC by default.
    #[schema(example = "Europe/Berlin")]
    zone: Option<String>,
    /// Every so many milliseconds, 1 s to 366 days.
    every_ms: Option<u64>,
    /// Where the interval begins, RFC 3339; the Unix epoch by default.
    #[schema(format = DateTime)]
    anchor: Option<String>,
    /// Once, at this instant, RFC 3339.
    #[schema(format = DateTime)]
    once: Option<String>,
    /// What becomes of ticks that nobody was there for. Default `once`.
    misfire: Option<NewMisfire>,
    /// How late a tick may be and still be on time, in milliseconds: 1 s to 7 days, by default a minute.
    grace_ms: Option<u64>,
    /// What becomes of a tick while the last one's job is not over. Default `allow`.
    overlap: Option<NewOverlap>,
    /// How long after its tick a job may be started, in milliseconds. Default: for ever.
    expires_after_ms: Option<u64>,
    /// Whether it takes the place of a schedule of this name with another spec, instead of a conflict.
    #[serde(default)]
    replace: bool,
    /// What each tick submits: without `id`, `run_at` and expiry, which are the schedule's.
    job: NewJob,
}

impl Bounded for NewSchedule {
    const MAX_BYTES: usize = MAX_BODY;
}

/// What becomes of ticks that nobody was there for.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum NewMisfire {
    /// Nothing.
    Skip,
    /// The last one is made up for all of them.
    Once,
    /// The last ones are made up, in order.
    CatchUp {
        /// How many at most.
        at_most: u32,
        /// How old they may be, in milliseconds.
        within_ms: u64,
    },
}

/// What becomes of a tick while the last one's job is not over.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum NewOverlap {
    /// It gets its job.
    Allow,
    /// It is passed over.
    Forbid,
    /// It gets its job, which waits for the others.
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

/// A schedule. All but `id` and `error` are missing when its record cannot be read.
#[derive(ToSchema)]
#[schema(as = Schedule)]
#[expect(dead_code, reason = "describes what another type writes")]
pub(super) struct ScheduleDocument {
    /// Its name.
    id: String,
    /// `ticking`, `paused`, or `over` when there is no tick any more.
    state: Option<String>,
    /// `{cron, zone}`, `{every_ms, anchor}` or `{once}`.
    when: Option<serde_json::Value>,
    /// `skip`, `once` or `{catch_up: {at_most, within_ms}}`.
    misfire: Option<serde_json::Value>,
    /// How late is on time.
    grace_ms: Option<u64>,
    /// `allow`, `forbid` or `queue`.
    overlap: Option<String>,
    /// Of the jobs that it submits.
    kind: Option<String>,
    /// Of the jobs that it submits.
    priority: Option<u8>,
    /// Of the jobs that it submits.
    tags: Option<Vec<String>>,
    /// Of the jobs that it submits.
    expires_after_ms: Option<u64>,
    /// 1, and one more for each replacement.
    spec_version: Option<u32>,
    /// Whether it stands still.
    paused: Option<bool>,
    /// Its next tick.
    next: Option<String>,
    /// Up to when every tick is decided.
    cursor: Option<String>,
    /// How many ticks got a job.
    ticked: Option<u64>,
    /// How many did not.
    passed_over: Option<u64>,
    /// The last one that got its job.
    last_tick: Option<String>,
    /// That job.
    last_job: Option<String>,
    /// The last ones that did not: `{why, from, through, count}`.
    last_passed: Option<serde_json::Value>,
    /// When it was added.
    created_at: Option<String>,
    /// Why its record cannot be read.
    error: Option<String>,
}

fn told(what: String, status: StatusCode, schedule: impl serde::Serialize) -> Response {
    let mut answer = (status, Answer(schedule)).into_response();
    answer.extensions_mut().insert(Told(what));
    answer
}

/// List the schedules.
#[utoipa::path(
    get, path = "/v1/schedules", tag = "schedules", security(("token" = ["read"])),
    responses(
        (status = 200, description = "All schedules, by name", body = Vec<ScheduleDocument>),
        (status = "4XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_schedules(State(app): State<App>) -> Result<Answer<Vec<ScheduleView>>, Problem> {
    Ok(Answer(app.client.schedules().list().await?))
}

/// Add a schedule.
///
/// The same name and spec again is the same schedule; another spec is a conflict, unless it replaces.
#[utoipa::path(
    post, path = "/v1/schedules", tag = "schedules", security(("token" = ["operate"])),
    request_body = NewSchedule,
    responses(
        (status = 201, description = "It was not there", body = ScheduleDocument),
        (status = 200, description = "It was there, or is replaced", body = ScheduleDocument),
        (status = 409, description = "Another one has this name", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Nothing was done", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was done, or unknown", body = Problem, content_type = "application/problem+json"),
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
        Added::Same => (StatusCode::OK, "was there"),
        Added::Replaced => (StatusCode::OK, "replaced"),
    };
    Ok(told(format!("schedule {id} {done}"), status, schedules.get(&id).await?))
}

/// Show a schedule.
#[utoipa::path(
    get, path = "/v1/schedules/{id}", tag = "schedules", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The schedule's name")),
    responses(
        (status = 200, description = "The schedule as it is now", body = ScheduleDocument),
        (status = "4XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No answer", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_schedule(
    State(app): State<App>,
    ScheduleName(id): ScheduleName,
) -> Result<Answer<ScheduleView>, Problem> {
    Ok(Answer(app.client.schedules().get(&id).await?))
}

/// Remove a schedule.
///
/// Its jobs stay.
#[utoipa::path(
    delete, path = "/v1/schedules/{id}", tag = "schedules", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The schedule's name")),
    responses(
        (status = 204, description = "It is not there any more, or never was"),
        (status = "4XX", description = "Nothing was done", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was done, or unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn remove_schedule(
    State(app): State<App>,
    ScheduleName(id): ScheduleName,
) -> Result<Response, Problem> {
    let there = app.client.schedules().remove(&id).await?;
    let mut answer = StatusCode::NO_CONTENT.into_response();
    let done = if there { "removed" } else { "was not there" };
    answer.extensions_mut().insert(Told(format!("schedule {id} {done}")));
    Ok(answer)
}

/// Make a schedule stand still.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/pause", tag = "schedules", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The schedule's name")),
    responses(
        (status = 200, description = "It is paused", body = ScheduleDocument),
        (status = "4XX", description = "Nothing was done", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was done, or unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pause_schedule(
    State(app): State<App>,
    ScheduleName(id): ScheduleName,
) -> Result<Response, Problem> {
    let view = app.client.schedules().pause(&id).await?;
    Ok(told(format!("schedule {id} paused"), StatusCode::OK, view))
}

/// Make a schedule go on, with the first tick after now.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/resume", tag = "schedules", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The schedule's name")),
    responses(
        (status = 200, description = "It ticks", body = ScheduleDocument),
        (status = "4XX", description = "Nothing was done", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was done, or unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn resume_schedule(
    State(app): State<App>,
    ScheduleName(id): ScheduleName,
) -> Result<Response, Problem> {
    let view = app.client.schedules().resume(&id).await?;
    Ok(told(format!("schedule {id} resumed"), StatusCode::OK, view))
}

/// Submit a schedule's job now, beside its ticks.
///
/// Asking again makes another job.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/trigger", tag = "schedules", security(("token" = ["operate"])),
    params(("id" = String, Path, description = "The schedule's name")),
    responses(
        (status = 201, description = "The job; `Location` tells where it is", body = Submitted),
        (status = "4XX", description = "Nothing was done", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "Nothing was done, or unknown", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn trigger_schedule(
    State(app): State<App>,
    ScheduleName(id): ScheduleName,
) -> Result<Response, Problem> {
    Ok(accepted(&app.client.schedules().trigger(&id).await?))
}
