//! A schedule.

use bellwether::ScheduleId;
use bellwether::client::{Added, ScheduleView};
use bellwether::schedule::{Misfire, Skipped, When};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::embedded::embedded;
use super::text::{CronText, ZoneText};
use super::{
    AddedWord, ChangedDocument, DurationText, InstantText, MisfireWord, Options, OverlapWord,
    ScheduleStateWord, SkipReasonWord, Text, Word,
};

/// A schedule. All fields except `id` and `error` are null if its record cannot be read.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[schema(as = Schedule)]
pub struct ScheduleDocument {
    /// Id of the schedule.
    id: String,
    /// State of the schedule.
    #[schema(required)]
    state: Option<ScheduleStateWord>,
    /// The cron expression by which it ticks.
    #[schema(required)]
    cron: Option<CronText>,
    /// The zone of the cron expression.
    #[schema(required)]
    zone: Option<ZoneText>,
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
    misfire: Option<MisfireWord>,
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
    overlap: Option<OverlapWord>,
    /// Kind of its jobs.
    #[schema(required)]
    kind: Option<String>,
    /// Payload of its jobs: JSON unchanged, other text as a string, other bytes as `{content_type, base64}`. Null in a list.
    #[schema(required, value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// Effective options of its jobs.
    #[schema(required)]
    options: Option<Options>,
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
        let (catch_up_limit, catch_up_within) = match record.misfire {
            Misfire::CatchUp { limit, within } => (Some(limit), Some(Text(within))),
            Misfire::Skip | Misfire::Once => (None, None),
        };
        let rule = match &record.when {
            When::Cron { expression, zone } => Self {
                cron: Some(Text(expression.clone())),
                zone: Some(Text(zone.clone())),
                ..Self::default()
            },
            When::Every { interval, anchor } => {
                Self { every: Some(Text(*interval)), anchor: Some(Text(*anchor)), ..Self::default() }
            }
            When::At(at) => Self { at: Some(Text(*at)), ..Self::default() },
        };
        Self {
            id,
            state: view.state().map(Word),
            misfire: Some(Word(record.misfire)),
            catch_up_limit,
            catch_up_within,
            grace: Some(Text(record.grace)),
            overlap: Some(Word(record.overlap)),
            kind: Some(record.kind.to_string()),
            payload: Some(embedded(&record.payload)),
            options: Some(Options(record.options.clone())),
            expires_after: record.expires_after.map(Text),
            job_id: record.job_id.as_ref().map(ToString::to_string),
            spec_version: Some(record.spec_version),
            paused: Some(record.paused),
            next: record.next.map(Text),
            cursor: Some(Text(record.cursor)),
            ticked: Some(record.ticked),
            skipped: Some(record.skipped),
            last_tick: record.last_tick.map(Text),
            last_job: view.last_job().map(|job| job.to_string()),
            last_skipped: record.last_skipped.as_ref().map(Into::into),
            created_at: Some(Text(record.created_at)),
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
    added: AddedWord,
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
        Self { added: Word(added), schedule: read.map_or_else(unread, Into::into) }
    }
}

/// Consecutive ticks that got no job.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Skipped)]
struct SkippedDocument {
    /// Why they got no job.
    reason: SkipReasonWord,
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
            reason: Word(skipped.reason),
            from: Text(skipped.from),
            through: Text(skipped.through),
            count: skipped.count,
        }
    }
}
