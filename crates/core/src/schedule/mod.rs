//! Schedules, which submit a job at each *tick*.
//!
//! ```text
//! When ──calendar()──▶ Calendar: next_after, last_through     pure functions of an instant
//!                          │
//! ScheduleRecord: cursor ──┴── due(…, now) ──▶ tick · skip · later
//! ```
//!
//! Time is an argument, and the time zone rules are compiled in, so all nodes of one build agree on every tick.
//! [`crate::txn`] defines the transaction of a tick, [`crate::machine::schedule_keeper`] sends it.

mod calendar;
mod cron;
mod due;
pub mod instant;
mod record;
mod spec;
mod when;

pub use calendar::Calendar;
pub use cron::{CronExpression, MAX_EXPRESSION_BYTES};
pub use due::{Due, MAX_CATCH_UP, MAX_COUNTED, Misfire, Missed, due, missed};
pub use record::{LANE_PREFIX, ScheduleRecord, SkipReason, Skipped, lane, parse_tick, tick_id};
pub use spec::{DEFAULT_GRACE, Overlap, ScheduleSpec, Template};
pub use when::{MAX_INTERVAL, MIN_INTERVAL, When, Zone};

use crate::job::PolicyError;
use crate::name::{JobId, Lane};

/// Why a schedule is invalid. The text contains the field, the bound and a way to proceed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The expression has too few or too many fields.
    #[error(
        "cron expression {given:?} has {count} fields: give 5 (minute, hour, day of month, month, day of week), \
         or 6 with the second before them"
    )]
    Fields {
        /// The expression.
        given: String,
        /// The number of its fields.
        count: usize,
    },
    /// A field of the expression is invalid.
    #[error("cron field {field} is {given:?}: {allowed} is allowed")]
    Field {
        /// The field.
        field: &'static str,
        /// The given value.
        given: String,
        /// The allowed values.
        allowed: String,
    },
    /// The expression matches no day.
    #[error("cron expression \"{0}\" never ticks: no day until 2500 matches it")]
    Never(CronExpression),
    /// The time zone is unknown.
    #[error(
        "zone {given:?} is not an IANA zone that this build knows: give one such as Europe/Berlin or UTC"
    )]
    Zone {
        /// The given name.
        given: String,
    },
    /// There is no rule, or several.
    #[error("give one of cron, every and at")]
    OneRule,
    /// A value is given without another one that it belongs to.
    #[error("{field} needs {needs}")]
    Needs {
        /// The field.
        field: &'static str,
        /// The field that it requires.
        needs: &'static str,
    },
    /// A value is outside its bounds.
    #[error("{field} must be {allowed}, not {given}")]
    Bound {
        /// The field.
        field: &'static str,
        /// Its bounds.
        allowed: String,
        /// The given value.
        given: String,
    },
    /// Its jobs would have two lanes.
    #[error(
        "a schedule whose ticks queue uses its own lane, not {0}: leave the lane out, or let its ticks overlap"
    )]
    Lane(Lane),
    /// Its ticks would wait for each other, but they are one job.
    #[error(
        "a schedule with the job id {0} runs one job at a time and skips ticks meanwhile, so its ticks cannot queue: leave \
         the overlap out"
    )]
    JobId(JobId),
    /// A limit of its jobs is outside its range.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}
