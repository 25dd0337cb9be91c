//! Errors of the start of a server.

use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use super::Missing;

/// The reason why a [`ZooKeeperServer`](super::ZooKeeperServer) did not start.
#[derive(Debug)]
pub enum StartError {
    /// ZooKeeper is not installed.
    Missing(Missing),
    /// The operating system refused a file, a process or a port.
    Io(io::Error),
    /// The server ended during its start. If the port is not fixed, the builder tries another one.
    Exited {
        /// The exit status.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },
    /// The server runs but does not accept requests.
    NotReady {
        /// The time limit.
        after: Duration,
        /// The end of its log.
        log: String,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(_) => write!(f, "zookeeper is not installed"),
            Self::Io(_) => write!(f, "the test server could not be launched"),
            Self::Exited { status, log } => {
                write!(f, "the test server ended during its start ({status}); its log:\n{log}")
            }
            Self::NotReady { after, log } => {
                write!(f, "the test server accepted no requests within {after:?}; its log:\n{log}")
            }
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Missing(missing) => Some(missing),
            Self::Io(error) => Some(error),
            Self::Exited { .. } | Self::NotReady { .. } => None,
        }
    }
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Missing> for StartError {
    fn from(missing: Missing) -> Self {
        Self::Missing(missing)
    }
}
