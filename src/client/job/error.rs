//! Errors of a job that cannot be submitted.

use bellwether_core::budget::MAX_TAGS;
use bellwether_core::job::{ContentTypeError, NestingError, PayloadError, PolicyError, PriorityError};
use bellwether_core::name::{Kind, NameError};
use bellwether_core::schedule::LANE_PREFIX;

use crate::client::timing::TimingError;

/// A job cannot be submitted. The message names the field, its bounds and a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// The id, the kind, a tag, the affinity key or the lane is malformed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The job has another kind than its Rust type.
    #[error("kind must be {expected}, not {given}")]
    Kind {
        /// The given kind.
        given: Kind,
        /// The kind of the type.
        expected: &'static str,
    },
    /// The payload is too large.
    #[error("payload has {0}")]
    Payload(PayloadError),
    /// The payload is not JSON, or does not serialize as JSON.
    #[error("payload is not JSON: {0}")]
    Json(String),
    /// The payload nests too deeply.
    #[error("payload {0}")]
    Nesting(#[from] NestingError),
    /// The payload of a document must be a string, because its content type is not JSON.
    #[error("payload must be a string, because its content_type is {content_type:?}")]
    PayloadNotText {
        /// The content type.
        content_type: String,
    },
    /// Two fields of a document exclude each other.
    #[error("give {first} or {second}, not both")]
    Both {
        /// One of them.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// The content type is malformed.
    #[error(transparent)]
    ContentType(#[from] ContentTypeError),
    /// A setting of attempts, backoff, timeout or lease is out of bounds.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The priority is out of bounds.
    #[error(transparent)]
    Priority(#[from] PriorityError),
    /// The start or the expiry is invalid.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// `IfExists::Again` is combined with a start time.
    #[error(
        "{field} cannot go with if_exists again: an ended job is reopened immediately; submit it when it should run"
    )]
    AgainWithStart {
        /// The field of the start.
        field: &'static str,
    },
    /// The lane is one of a schedule.
    #[error("lanes that begin with {LANE_PREFIX:?} belong to schedules: choose another lane")]
    ReservedLane,
    /// There are too many tags.
    #[error(
        "a job has at most {MAX_TAGS} tags, not {given}: tags are for properties of workers, not for their data"
    )]
    Tags {
        /// How many were given.
        given: usize,
    },
}

bellwether_core::impl_remedy!(@invalid JobError);
