//! What is known of one schedule, and where it stands.

use super::calendars::Rules;
use super::event::Stamp;
use crate::name::ScheduleId;
use crate::schedule::{Calendar, Missed, Passed, ScheduleRecord, tick_id};
use crate::time::WallMillis;
use crate::txn::{self, Op};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Known {
    pub(super) stamp: Option<Stamp>,
    pub(super) record: Option<Box<ScheduleRecord>>,
    pub(super) calendar: Option<Rules>,
    pub(super) state: ScheduleState,
    /// Hints that came while it was read or written.
    pub(super) hints: u32,
    /// Hints of our own writes that have not come yet.
    pub(super) echoes: u32,
    pub(super) puzzles: u32,
    /// The lists that had been asked for when it was heard of first.
    pub(super) round: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) enum ScheduleState {
    /// To be read.
    #[default]
    Unread,
    Reading,
    /// For this tick; `None` is for a hint.
    Waiting(Option<WallMillis>),
    /// Its last tick's job is to be read.
    ToCheck(Write),
    Checking(Write),
    Ready(Write),
    MakingLane(Write),
    Committing(Write),
    /// For the next list.
    Puzzling,
}

/// A write on its way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Write {
    pub(super) serial: u64,
    pub(super) plan: Plan,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Plan {
    Tick {
        at: WallMillis,
        before: Option<Missed>,
        /// The version in which the last tick's job is over, where that matters.
        over: Option<i32>,
    },
    PassOver(Passed),
}

impl ScheduleState {
    pub(super) fn write(&self) -> Option<&Write> {
        match self {
            Self::ToCheck(write)
            | Self::Checking(write)
            | Self::Ready(write)
            | Self::MakingLane(write)
            | Self::Committing(write) => Some(write),
            Self::Unread | Self::Reading | Self::Waiting(_) | Self::Puzzling => None,
        }
    }

    /// Whether it takes one of the places between due and answered.
    pub(super) fn is_busy(&self) -> bool {
        self.write().is_some()
    }
}

impl Known {
    pub(super) fn next(&self) -> Option<WallMillis> {
        let calendar: &Calendar = self.calendar.as_deref()?;
        self.record.as_ref()?.next(calendar)
    }

    fn after(&self, plan: &Plan) -> Option<ScheduleRecord> {
        let record = self.record.as_deref()?.clone();
        Some(match plan {
            Plan::Tick { at, before, .. } => record.ticked(*at, *before),
            Plan::PassOver(passed) => record.passed(*passed),
        })
    }

    /// What was committed is what is known.
    pub(super) fn apply(&mut self, plan: &Plan) {
        self.record = self.after(plan).map(Box::new);
        if let Some(stamp) = &mut self.stamp {
            stamp.version += 1;
        }
    }

    pub(super) fn ops(&self, schedule: &ScheduleId, plan: &Plan, now: WallMillis) -> Option<Vec<Op>> {
        let (record, version) = (self.record.as_deref()?, self.stamp?.version);
        let after = self.after(plan)?;
        Some(match plan {
            Plan::Tick { at, over, .. } => {
                let (job, made) = after.tick_job(schedule, *at, now);
                let last = record.last_tick.map(|last| tick_id(schedule, last));
                let over = last.as_ref().zip(*over);
                txn::tick(schedule, version, &after, (&job, &made), over)
            }
            Plan::PassOver(_) => txn::set_schedule(schedule, version, &after),
        })
    }
}
