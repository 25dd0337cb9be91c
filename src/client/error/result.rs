//! The errors of a typed result.

use bellwether_core::name::{JobId, Kind};
use bellwether_core::remedy::ErrorClass;

use super::{Error, WaitError};
use crate::client::group::GroupWaitError;
use crate::client::view::JobView;

/// There is no typed result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// The job has not ended, or could not be read.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// The group has not reached the end of the job, or could not be read.
    #[error(transparent)]
    Group(#[from] GroupWaitError),
    /// The job ended without success, or has not ended.
    #[error("job {} has no result: {}", .0.id, .0.status())]
    NoResult(Box<JobView>),
    /// The job has no sub-jobs, so its finished handler does not run.
    #[error("job {0} has no sub-jobs, so no finished handler runs after it")]
    NoSubJobs(JobId),
    /// The job has another kind.
    #[error("job {id} is of kind {there}, not {given}")]
    Kind {
        /// The job.
        id: JobId,
        /// The job's kind.
        there: Kind,
        /// The name of the given kind.
        given: &'static str,
    },
    /// The result is encoded, and the view comes from a client without a codec or from a call that returns it as stored.
    #[error("the result of job {0} is encoded: get the job with a client that has its codec")]
    Encoded(JobId),
    /// The result has another type.
    #[error("the result of job {id} is not of the expected type")]
    Type {
        /// The job.
        id: JobId,
        /// The decoding error.
        #[source]
        source: serde_json::Error,
    },
}

impl From<Error> for ResultError {
    fn from(error: Error) -> Self {
        Self::Wait(error.into())
    }
}

impl ResultError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Wait(error) => error.class(),
            Self::Group(error) => error.class(),
            Self::NoResult(_) => ErrorClass::Failed,
            Self::NoSubJobs(_) | Self::Kind { .. } => ErrorClass::Conflict,
            Self::Encoded(_) => ErrorClass::Unreadable,
            Self::Type { .. } => ErrorClass::Invalid,
        }
    }
}

bellwether_core::impl_remedy!(ResultError);
