//! The errors of a wait for the end of a job.

use std::time::Duration;

use bellwether_core::name::JobId;
use bellwether_core::remedy::ErrorClass;

use super::Error;
use crate::client::view::JobView;

/// A wait did not reach the end of the job.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The job has not ended in time.
    #[error("job {id} has not ended after {within:?}{}", .last.as_ref().map(|view| format!(": {}", view.status())).unwrap_or_default())]
    TimedOut {
        /// The job.
        id: JobId,
        /// How long the call waited.
        within: Duration,
        /// The last seen state of the job.
        last: Option<Box<JobView>>,
    },
    /// A request failed.
    #[error(transparent)]
    Client(#[from] Error),
}

impl WaitError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::TimedOut { .. } => ErrorClass::TimedOut,
            Self::Client(error) => error.class(),
        }
    }

    /// Returns the job that the error is about, if it is about one.
    #[must_use]
    pub fn job(&self) -> Option<&JobId> {
        match self {
            Self::TimedOut { id, .. } => Some(id),
            Self::Client(error) => error.job(),
        }
    }
}

bellwether_core::impl_remedy!(WaitError);
