//! The settings of a connection, which nodes, clients and elections share. They are checked before any connection.

use std::time::Duration;

use bellwether_core::remedy::ErrorClass;
use bellwether_zk::{Access, AccessError, ConnectString, ConnectStringError};

/// The default session timeout of nodes, clients and elections: 10 s. Long enough to survive a garbage collection pause in the ensemble,
/// short enough to recover a dead worker's jobs soon.
pub const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(10);

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

/// The settings of a connection are invalid. No connection was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidConnection {
    /// The connect string is malformed.
    #[error(transparent)]
    ConnectString(#[from] ConnectStringError),
    /// The login or TLS is invalid, or the password would cross the network in clear text.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The session timeout is out of bounds.
    #[error(transparent)]
    SessionTimeout(#[from] SessionTimeoutError),
}

impl InvalidConnection {
    /// Returns the class of the error.
    #[must_use]
    pub const fn class(&self) -> ErrorClass {
        ErrorClass::Invalid
    }
}

bellwether_core::impl_remedy!(InvalidConnection);

/// The settings of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) zookeeper: String,
    pub(crate) access: Access,
    pub(crate) session_timeout: Duration,
}

impl Connection {
    pub(crate) fn new(zookeeper: impl Into<String>) -> Self {
        Self {
            zookeeper: zookeeper.into(),
            access: Access::default(),
            session_timeout: DEFAULT_SESSION_TIMEOUT,
        }
    }

    /// Returns the parsed address.
    pub(crate) fn check(&self) -> Result<ConnectString, InvalidConnection> {
        let connect = self.zookeeper.parse()?;
        self.access.check(&connect)?;
        check_session_timeout(self.session_timeout)?;
        Ok(connect)
    }
}

/// Checks a session timeout: 100 ms to 2,147,483,647 ms. A server clamps it to its own bounds.
///
/// # Errors
/// Fails if the timeout is out of these bounds.
pub fn check_session_timeout(given: Duration) -> Result<Duration, SessionTimeoutError> {
    if (SHORTEST..=LONGEST).contains(&given) { Ok(given) } else { Err(SessionTimeoutError { given }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_timeout_out_of_bounds_is_an_error_that_names_the_bounds() {
        for refused in [Duration::ZERO, SHORTEST - Duration::from_nanos(1), LONGEST + Duration::from_nanos(1)]
        {
            let said = check_session_timeout(refused).unwrap_err().to_string();
            assert_eq!(said, format!("session timeout must be 100ms to 2147483647 ms, not {refused:?}"));
        }
        for accepted in [SHORTEST, LONGEST] {
            assert_eq!(check_session_timeout(accepted), Ok(accepted));
        }
    }
}
