//! Why an attempt has no result.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bellwether_core::budget::{MAX_WAIT, MIN_DEFERRAL};
use bellwether_core::machine::worker::executor_pool::Run;

/// Why an attempt has no result, and what shall follow: a text for people, kept with the job.
///
/// Any error turns into one with `?`, with the chain of its sources: a failure, which is tried again by the job's policy.
#[derive(Clone, PartialEq, Eq)]
pub struct HandlerError {
    message: String,
    follows: Follows,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    Policy,
    /// Nothing: it can never succeed.
    End,
    Later(Duration),
}

impl HandlerError {
    /// Fails with a text of your own. The job is tried again as its policy says.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: reason(message.into()), follows: Follows::Policy }
    }

    /// The job can never succeed: it is dead at once, whatever attempts are left. The kind's invalid-job handler runs
    /// before, if there is one. A payload that the handler's type does not understand is this.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { message: reason(message.into()), follows: Follows::End }
    }

    /// The job shall be tried again after that time: a second at least, and a week at most. It counts neither as a failure nor
    /// as a loss, and there is no bound on how often: a job that waits for something is not a job that fails.
    #[must_use]
    pub fn retry_later(after: Duration) -> Self {
        let after = after.clamp(MIN_DEFERRAL, MAX_WAIT);
        Self { message: format!("to be tried again after {after:?}"), follows: Follows::Later(after) }
    }

    /// The text.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the job can never succeed.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.follows == Follows::End
    }

    /// After which time it shall be tried again, if the handler said.
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

/// A dead job that says nothing would be taken for one whose reason was lost.
fn reason(message: String) -> String {
    if message.is_empty() { "the handler gave no reason".into() } else { message }
}

impl<E: Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::new(message)
    }
}

// Not an `Error` itself, so that every error converts into it.
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
    fn one_without_a_text_says_so() {
        for error in [HandlerError::new(""), HandlerError::invalid(""), std::io::Error::other("").into()] {
            assert_eq!(error.message(), "the handler gave no reason");
        }
    }

    #[test]
    fn what_shall_follow_is_told_apart() {
        assert_eq!(HandlerError::invalid("x").into_run(), Run::Invalid("x".into()));
        let later = HandlerError::retry_later(Duration::MAX);
        assert_eq!(later.retry_after(), Some(MAX_WAIT), "a week at most");
        assert_eq!(later.into_run(), Run::Deferred(MAX_WAIT));
        let at_once = HandlerError::retry_later(Duration::ZERO);
        assert_eq!(at_once.retry_after(), Some(MIN_DEFERRAL), "which would keep the cluster busy");
    }
}
