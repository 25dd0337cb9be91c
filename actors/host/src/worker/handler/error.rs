//! Why an attempt has no result.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bellwether_core::budget::{MAX_WAIT, MIN_DEFERRAL};
use bellwether_core::chain::chain;
use bellwether_core::machine::worker::executor_pool::Run;

/// Why an attempt has no result, and what happens to the job next. The message is stored with the job.
///
/// `?` converts any error into a `HandlerError`, with the chain of its sources. The attempt then counts as a failure
/// and is retried according to the job's policy.
#[derive(Clone, PartialEq, Eq)]
pub struct HandlerError {
    message: String,
    follows: Follows,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    Policy,
    /// No retry: the job can never succeed.
    End,
    Later(Duration),
}

impl HandlerError {
    /// Fails the attempt with a message. The job is retried according to its policy.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: reason(message.into()), follows: Follows::Policy }
    }

    /// Ends the job as dead, because it can never succeed. Remaining attempts are not used. The kind's invalid-job
    /// handler, if any, runs first. A payload that cannot be deserialized into the handler's type has the same effect.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { message: reason(message.into()), follows: Follows::End }
    }

    /// Retries the job after this time, which is limited to between one second and one week. The attempt counts neither
    /// as a failure nor as a loss, and the number of such retries is not limited, because a job that waits does not
    /// fail.
    #[must_use]
    pub fn retry_later(after: Duration) -> Self {
        let after = after.clamp(MIN_DEFERRAL, MAX_WAIT);
        Self { message: format!("retry requested after {after:?}"), follows: Follows::Later(after) }
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the job can never succeed.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.follows == Follows::End
    }

    /// The time after which the handler requested a retry, if it did.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.follows {
            Follows::Later(after) => Some(after),
            Follows::Policy | Follows::End => None,
        }
    }

    pub(in crate::worker) fn into_run(self) -> Run {
        match self.follows {
            Follows::Policy => Run::Failed(self.message),
            Follows::End => Run::Invalid(self.message),
            Follows::Later(after) => Run::Deferred(after),
        }
    }
}

/// Replaces an empty message: otherwise it would look as if the reason was lost.
fn reason(message: String) -> String {
    if message.is_empty() { "the handler gave no reason".into() } else { message }
}

impl<E: Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::new(chain(&error))
    }
}

// `HandlerError` does not implement `Error`, so that every error can be converted into it.
impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_the_chain_of_its_sources() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] std::num::ParseIntError);
        let error = HandlerError::from(Outer("x".parse::<i32>().unwrap_err()));
        assert_eq!(error.message(), "outer: invalid digit found in string");
        assert_eq!((error.is_invalid(), error.retry_after()), (false, None));
    }

    #[test]
    fn an_empty_message_is_replaced() {
        for error in [HandlerError::new(""), HandlerError::invalid(""), std::io::Error::other("").into()] {
            assert_eq!(error.message(), "the handler gave no reason");
        }
    }

    #[test]
    fn each_error_has_its_own_consequence() {
        assert_eq!(HandlerError::invalid("x").into_run(), Run::Invalid("x".into()));
        let later = HandlerError::retry_later(Duration::MAX);
        assert_eq!(later.retry_after(), Some(MAX_WAIT), "one week at most");
        assert_eq!(later.into_run(), Run::Deferred(MAX_WAIT));
        let immediate = HandlerError::retry_later(Duration::ZERO);
        assert_eq!(immediate.retry_after(), Some(MIN_DEFERRAL), "one second at least");
    }
}
