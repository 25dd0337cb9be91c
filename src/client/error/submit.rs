//! The errors of a submission.

use std::time::Duration;

use bellwether_core::budget::{MAX_BUCKET_ENTRIES, MAX_MINUTES};
use bellwether_core::group::GroupError;
use bellwether_core::name::{JobId, Kind};
use bellwether_core::outcome::Reason;
use bellwether_core::remedy::{ErrorClass, Remedy};
use bellwether_core::wire::WireError;

use super::{Error, Unavailable};
use crate::client::job::JobError;
use crate::codec::CodecError;

/// A job was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The job is invalid. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] JobError),
    /// The group does not accept the member. Nothing was written.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The group could not be sealed, or its record cannot be read. Nothing was submitted.
    #[error(transparent)]
    Client(Error),
    /// Another job has this id.
    #[error("job id {id} belongs to another job, of kind {kind}{}: choose another id", if *.same_kind { " and another payload" } else { "" })]
    Conflict {
        /// The id.
        id: JobId,
        /// The kind of the existing job.
        kind: Kind,
        /// Whether both jobs have this kind, so that only the payloads differ.
        same_kind: bool,
    },
    /// The bucket that this id belongs to holds the maximum number of jobs. Nothing was sent.
    #[error(
        "overloaded: the bucket of job {id} holds {entries} jobs of at most {MAX_BUCKET_ENTRIES}: \
         use another namespace, keep records for a shorter time, or purge records of ended jobs"
    )]
    Overloaded {
        /// The job that was not accepted.
        id: JobId,
        /// The number of jobs in the bucket.
        entries: usize,
    },
    /// The minute of this job's start holds the maximum number of delayed jobs. Nothing was sent.
    #[error(
        "{entries} jobs of at most {MAX_BUCKET_ENTRIES} wait for the minute in which job {id} starts: \
         choose another minute, or spread the jobs over several minutes"
    )]
    MinuteFull {
        /// The job that was not accepted.
        id: JobId,
        /// The number of jobs in that minute.
        entries: usize,
    },
    /// The maximum number of minutes hold delayed jobs, and the minute of this job would be another one. Nothing was
    /// sent.
    #[error(
        "overloaded: delayed jobs use {minutes} minutes of at most {MAX_MINUTES}, and job {id} needs another: \
         let several jobs share a minute, or submit jobs of the far future later"
    )]
    TooManyMinutes {
        /// The job that was not accepted.
        id: JobId,
        /// The number of minutes.
        minutes: usize,
    },
    /// There was no session in time. Nothing was sent.
    #[error("job {id} was not submitted")]
    NotSent {
        /// The job that was not accepted.
        id: JobId,
        /// The reason.
        #[source]
        reason: Unavailable,
    },
    /// The job was sent and no reply came in time: it may or may not have been accepted.
    ///
    /// Submitting a job with an id again is safe: it is accepted at most once. Two cases are different, and their remedy is
    /// [`Remedy::ReadBack`]:
    ///
    /// * A job without an id gets another id with each submission, so read this id. A missing job may still be created: the client
    ///   repeats a batch that contains it until the deadlines of the batch's other callers.
    /// * With [`IfExists::Again`](crate::client::IfExists::Again), another submission would open a job again that was accepted
    ///   and has ended in the meantime.
    #[error(
        "unknown: job {id} may or may not have been accepted within {within:?}; {}",
        if *.repeatable { "submit it again with the same id" } else { "read it to find out" }
    )]
    Unknown {
        /// The job.
        id: JobId,
        /// Whether the same submission again is the same job, whatever happened to this one.
        repeatable: bool,
        /// The deadline.
        within: Duration,
    },
    /// ZooKeeper refused the job.
    #[error("ZooKeeper refused job {id}")]
    Refused {
        /// The job that was not accepted.
        id: JobId,
        /// The reason.
        #[source]
        reason: Reason,
    },
    /// The id is in use, and the stored record cannot be read.
    #[error("job id {id} is in use, and its stored record cannot be read")]
    Unreadable {
        /// The id.
        id: JobId,
        /// The reason.
        #[source]
        reason: WireError,
    },
    /// The client's codec cannot encode the payload. Nothing was sent.
    #[error("the payload of job {id} cannot be encoded")]
    Encode {
        /// The job that was not accepted.
        id: JobId,
        /// The reason.
        #[source]
        source: CodecError,
    },
    /// The id is in use, and the client's codec cannot decode the stored payload to compare it with this one. Nothing was
    /// changed.
    #[error(
        "job id {id} is in use, and its stored payload cannot be decoded to compare it: choose another id, or give the \
         client the codec and the key that encoded it"
    )]
    Undecodable {
        /// The id.
        id: JobId,
        /// The reason.
        #[source]
        source: CodecError,
    },
}

impl SubmitError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Invalid(_) => ErrorClass::Invalid,
            Self::Group(error) => error.class(),
            Self::Client(error) => error.class(),
            // Another start time is needed, unless jobs of this minute are cancelled.
            Self::Conflict { .. } | Self::MinuteFull { .. } => ErrorClass::Conflict,
            Self::Overloaded { .. } | Self::TooManyMinutes { .. } => ErrorClass::Overloaded,
            Self::NotSent { reason, .. } => reason.class(),
            Self::Unknown { .. } => ErrorClass::Unknown,
            Self::Refused { reason, .. } => reason.class(),
            Self::Unreadable { .. } => ErrorClass::Unreadable,
            Self::Encode { source, .. } if !source.is_retryable() => ErrorClass::Invalid,
            Self::Encode { source, .. } | Self::Undecodable { source, .. } => source.class(),
        }
    }

    /// Returns what the caller can do.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Unknown { repeatable: false, .. } => Remedy::ReadBack,
            error => error.class().remedy(),
        }
    }

    /// Returns the job that the error is about, if its id is known.
    #[must_use]
    pub fn job(&self) -> Option<&JobId> {
        match self {
            Self::Conflict { id, .. }
            | Self::Overloaded { id, .. }
            | Self::MinuteFull { id, .. }
            | Self::TooManyMinutes { id, .. }
            | Self::NotSent { id, .. }
            | Self::Unknown { id, .. }
            | Self::Refused { id, .. }
            | Self::Unreadable { id, .. }
            | Self::Encode { id, .. }
            | Self::Undecodable { id, .. } => Some(id),
            Self::Client(error) => error.job(),
            Self::Invalid(_) | Self::Group(_) => None,
        }
    }
}

/// The error of a call that precedes the submission of a member.
impl From<Error> for SubmitError {
    fn from(error: Error) -> Self {
        match error {
            Error::Group(error) => Self::Group(error),
            other => Self::Client(other),
        }
    }
}

bellwether_core::impl_remedy!(@retryable SubmitError);
