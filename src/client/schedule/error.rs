//! What can go wrong with a schedule, by what the caller can do about it.

use std::time::Duration;

use bellwether_core::budget::MAX_SCHEDULES;
use bellwether_core::name::{NameError, ScheduleId};
use bellwether_core::schedule::{SpecError, instant};
use bellwether_core::time::WallMillis;
use bellwether_core::wire::WireError;

use crate::client::error::{Error, Unavailable};
use crate::client::job::JobError;

/// Why a schedule was not made, changed or found. Nothing is half-written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Its name is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Something in it is wrong. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] SpecError),
    /// What it submits is wrong. Nothing was sent.
    #[error(transparent)]
    Job(#[from] JobError),
    /// Its job says what is the schedule's to say. Nothing was sent.
    #[error("the job of a schedule has no {field} of its own: {instead}")]
    JobOwns {
        /// What it has.
        field: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// It would never tick. Nothing was sent.
    #[error("schedule {id} would never tick: {} is in the past", instant::text(*.at))]
    Past {
        /// Which schedule.
        id: ScheduleId,
        /// Its one instant.
        at: WallMillis,
    },
    /// Another schedule has this name.
    #[error("schedule {id} is there with another {differs}: replace it, or choose another name")]
    Conflict {
        /// Which name.
        id: ScheduleId,
        /// The first thing in which the two differ.
        differs: &'static str,
    },
    /// There are as many schedules as there may be. Nothing was written.
    #[error(
        "overloaded: there are {schedules} schedules of at most {MAX_SCHEDULES}: remove some, or use another namespace"
    )]
    Overloaded {
        /// How many there are.
        schedules: usize,
    },
    /// There is no such schedule.
    #[error("there is no schedule {0}")]
    NotFound(ScheduleId),
    /// Its stored bytes cannot be read, so that it can only be removed.
    #[error("the stored record of schedule {id} cannot be read")]
    Unreadable {
        /// Which schedule.
        id: ScheduleId,
        /// Why.
        #[source]
        reason: WireError,
    },
    /// It changed again and again while it was being changed.
    #[error("schedule {id} changed {tries} times while it was being changed: try again")]
    Contended {
        /// Which schedule.
        id: ScheduleId,
        /// How often it was tried.
        tries: u32,
    },
    /// What was asked for was sent and no answer came in time: it may or may not have been done. Doing it again is
    /// safe; a trigger may then have made two jobs.
    #[error("unknown: what was asked of schedule {id} may or may not have been done within {within:?}")]
    Unknown {
        /// Which schedule.
        id: ScheduleId,
        /// The deadline.
        within: Duration,
    },
    /// The question could not be asked.
    #[error(transparent)]
    Client(#[from] Error),
}

impl From<Unavailable> for ScheduleError {
    fn from(error: Unavailable) -> Self {
        Self::Client(error.into())
    }
}
