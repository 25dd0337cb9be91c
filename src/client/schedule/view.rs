//! A schedule as a client sees it.

use std::time::{Duration, SystemTime};

use bellwether_core::job::Payload;
use bellwether_core::name::{JobId, Kind, ScheduleId};
use bellwether_core::schedule as stored;
use bellwether_core::schedule::{Overlap, ScheduleRecord};
use bellwether_core::wire::{self, WireError};
use serde::Serialize;

use crate::client::author::Changed;
use crate::client::job::JobOptions;
use crate::schedule::{Misfire, Skipped, When, tick_id};

/// A schedule as read at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleView {
    /// Its name.
    pub id: ScheduleId,
    /// The content of its record, or why that cannot be read.
    pub record: Result<ScheduleRecordView, WireError>,
}

/// The content of a schedule's record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleRecordView {
    /// When it ticks.
    pub when: When,
    /// How missed ticks are handled.
    pub misfire: Misfire,
    /// How many missed ticks get a job, if the policy is [`Misfire::CatchUp`].
    pub catch_up_limit: Option<u32>,
    /// How old these may be.
    pub catch_up_within: Option<Duration>,
    /// How late a tick may be and still count as on time.
    pub grace: Duration,
    /// How a tick is handled while the job of the last tick has not ended.
    pub overlap: Overlap,
    /// The kind of its jobs.
    pub kind: Kind,
    /// The payload of its jobs, as it is stored: a client with a codec does not decode it.
    pub payload: Payload,
    /// The options of its jobs, with the defaults of those that were not set.
    pub options: JobOptions,
    /// How long after its tick a job may start; `None`: no limit.
    pub expires_after: Option<Duration>,
    /// The id of the job of every tick; `None`: each tick has its own job.
    pub job_id: Option<JobId>,
    /// 1, plus one for each replacement.
    pub spec_version: u32,
    /// Whether it is paused.
    pub paused: bool,
    /// Its next tick: `None` while it is paused or after the last tick. A tick that is not in the future waits for
    /// the leader.
    pub next: Option<SystemTime>,
    /// Every tick up to here is decided.
    pub cursor: SystemTime,
    /// When it was added, by that client's clock.
    pub created_at: SystemTime,
    /// How many ticks submitted a job.
    pub ticked: u64,
    /// How many ticks did not.
    pub skipped: u64,
    /// The last tick that submitted a job.
    pub last_tick: Option<SystemTime>,
    /// The last ticks that did not.
    pub last_skipped: Option<Skipped>,
    /// Who added, changed, paused or resumed it last.
    pub changed: Option<Changed>,
}

impl ScheduleRecordView {
    fn new(record: ScheduleRecord) -> Self {
        let calendar = record.spec.when.calendar().ok();
        let next = calendar.and_then(|calendar| record.next(&calendar));
        let template = record.spec.template;
        let (misfire, limits) = match record.spec.misfire {
            stored::Misfire::Skip => (Misfire::Skip, None),
            stored::Misfire::Once => (Misfire::Once, None),
            stored::Misfire::CatchUp { limit, within } => (Misfire::CatchUp, Some((limit, within))),
        };
        Self {
            when: When::of(record.spec.when),
            misfire,
            catch_up_limit: limits.map(|(limit, _)| limit),
            catch_up_within: limits.map(|(_, within)| within),
            grace: record.spec.grace,
            overlap: record.spec.overlap,
            options: JobOptions::effective(&template.policy, &template.placement, template.priority),
            kind: template.kind,
            payload: template.payload,
            expires_after: template.expires_after,
            job_id: template.job_id,
            spec_version: record.spec_version,
            paused: record.paused,
            next: next.map(Into::into),
            cursor: record.cursor.into(),
            created_at: record.created_at.into(),
            ticked: record.ticked,
            skipped: record.skipped,
            last_tick: record.last_tick.map(Into::into),
            last_skipped: record.last_skipped.map(Skipped::of),
            changed: record.changed.map(Changed::of),
        }
    }
}

impl ScheduleView {
    pub(super) fn decode(id: ScheduleId, data: &[u8]) -> Self {
        Self::of(id, wire::decode::<ScheduleRecord>(data))
    }

    pub(super) fn of(id: ScheduleId, record: Result<ScheduleRecord, WireError>) -> Self {
        Self { id, record: record.map(ScheduleRecordView::new) }
    }

    /// Returns its [next tick](ScheduleRecordView::next); `None` also if its record cannot be read.
    #[must_use]
    pub fn next(&self) -> Option<SystemTime> {
        self.record.as_ref().ok()?.next
    }

    /// Returns the job of the last tick that submitted one.
    #[must_use]
    pub fn last_job(&self) -> Option<JobId> {
        let record = self.record.as_ref().ok()?;
        let last = record.last_tick?;
        Some(record.job_id.clone().unwrap_or_else(|| tick_id(&self.id, last)))
    }

    /// Returns its state; `None` if its record cannot be read, also because this build does not know its rule.
    #[must_use]
    pub fn state(&self) -> Option<ScheduleState> {
        let record = self.record.as_ref().ok()?;
        Some(match record.next {
            _ if record.paused => ScheduleState::Paused,
            Some(_) => ScheduleState::Ticking,
            None => ScheduleState::Ended,
        })
    }
}

/// State of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ScheduleState {
    /// The next tick is known.
    Ticking,
    /// The schedule is paused.
    Paused,
    /// There are no further ticks.
    Ended,
}

bellwether_core::impl_names!(ScheduleState {
    Ticking = "ticking",
    Paused = "paused",
    Ended = "ended",
});
