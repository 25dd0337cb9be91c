//! The bounds of a session timeout, checked before any connection.

use std::time::Duration;

/// With a shorter timeout no answer could arrive in time: a commit of an ensemble takes tens of milliseconds when a
/// disk is busy, and a connection attempt is given up after the session timeout.
const SHORTEST: Duration = Duration::from_millis(100);

/// ZooKeeper's protocol has 31 bits for the milliseconds. Servers clamp the timeout to far less.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// A session timeout is out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("session timeout must be {SHORTEST:?} to {} ms, not {given:?}", LONGEST.as_millis())]
#[non_exhaustive]
pub struct SessionTimeoutError {
    /// The given timeout.
    pub given: Duration,
}

/// Checks a session timeout: 100 ms to 2,147,483,647 ms. A server clamps it to its own bounds.
///
/// # Errors
/// Fails if the timeout is out of these bounds.
pub fn check(given: Duration) -> Result<Duration, SessionTimeoutError> {
    if (SHORTEST..=LONGEST).contains(&given) { Ok(given) } else { Err(SessionTimeoutError { given }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_timeout_out_of_bounds_is_an_error_that_names_the_bounds() {
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
