//! The parts of a schedule. To create one, see [`Schedule`](crate::Schedule).

use std::fmt;
use std::time::{Duration, SystemTime};

use bellwether_core::schedule as core;
use bellwether_core::time::WallMillis;

use serde::Serialize;

pub use bellwether_core::schedule::{
    CronExpression, DEFAULT_GRACE, MAX_CATCH_UP, MAX_INTERVAL, MIN_INTERVAL, Overlap, SkipReason, SpecError,
    Zone,
};

use crate::{JobId, ScheduleId};

/// What happens to ticks that were missed because there was no leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
pub enum Misfire {
    /// No missed tick gets a job.
    Skip,
    /// The last missed tick gets a job, on behalf of all of them.
    #[default]
    Once,
    /// The last missed ticks get their jobs, in order.
    CatchUp,
}

bellwether_core::impl_deserialize_by_name!(Misfire);

bellwether_core::impl_names!(Misfire { Skip = "skip", Once = "once", CatchUp = "catch_up" });

/// When a schedule ticks. Instants have a resolution of a millisecond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// At the local times in a zone that match an expression.
    Cron {
        /// The expression.
        expression: CronExpression,
        /// The zone.
        zone: Zone,
    },
    /// At the anchor and every interval after it.
    Every {
        /// The distance between ticks, [`MIN_INTERVAL`] to [`MAX_INTERVAL`].
        interval: Duration,
        /// The first tick.
        anchor: SystemTime,
    },
    /// At one instant.
    At(SystemTime),
}

impl When {
    /// Returns at most `count` next ticks after an instant.
    ///
    /// # Errors
    /// [`SpecError`] for an expression or a zone that this build does not know, which only a stored schedule of
    /// another build can contain.
    pub fn ticks_after(&self, after: SystemTime, count: usize) -> Result<Vec<SystemTime>, SpecError> {
        let calendar = self.stored().calendar()?;
        Ok(calendar.ticks_after(stored(after)).take(count).map(SystemTime::from).collect())
    }

    /// Returns at most `count` ticks at or before an instant, the latest first.
    ///
    /// # Errors
    /// The errors of [`When::ticks_after`].
    pub fn ticks_through(&self, through: SystemTime, count: usize) -> Result<Vec<SystemTime>, SpecError> {
        let calendar = self.stored().calendar()?;
        let before = |at: &WallMillis| calendar.last_through(WallMillis(at.0.checked_sub(1)?));
        let ticks = std::iter::successors(calendar.last_through(stored(through)), before);
        Ok(ticks.take(count).map(SystemTime::from).collect())
    }

    pub(crate) fn of(when: core::When) -> Self {
        match when {
            core::When::Cron { expression, zone } => Self::Cron { expression, zone },
            core::When::Every { interval, anchor } => Self::Every { interval, anchor: anchor.into() },
            core::When::At(at) => Self::At(at.into()),
        }
    }

    pub(crate) fn stored(&self) -> core::When {
        match self {
            Self::Cron { expression, zone } => {
                core::When::Cron { expression: expression.clone(), zone: zone.clone() }
            }
            Self::Every { interval, anchor } => {
                core::When::Every { interval: *interval, anchor: stored(*anchor) }
            }
            Self::At(at) => core::When::At(stored(*at)),
        }
    }
}

/// In a few words: `30 2 * * * (Europe/Berlin)`, `every 1m`, `once at 2026-11-21T02:00:00Z`.
impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stored().fmt(f)
    }
}

/// Consecutive ticks that submitted no job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// The reason.
    pub reason: SkipReason,
    /// The first of them.
    pub from: SystemTime,
    /// The last of them.
    pub through: SystemTime,
    /// Their number. For a cron expression, 100 means that many or more.
    pub count: u32,
}

impl Skipped {
    pub(crate) fn of(core::Skipped { reason, ticks }: core::Skipped) -> Self {
        Self { reason, from: ticks.from.into(), through: ticks.through.into(), count: ticks.count }
    }
}

/// Returns the id of the job that the tick of a schedule at this instant submits.
#[must_use]
pub fn tick_id(schedule: &ScheduleId, at: SystemTime) -> JobId {
    core::tick_id(schedule, stored(at))
}

/// Formats an instant as RFC 3339 in UTC, with as few fraction digits as possible: `2026-11-21T02:00:00Z`. It is the
/// form in schedules and in the ids of their jobs.
#[must_use]
pub fn instant(at: SystemTime) -> String {
    core::instant::text(stored(at))
}

/// Converts to milliseconds, clamped to 1970 and to the end of the calendar, where a later check refuses the value.
pub(crate) fn stored(at: SystemTime) -> WallMillis {
    WallMillis::from(at).min(core::instant::END)
}

#[cfg(test)]
mod tests;
