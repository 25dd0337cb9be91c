//! A schedule.

use bellwether::client::ScheduleView;
use bellwether::schedule::{Misfire, When, instant};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::embedded::embedded;
use super::{ChangedDocument, DurationText, MisfireWord, Options, OverlapWord, Text, Word};

/// A schedule. All fields except `id` and `error` are null if its record cannot be read.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[schema(as = Schedule)]
pub struct ScheduleDocument {
    /// Name of the schedule.
    id: String,
    /// `ticking`, `paused`, or `ended` after the last tick.
    #[schema(required)]
    state: Option<String>,
    /// `{cron, zone}`, `{every, anchor}` or `{at}`.
    #[schema(required)]
    when: Option<Value>,
    /// What happens to ticks that were missed because there was no leader.
    #[schema(required)]
    misfire: Option<MisfireWord>,
    /// With misfire `catch_up`: maximum number of missed ticks that get a job.
    #[schema(required)]
    catch_up: Option<u32>,
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
    next: Option<String>,
    /// The instant up to which all ticks are decided.
    #[schema(required)]
    cursor: Option<String>,
    /// Number of ticks that got a job.
    #[schema(required)]
    ticked: Option<u64>,
    /// Number of ticks that were skipped.
    #[schema(required)]
    skipped: Option<u64>,
    /// The last tick that got a job.
    #[schema(required)]
    last_tick: Option<String>,
    /// The job of that tick.
    #[schema(required)]
    last_job: Option<String>,
    /// The last skipped ticks: `{reason, from, through, count}`.
    #[schema(required)]
    last_skipped: Option<Value>,
    /// When the schedule was added.
    #[schema(required)]
    created_at: Option<String>,
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
        let (catch_up, catch_up_within) = match record.misfire {
            Misfire::CatchUp { at_most, within } => (Some(at_most), Some(Text(within))),
            Misfire::Skip | Misfire::Once => (None, None),
        };
        Self {
            id,
            state: Some(view.state().to_owned()),
            when: Some(when(&record.when)),
            misfire: Some(Word(record.misfire)),
            catch_up,
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
            next: record.next.map(instant),
            cursor: Some(instant(record.cursor)),
            ticked: Some(record.ticked),
            skipped: Some(record.skipped),
            last_tick: record.last_tick.map(instant),
            last_job: view.last_job().map(|job| job.to_string()),
            last_skipped: record.last_skipped.map(|skipped| {
                let (from, through) = (instant(skipped.from), instant(skipped.through));
                json!({ "reason": skipped.reason.as_str(), "from": from, "through": through, "count": skipped.count })
            }),
            created_at: Some(instant(record.created_at)),
            changed: record.changed.as_ref().map(Into::into),
            error: None,
        }
    }
}

impl ScheduleDocument {
    /// The documents of a list. Payloads are left out, because all of them together can be large.
    pub fn list(views: &[ScheduleView]) -> Vec<Self> {
        views.iter().map(|view| Self { payload: None, ..view.into() }).collect()
    }
}

fn when(when: &When) -> Value {
    match when {
        When::Cron { expression, zone } => json!({ "cron": expression.as_str(), "zone": zone.as_str() }),
        When::Every { interval, anchor } => {
            json!({ "every": Text(*interval), "anchor": instant(*anchor) })
        }
        When::Once(at) => json!({ "at": instant(*at) }),
    }
}
