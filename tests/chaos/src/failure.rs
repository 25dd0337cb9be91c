//! The error of a run that could not be completed. Violations are reported in the scorecard instead.

use std::fmt;

use bellwether_core::chain::chain;

/// The text of an error with the chain of its sources.
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

// Not an `Error` itself, so that every error converts to it.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(chain(&error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
