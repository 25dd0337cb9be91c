//! Schedules: what submits a job at each *tick*.
//!
//! ```text
//! When ──calendar()──▶ Calendar: next_after, last_through     pure functions of an instant
//!                          │
//! ScheduleRecord: cursor ──┴── due(…, now) ──▶ tick · pass over · later
//! ```
//!
//! Time comes in as an argument, and the zones' rules are compiled in, so that all nodes of one build agree on every
//! tick. What a tick becomes in ZooKeeper is [`crate::txn`]'s, who makes it [`crate::machine::schedule_keeper`]'s.

mod calendar;
mod cron;
mod due;
pub mod instant;
mod record;
mod spec;
mod when;

pub use calendar::Calendar;
pub use cron::{CronExpression, MAX_EXPRESSION_BYTES};
pub use due::{Due, MAX_CATCH_UP, MAX_COUNTED, MAX_SEARCHES, Misfire, Missed, due, missed};
pub use record::{Passed, PassedOver, ScheduleRecord, lane, parse_tick, tick_id};
pub use spec::{DEFAULT_GRACE, Overlap, ScheduleSpec, Template};
pub use when::{MAX_INTERVAL, MIN_INTERVAL, When, Zone};

use crate::job::PolicyError;
use crate::name::Lane;

/// Why a schedule cannot be. The text names the field, the bound and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The expression has too few or too many fields.
    #[error(
        "cron expression {given:?} has {count} fields: give 5 (minute, hour, day of month, month, day of week), \
         or 6 with the second before them"
    )]
    Fields {
        /// The expression.
        given: String,
        /// How many it has.
        count: usize,
    },
    /// A field of the expression is wrong.
    #[error("cron field {field} is {given:?}: {allowed} is allowed")]
    Field {
        /// Which field.
        field: &'static str,
        /// What was given.
        given: String,
        /// What it may be.
        allowed: String,
    },
    /// No day has what the expression asks for.
    #[error("cron expression \"{0}\" never comes: no day until 2500 has it")]
    Never(CronExpression),
    /// There is no such zone.
    #[error(
        "zone {given:?} is not an IANA zone that this build knows: give one such as Europe/Berlin or UTC"
    )]
    Zone {
        /// What was given.
        given: String,
    },
    /// Something is out of its bounds.
    #[error("{field} must be {allowed}, not {given}")]
    Bound {
        /// What.
        field: &'static str,
        /// Its bounds.
        allowed: String,
        /// What was given.
        given: String,
    },
    /// Its jobs would have two lanes.
    #[error(
        "a schedule whose ticks queue has a lane of its own, not {0}: leave the lane out, or let its ticks overlap"
    )]
    Lane(Lane),
    /// A bound of its jobs is out of its range.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}
