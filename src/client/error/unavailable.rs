//! The errors of a client without a usable session.

use std::time::Duration;

use bellwether_core::remedy::ErrorClass;
use bellwether_zk::NamespaceError;

use crate::connection::InvalidConnection;

/// No session can be used. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// No session could be used within the deadline. The client keeps trying for later calls.
    #[error("ZooKeeper did not serve within {within:?}: {reason}")]
    NotInTime {
        /// The deadline.
        within: Duration,
        /// Each server's address and why it did not serve.
        reason: String,
        /// Whether there was a session at the end, and only the reply was late.
        served: bool,
    },
    /// The namespace is absent, foreign, of another layout version or closed to this client. The client has ended.
    #[error(transparent)]
    Refused(NamespaceError),
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

impl Unavailable {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotInTime { .. } => ErrorClass::Unavailable,
            Self::Refused(_) | Self::Closed => ErrorClass::Closed,
        }
    }
}

/// A client could not be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The settings of the connection are invalid.
    #[error(transparent)]
    Connection(#[from] InvalidConnection),
    /// No session, or no usable namespace.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl ConnectError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Connection(error) => error.class(),
            Self::Unavailable(error) => error.class(),
        }
    }
}

bellwether_core::impl_remedy!(Unavailable, ConnectError);
