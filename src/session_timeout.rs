//! The bounds of a session timeout, checked before anything is connected to.

use std::time::Duration;

/// Below this no answer could be waited for: an ensemble's commit takes tens of milliseconds when a disk is busy,
/// and connecting is given up after it.
const SHORTEST: Duration = Duration::from_millis(100);

/// ZooKeeper's protocol counts it in milliseconds of 31 bits. Servers clamp it to far less.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// A session timeout is out of its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("session timeout must be {SHORTEST:?} to {} ms, not {given:?}", LONGEST.as_millis())]
pub struct SessionTimeoutError {
    /// What was given.
    pub given: Duration,
}

/// Whether a session may be given this timeout: of 100 ms to 2,147,483,647 ms. A server clamps it to its own bounds.
///
/// # Errors
/// It may not.
pub fn check(given: Duration) -> Result<Duration, SessionTimeoutError> {
    if (SHORTEST..=LONGEST).contains(&given) { Ok(given) } else { Err(SessionTimeoutError { given }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_timeout_is_told_with_its_bounds_when_it_is_beyond_them() {
        for refused in [Duration::ZERO, SHORTEST - Duration::from_nanos(1), LONGEST + Duration::from_nanos(1)]
        {
            let said = check(refused).unwrap_err().to_string();
            assert_eq!(said, format!("session timeout must be 100ms to 2147483647 ms, not {refused:?}"));
        }
        for accepted in [SHORTEST, LONGEST] {
            assert_eq!(check(accepted), Ok(accepted));
        }
    }
}
