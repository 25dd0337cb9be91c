//! How often, how long, and with which waits a job is tried.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::budget::{MAX_ATTEMPTS, MAX_WAIT, MIN_LEASE};

/// A job's bounds. Failures and losses are counted apart: a failure is the job's own doing, a loss is its
/// worker's death, and only a job that keeps killing workers should die of losses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Attempts that may fail before the job is dead; at least 1.
    pub max_attempts: u32,
    /// Workers that may be lost under the job before it is dead; at least 1.
    pub max_losses: u32,
    /// Waits between a failure and the next attempt. A lost or handed-back attempt is queued again at once.
    pub backoff: Backoff,
    /// How long one attempt may run; `None` is no bound.
    pub timeout: Option<Duration>,
    /// How long the leader waits for a sign of life of an attempt; `None` is what its kind says.
    pub lease: Option<Duration>,
    /// Whether its worker gives that sign by itself; `None` is what its kind says.
    pub auto_renew: Option<bool>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            max_losses: 3,
            backoff: Backoff { initial: Duration::from_secs(1), max: Duration::from_secs(300) },
            timeout: None,
            lease: None,
            auto_renew: None,
        }
    }
}

/// A bound outside its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {allowed}, not {given}")]
pub struct PolicyError {
    /// Which bound.
    pub field: &'static str,
    /// Its range.
    pub allowed: String,
    /// What was given.
    pub given: String,
}

impl Policy {
    /// Checks every bound.
    ///
    /// # Errors
    /// The first bound that is out of its range.
    pub fn check(&self) -> Result<(), PolicyError> {
        for (field, given) in [("max attempts", self.max_attempts), ("max losses", self.max_losses)] {
            if !(1..=MAX_ATTEMPTS).contains(&given) {
                return Err(PolicyError {
                    field,
                    allowed: format!("1 to {MAX_ATTEMPTS}"),
                    given: given.to_string(),
                });
            }
        }
        let least = Duration::from_millis(1);
        let waits = [
            ("backoff", Some(self.backoff.initial), least),
            ("longest backoff", Some(self.backoff.max), least),
            ("timeout", self.timeout, least),
            ("lease", self.lease, MIN_LEASE),
        ];
        for (field, wait, least) in waits {
            let Some(wait) = wait else { continue };
            if !(least..=MAX_WAIT).contains(&wait) {
                let allowed = format!("{least:?} to {} s", MAX_WAIT.as_secs());
                return Err(PolicyError { field, allowed, given: format!("{wait:?}") });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_out_of_range_is_named_with_its_range() {
        let none = Policy { max_attempts: 0, ..Policy::default() };
        assert_eq!(none.check().unwrap_err().to_string(), "max attempts must be 1 to 1000, not 0");
        let instant = Policy { timeout: Some(Duration::ZERO), ..Policy::default() };
        assert_eq!(instant.check().unwrap_err().to_string(), "timeout must be 1ms to 604800 s, not 0ns");
        assert_eq!(Policy::default().check(), Ok(()));
    }
}
