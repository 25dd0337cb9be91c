//! Why a job cannot be submitted.

use bellwether_core::budget::MAX_TAGS;
use bellwether_core::job::{ContentTypeError, PayloadError, PolicyError, PriorityError};
use bellwether_core::name::NameError;

use crate::client::timing::TimingError;

/// Why a job cannot be submitted. The text names the field, the bound and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The id, kind, a tag, the affinity key or the lane is not a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The payload is over the bound.
    #[error("payload has {0}")]
    Payload(PayloadError),
    /// The payload is not JSON, or does not serialize as JSON.
    #[error("payload is not JSON: {0}")]
    Json(String),
    /// The content type is malformed.
    #[error(transparent)]
    ContentType(#[from] ContentTypeError),
    /// A bound on attempts or waits is out of its range.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The priority is out of its range.
    #[error(transparent)]
    Priority(#[from] PriorityError),
    /// It cannot start at such a time.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// It is to be opened again, and to start later.
    #[error(
        "run_at cannot go with if_exists again: what is over is opened at once; submit it when it shall run"
    )]
    AgainLater,
    /// There are too many tags.
    #[error(
        "a job has at most {MAX_TAGS} tags, not {given}: tag the workers by what they are, not by what they hold"
    )]
    Tags {
        /// How many were given.
        given: usize,
    },
}
