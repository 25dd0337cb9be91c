//! Errors of schedules, grouped by how the caller can react.

use std::time::Duration;

use bellwether_core::budget::MAX_SCHEDULES;
use bellwether_core::name::{NameError, ScheduleId};
use bellwether_core::schedule::{SpecError, instant};
use bellwether_core::time::WallMillis;
use bellwether_core::wire::WireError;

use crate::client::error::{Error, Unavailable};
use crate::client::job::JobError;

/// A schedule was not created, changed or found. No change is partial.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The name is malformed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The spec is invalid. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] SpecError),
    /// The job is invalid. Nothing was sent.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The job has a field that the schedule determines. Nothing was sent.
    #[error("the job of a schedule must not set its {field}: {instead}")]
    JobOwns {
        /// The field.
        field: &'static str,
        /// The alternative.
        instead: &'static str,
    },
    /// The schedule would never tick. Nothing was sent.
    #[error("schedule {id} would never tick: {} is in the past", instant::text(*.at))]
    Past {
        /// The schedule.
        id: ScheduleId,
        /// Its only instant.
        at: WallMillis,
    },
    /// A schedule of this name exists with another spec.
    #[error("schedule {id} exists with another {differs}: replace it, or choose another name")]
    Conflict {
        /// The name.
        id: ScheduleId,
        /// The first difference.
        differs: &'static str,
    },
    /// The namespace has the maximum number of schedules. Nothing was written.
    #[error(
        "overloaded: there are {schedules} schedules of at most {MAX_SCHEDULES}: remove some, or use another namespace"
    )]
    Overloaded {
        /// The number of schedules.
        schedules: usize,
    },
    /// The schedule does not exist.
    #[error("there is no schedule {0}")]
    NotFound(ScheduleId),
    /// The stored record cannot be read, so the schedule can only be removed.
    #[error("the stored record of schedule {id} cannot be read")]
    Unreadable {
        /// The schedule.
        id: ScheduleId,
        /// The reason.
        #[source]
        reason: WireError,
    },
    /// The schedule was changed repeatedly during the call.
    #[error("schedule {id} changed {tries} times during the call: try again")]
    Contended {
        /// The schedule.
        id: ScheduleId,
        /// The number of attempts.
        tries: u32,
    },
    /// The change was sent and no reply came in time: it may or may not have been applied. Repeating the call is
    /// safe, but a repeated trigger may submit two jobs.
    #[error("unknown: the change of schedule {id} may or may not have been applied within {within:?}")]
    Unknown {
        /// The schedule.
        id: ScheduleId,
        /// The deadline.
        within: Duration,
    },
    /// A request failed.
    #[error(transparent)]
    Client(#[from] Error),
}

impl From<Unavailable> for ScheduleError {
    fn from(error: Unavailable) -> Self {
        Self::Client(error.into())
    }
}
