//! A schedule.

use bellwether::client::{Added, JobOptions, ScheduleState, ScheduleView};
use bellwether::schedule::{CronExpression, Misfire, Overlap, SkipReason, Skipped, When, Zone};
use bellwether::{DurationText, InstantText, ScheduleId};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::ChangedDocument;
use super::embedded::embedded;

/// A schedule. All fields except `id` and `error` are null if its record cannot be read.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[schema(as = Schedule)]
pub struct ScheduleDocument {
    /// Id of the schedule.
    id: String,
    /// State of the schedule.
    #[schema(required)]
    state: Option<ScheduleState>,
    /// The cron expression by which it ticks.
    #[schema(required)]
    cron: Option<CronExpression>,
    /// The zone of the cron expression.
    #[schema(required)]
    zone: Option<Zone>,
    /// The interval at which it ticks.
    #[schema(required)]
    every: Option<DurationText>,
    /// The start of the interval.
    #[schema(required)]
    anchor: Option<InstantText>,
    /// The only instant at which it ticks.
    #[schema(required)]
    at: Option<InstantText>,
    /// What happens to ticks that were missed because there was no leader.
    #[schema(required)]
    misfire: Option<Misfire>,
    /// With misfire `catch_up`: maximum number of missed ticks that get a job.
    #[schema(required)]
    catch_up_limit: Option<u32>,
    /// With misfire `catch_up`: maximum age of missed ticks that get a job.
    #[schema(required)]
    catch_up_within: Option<DurationText>,
    /// How late a tick may be without being missed.
    #[schema(required)]
    grace: Option<DurationText>,
    /// What happens to a tick while the job of the last tick has not ended.
    #[schema(required)]
    overlap: Option<Overlap>,
    /// Kind of its jobs.
    #[schema(required)]
    kind: Option<String>,
    /// Payload of its jobs: JSON unchanged, other text as a string, other bytes as `{content_type, base64}`. Null in a list.
    #[schema(required, value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// Effective options of its jobs.
    #[schema(required)]
    options: Option<JobOptions>,
    /// Expiry of its jobs, counted from the tick.
    #[schema(required)]
    expires_after: Option<DurationText>,
    /// Id of the job of every tick; null: each tick has its own job.
    #[schema(required)]
    job_id: Option<String>,
    /// 1, plus one for each replacement.
    #[schema(required)]
    spec_version: Option<u32>,
    /// Whether the schedule is paused.
    #[schema(required)]
    paused: Option<bool>,
    /// The next tick.
    #[schema(required)]
    next: Option<InstantText>,
    /// The instant up to which all ticks are decided.
    #[schema(required)]
    cursor: Option<InstantText>,
    /// Number of ticks that got a job.
    #[schema(required)]
    ticked: Option<u64>,
    /// Number of ticks that were skipped.
    #[schema(required)]
    skipped: Option<u64>,
    /// The last tick that got a job.
    #[schema(required)]
    last_tick: Option<InstantText>,
    /// The job of that tick.
    #[schema(required)]
    last_job: Option<String>,
    /// The last skipped ticks.
    #[schema(required)]
    last_skipped: Option<SkippedDocument>,
    /// When the schedule was added.
    #[schema(required)]
    created_at: Option<InstantText>,
    /// Who added, changed, paused or resumed the schedule last; null if only the cluster did.
    #[schema(required)]
    changed: Option<ChangedDocument>,
    /// Why the record cannot be read.
    #[schema(required)]
    error: Option<String>,
}

impl From<&ScheduleView> for ScheduleDocument {
    fn from(view: &ScheduleView) -> Self {
        let id = view.id.to_string();
        let record = match &view.record {
            Ok(record) => record,
            Err(error) => return Self { id, error: Some(error.to_string()), ..Self::default() },
        };
        let rule = match &record.when {
            When::Cron { expression, zone } => {
                Self { cron: Some(expression.clone()), zone: Some(zone.clone()), ..Self::default() }
            }
            When::Every { interval, anchor } => Self {
                every: Some(DurationText(*interval)),
                anchor: Some(InstantText(*anchor)),
                ..Self::default()
            },
            When::At(at) => Self { at: Some(InstantText(*at)), ..Self::default() },
        };
        Self {
            id,
            state: view.state(),
            misfire: Some(record.misfire),
            catch_up_limit: record.catch_up_limit,
            catch_up_within: record.catch_up_within.map(DurationText),
            grace: Some(DurationText(record.grace)),
            overlap: Some(record.overlap),
            kind: Some(record.kind.to_string()),
            payload: Some(embedded(&record.payload)),
            options: Some(record.options.clone()),
            expires_after: record.expires_after.map(DurationText),
            job_id: record.job_id.as_ref().map(ToString::to_string),
            spec_version: Some(record.spec_version),
            paused: Some(record.paused),
            next: record.next.map(InstantText),
            cursor: Some(InstantText(record.cursor)),
            ticked: Some(record.ticked),
            skipped: Some(record.skipped),
            last_tick: record.last_tick.map(InstantText),
            last_job: view.last_job().map(|job| job.to_string()),
            last_skipped: record.last_skipped.as_ref().map(Into::into),
            created_at: Some(InstantText(record.created_at)),
            changed: record.changed.as_ref().map(Into::into),
            ..rule
        }
    }
}

impl ScheduleDocument {
    /// The documents of a list. Payloads are left out, because all of them together can be large.
    pub fn list(views: &[ScheduleView]) -> Vec<Self> {
        views.iter().map(|view| Self { payload: None, ..view.into() }).collect()
    }
}

/// A schedule, and what adding it did.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = AddedSchedule)]
pub struct AddedScheduleDocument {
    /// What adding it did.
    added: Added,
    /// The schedule as it is now.
    #[serde(flatten)]
    schedule: ScheduleDocument,
}

impl AddedScheduleDocument {
    /// Returns the document of a schedule. It is read after it is added; `Err` has the reason if that failed, as its caller may see it.
    pub fn new(id: &ScheduleId, added: Added, read: Result<&ScheduleView, String>) -> Self {
        let unread = |reason| ScheduleDocument {
            id: id.to_string(),
            error: Some(format!("the schedule is {}, and could not be read: {reason}", added.as_str())),
            ..ScheduleDocument::default()
        };
        Self { added, schedule: read.map_or_else(unread, Into::into) }
    }
}

/// Consecutive ticks that got no job.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Skipped)]
struct SkippedDocument {
    /// Why they got no job.
    reason: SkipReason,
    /// The first of them.
    from: InstantText,
    /// The last of them.
    through: InstantText,
    /// Their number. For a cron expression, 100 means that many or more.
    count: u32,
}

impl From<&Skipped> for SkippedDocument {
    fn from(skipped: &Skipped) -> Self {
        Self {
            reason: skipped.reason,
            from: InstantText(skipped.from),
            through: InstantText(skipped.through),
            count: skipped.count,
        }
    }
}
