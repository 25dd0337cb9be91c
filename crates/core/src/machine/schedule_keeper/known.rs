//! The known data and the state of one schedule.

use super::calendars::Rules;
use super::event::Stamp;
use crate::job::{JobRecord, identity};
use crate::name::{JobId, ScheduleId};
use crate::schedule::{Calendar, Missed, ScheduleRecord, Skipped};
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
    pub(super) unexplained: u32,
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
    Committing(Write),
    /// Waits for the next list, after unexplained rejections.
    Unexplained,
}

/// A pending write.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Write {
    pub(super) serial: u64,
    pub(super) plan: Plan,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Plan {
    Tick { at: WallMillis, before: Option<Missed>, prior: Prior },
    Skip(Skipped),
}

/// The ended job on which the tick depends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Prior {
    /// There is none, or its record is absent.
    None,
    /// The job of the last tick had ended at this version.
    Last(i32),
    /// The job with the schedule's job id had ended at this version. The tick opens it again.
    Reopened(i32, Box<JobRecord>),
}

impl ScheduleState {
    pub(super) fn write(&self) -> Option<&Write> {
        match self {
            Self::ToCheck(write) | Self::Checking(write) | Self::Ready(write) | Self::Committing(write) => {
                Some(write)
            }
            Self::Unread | Self::Reading | Self::Waiting(_) | Self::Unexplained => None,
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

    /// The job on which the plan depends.
    pub(super) fn prior_job(&self, schedule: &ScheduleId, plan: &Plan) -> Option<JobId> {
        match plan {
            Plan::Tick { .. } => self.record.as_ref()?.prior_job(schedule),
            Plan::Skip(_) => None,
        }
    }

    /// The job id that all ticks share.
    pub(super) fn job_id(&self) -> Option<&JobId> {
        self.record.as_ref()?.spec.template.job_id.as_ref()
    }

    fn after(&self, plan: &Plan) -> Option<ScheduleRecord> {
        let record = self.record.as_deref()?.clone();
        Some(match plan {
            Plan::Tick { at, before, .. } => record.ticked(*at, *before),
            Plan::Skip(skipped) => record.skipped(*skipped),
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
            Plan::Tick { at, prior, .. } => {
                let (job, made) = after.tick_job(schedule, *at, now);
                let last = record.prior_job(schedule);
                let (made, prior) = match (prior, &last) {
                    (Prior::None, _) | (Prior::Last(_), None) => (made, txn::Prior::None),
                    (Prior::Last(version), Some(last)) => (made, txn::Prior::Last(last, *version)),
                    (Prior::Reopened(version, there), _) => {
                        (identity::reopened(made, (**there).clone(), None), txn::Prior::Reopened(*version))
                    }
                };
                txn::tick(schedule, version, &after, (&job, &made), prior)
            }
            Plan::Skip(_) => txn::set_schedule(schedule, version, &after),
        })
    }
}
