//! Why bytes cannot be encoded or decoded.

use std::fmt;

use bellwether_core::remedy::ErrorClass;

/// Bytes cannot be encoded or decoded, now or ever. A worker stores the message with the job, in plain: it must not contain
/// secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CodecError {
    message: String,
    retryable: bool,
}

impl CodecError {
    /// The bytes can never be encoded or decoded: they were changed, or another key encoded them. A job with such a payload
    /// is dead without further attempts.
    #[must_use]
    pub fn invalid(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), retryable: false }
    }

    /// A later attempt may succeed: a store is not reachable, or a key is not known yet. The attempt counts as a failure and
    /// is retried by the job's policy.
    #[must_use]
    pub fn retryable(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), retryable: true }
    }

    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        if self.retryable { ErrorClass::Unavailable } else { ErrorClass::Unreadable }
    }
}

bellwether_core::impl_remedy!(CodecError);
