//! The known data and the state of one schedule.

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
    /// Hints received during a read or write.
    pub(super) hints: u32,
    /// Expected hints of this leader's own writes.
    pub(super) echoes: u32,
    pub(super) puzzles: u32,
    /// The number of lists requested when the schedule was first seen.
    pub(super) round: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) enum ScheduleState {
    /// Needs a read.
    #[default]
    Unread,
    Reading,
    /// Waits for this tick; `None`: waits for a hint.
    Waiting(Option<WallMillis>),
    /// The job of the last tick must be read.
    ToCheck(Write),
    Checking(Write),
    Ready(Write),
    MakingLane(Write),
    Committing(Write),
    /// Waits for the next list, after unexplained rejections.
    Puzzling,
}

/// A pending write.
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
        /// The version at which the last tick's job is terminal, if the overlap policy needs it.
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

    /// Whether the schedule uses one of the slots for prepared or unanswered writes.
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

    /// Updates the known data with a committed plan.
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
