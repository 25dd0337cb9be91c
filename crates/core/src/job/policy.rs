//! The limits on attempts, waits and run time of a job.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::budget::{MAX_ATTEMPTS, MAX_WAIT, MIN_LEASE};
use crate::duration::DurationText;

/// The limits of a job. Failures and losses are counted separately: a failure is caused by the job, a loss by the
/// death of its worker, and only a job that repeatedly kills workers should become dead because of losses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Number of failed attempts after which the job is dead; at least 1.
    pub max_attempts: u32,
    /// Number of lost attempts after which the job is dead; at least 1.
    pub max_losses: u32,
    /// Waits between a failure or a loss and the next attempt. A handed-back attempt is requeued immediately.
    pub backoff: Backoff,
    /// How long one attempt may run, including the time for which its machine is suspended; `None` means no limit.
    pub timeout: Option<Duration>,
    /// How long an attempt may run without a renewal before the leader takes it back; `None` uses the lease of the
    /// kind.
    pub lease: Option<Duration>,
    /// Whether the worker renews the lease automatically; `None` uses the setting of the kind.
    pub auto_renew: Option<bool>,
    /// Whether its death creates a job of kind `KIND.dead`: see [`dead_letter`](super::dead_letter()).
    pub dead_letter: bool,
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
            dead_letter: false,
        }
    }
}

/// A limit is outside its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {allowed}, not {given}")]
#[non_exhaustive]
pub struct PolicyError {
    /// The field.
    pub field: &'static str,
    /// Its range.
    pub allowed: String,
    /// The given value.
    pub given: String,
}

impl Policy {
    /// Checks every bound.
    ///
    /// The first limit that is outside its range.
    pub fn check(&self) -> Result<(), PolicyError> {
        for (field, given) in [("max_attempts", self.max_attempts), ("max_losses", self.max_losses)] {
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
            ("backoff.initial", Some(self.backoff.initial), least),
            ("backoff.max", Some(self.backoff.max), least),
            ("timeout", self.timeout, least),
            ("lease", self.lease, MIN_LEASE),
        ];
        for (field, wait, least) in waits {
            let Some(wait) = wait.map(DurationText) else { continue };
            wait.within(least, MAX_WAIT).map_err(|allowed| PolicyError {
                field,
                allowed,
                given: wait.to_string(),
            })?;
        }
        if self.backoff.initial > self.backoff.max {
            return Err(PolicyError {
                field: "backoff.initial",
                allowed: format!("at most backoff.max, which is {}", DurationText(self.backoff.max)),
                given: DurationText(self.backoff.initial).to_string(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_error_names_the_field_and_its_range() {
        let none = Policy { max_attempts: 0, ..Policy::default() };
        assert_eq!(none.check().unwrap_err().to_string(), "max_attempts must be 1 to 1000, not 0");
        let instant = Policy { timeout: Some(Duration::ZERO), ..Policy::default() };
        assert_eq!(instant.check().unwrap_err().to_string(), "timeout must be 1ms to 7d, not 0s");
        let backoff = Backoff { initial: Duration::from_secs(2), max: Duration::from_secs(1) };
        let falling = Policy { backoff, ..Policy::default() };
        let said = "backoff.initial must be at most backoff.max, which is 1s, not 2s";
        assert_eq!(falling.check().unwrap_err().to_string(), said);
        assert_eq!(Policy::default().check(), Ok(()));
    }
}
