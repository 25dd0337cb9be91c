//! `/v1/ticks`, the next ticks of a rule, and the ticks of a schedule.

use std::time::SystemTime;

use axum::Json as Answer;
use axum::extract::State;
use bellwether::client::ScheduleRecordView;
use bellwether::schedule::{instant, tick_id};
use bellwether::{JobId, ScheduleId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::{QueryParameters, ScheduleName};
use crate::problem::{Fault, Problem};
use crate::state::App;
use bellwether_documents::{PreviewedRule, StateWord, TickQuery, Word};

/// The next ticks of a rule.
#[derive(Serialize, ToSchema)]
pub(super) struct NextTicks {
    /// The ticks, the earliest first. Empty if there are none.
    next: Vec<String>,
}

/// The ticks of a schedule.
#[derive(Serialize, ToSchema)]
pub(super) struct ScheduleTicks {
    /// The next ticks, the earliest first; empty while the schedule is paused.
    next: Vec<String>,
    /// The last ticks by the present rule since the schedule was added, the latest first.
    last: Vec<LastTick>,
}

/// A tick that is decided.
#[derive(Serialize, ToSchema)]
pub(super) struct LastTick {
    /// When it was due.
    at: String,
    /// Its job; null if it got none, or if the record of its job was removed. If all ticks start the same job, only the last
    /// tick that did so has it.
    #[schema(required)]
    job: Option<String>,
    /// State of the job.
    #[schema(required)]
    state: Option<StateWord>,
}

/// Show the next ticks of a rule, before a schedule is added or changed.
#[utoipa::path(
    get, path = "/v1/ticks", tag = "schedules", security(("token" = ["read"])),
    params(PreviewedRule),
    responses(
        (status = 200, description = "The next ticks", body = NextTicks),
    )
)]
pub(super) async fn preview_ticks(
    QueryParameters(rule): QueryParameters<PreviewedRule>,
) -> Result<Answer<NextTicks>, Problem> {
    let ticks = rule.ticks(SystemTime::now())?;
    Ok(Answer(NextTicks { next: ticks.into_iter().map(instant).collect() }))
}

/// Show the next and the last ticks of a schedule, with the jobs of the last ones.
#[utoipa::path(
    get, path = "/v1/schedules/{id}/ticks", tag = "schedules", security(("token" = ["read"])),
    params(("id" = String, Path, description = "The schedule's name"), TickQuery),
    responses(
        (status = 200, description = "The ticks", body = ScheduleTicks),
    )
)]
pub(super) async fn list_ticks(
    State(app): State<App>,
    ScheduleName(id): ScheduleName,
    QueryParameters(query): QueryParameters<TickQuery>,
) -> Result<Answer<ScheduleTicks>, Problem> {
    let count = query.count()?;
    let unreadable =
        |error: String| Fault::Conflict.because(format!("schedule {id} cannot be read: {error}"));
    let record = app.client.schedules().get(&id).await?.record;
    let record = record.map_err(|error| unreadable(error.to_string()))?;
    let next = if record.paused { Ok(Vec::new()) } else { record.when.ticks_after(record.cursor, count) };
    let next = next.map_err(|error| unreadable(error.to_string()))?;
    let last = record.when.ticks_through(record.cursor, count);
    let last = last.map_err(|error| unreadable(error.to_string()))?;
    let last = last.into_iter().filter(|at| *at > record.created_at);
    let last = last.map(|at| (at, job_of(&id, &record, at))).collect::<Vec<_>>();
    let ids = last.iter().filter_map(|(_, job)| job.clone()).collect::<Vec<_>>();
    let mut jobs = app.client.get_many(&ids).await?.into_iter();
    let last = last.into_iter().map(|(at, job)| {
        let job = job.and_then(|_| jobs.next().flatten());
        let state = job.as_ref().map(|job| Word(job.state));
        LastTick { at: instant(at), job: job.map(|job| job.id.to_string()), state }
    });
    Ok(Answer(ScheduleTicks { next: next.into_iter().map(instant).collect(), last: last.collect() }))
}

/// The id of the job that a tick has if it got one.
fn job_of(id: &ScheduleId, record: &ScheduleRecordView, at: SystemTime) -> Option<JobId> {
    match &record.job_id {
        None => Some(tick_id(id, at)),
        Some(job) => (record.last_tick == Some(at)).then(|| job.clone()),
    }
}
