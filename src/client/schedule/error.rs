//! Errors of schedules.

use std::time::{Duration, SystemTime};

use bellwether_core::budget::MAX_SCHEDULES;
use bellwether_core::name::{JobId, NameError, ScheduleId};
use bellwether_core::remedy::{ErrorClass, Remedy};
use bellwether_core::schedule::SpecError;
use bellwether_core::wire::WireError;

use crate::client::error::{Error, SubmitError, Unavailable};
use crate::client::job::JobError;
use crate::codec::CodecError;
use crate::schedule::instant;

/// A schedule was not created, changed or found. No change is partial.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
    /// A new rule would never tick. Nothing was sent.
    #[error("schedule {id} would never tick: {} is in the past", instant(*.at))]
    Past {
        /// The schedule.
        id: ScheduleId,
        /// Its only instant.
        at: SystemTime,
    },
    /// A schedule of this id exists with another spec.
    #[error("schedule {id} exists with another {differs}: replace it, or choose another id")]
    Conflict {
        /// The id.
        id: ScheduleId,
        /// The first difference.
        differs: &'static str,
    },
    /// The namespace has the maximum number of schedules. Nothing was written.
    #[error(
        "there are {schedules} schedules of at most {MAX_SCHEDULES}: remove some, or use another namespace"
    )]
    TooMany {
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
    /// safe.
    #[error("unknown: the change of schedule {id} may or may not have been applied within {within:?}")]
    Unknown {
        /// The schedule.
        id: ScheduleId,
        /// The deadline.
        within: Duration,
    },
    /// A trigger was sent and no reply came in time: its job may or may not have been submitted. Repeating the call
    /// may submit a second job. Read the job first ([`Client::get`](crate::Client::get)): if it exists, the trigger
    /// was applied.
    #[error(
        "unknown: the trigger of schedule {id} may or may not have submitted job {job} within {within:?}; \
         read the job before you trigger again"
    )]
    TriggerUnknown {
        /// The schedule.
        id: ScheduleId,
        /// The job.
        job: JobId,
        /// The deadline.
        within: Duration,
    },
    /// The trigger of a schedule with a job id failed.
    #[error(transparent)]
    Submit(Box<SubmitError>),
    /// The client's codec cannot encode the payload of the schedule's jobs, or it asks to decode the stored one later. Nothing
    /// was written.
    #[error("the payload of schedule {id} cannot be encoded, or compared with the stored one")]
    Codec {
        /// The schedule.
        id: ScheduleId,
        /// The reason.
        #[source]
        source: CodecError,
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

impl ScheduleError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Name(_) | Self::Invalid(_) | Self::Job(_) | Self::JobOwns { .. } | Self::Past { .. } => {
                ErrorClass::Invalid
            }
            // Schedules stay until a client removes them, so a retry alone does not help.
            Self::Conflict { .. } | Self::TooMany { .. } => ErrorClass::Conflict,
            Self::NotFound(_) => ErrorClass::NotFound,
            Self::Unreadable { .. } => ErrorClass::Unreadable,
            Self::Contended { .. } => ErrorClass::Contended,
            Self::Unknown { .. } | Self::TriggerUnknown { .. } => ErrorClass::Unknown,
            Self::Submit(error) => error.class(),
            Self::Codec { source, .. } if source.is_retryable() => source.class(),
            Self::Codec { .. } => ErrorClass::Invalid,
            Self::Client(error) => error.class(),
        }
    }

    /// Returns the job that the error is about, if it is about one.
    #[must_use]
    pub fn job(&self) -> Option<&JobId> {
        match self {
            Self::TriggerUnknown { job, .. } => Some(job),
            Self::Submit(error) => error.job(),
            Self::Client(error) => error.job(),
            Self::Name(_)
            | Self::Invalid(_)
            | Self::Job(_)
            | Self::JobOwns { .. }
            | Self::Past { .. }
            | Self::Conflict { .. }
            | Self::TooMany { .. }
            | Self::NotFound(_)
            | Self::Unreadable { .. }
            | Self::Contended { .. }
            | Self::Codec { .. }
            | Self::Unknown { .. } => None,
        }
    }

    /// Returns what the caller can do.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::TriggerUnknown { .. } => Remedy::ReadBack,
            Self::Submit(error) => error.remedy(),
            error => error.class().remedy(),
        }
    }
}

bellwether_core::impl_remedy!(@retryable ScheduleError);
