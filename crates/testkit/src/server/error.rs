//! Why a server did not start.

use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use super::Missing;

/// Why a [`ZooKeeperServer`](super::ZooKeeperServer) did not start.
#[derive(Debug)]
pub enum StartError {
    /// This machine has no ZooKeeper to start.
    Missing(Missing),
    /// The machine refused a file, a process or a port.
    Io(io::Error),
    /// The server ended before it served; on a port of its own choice the builder tries another one.
    Exited {
        /// How it ended.
        status: ExitStatus,
        /// What it wrote last.
        log: String,
    },
    /// The server lives and does not serve.
    NotReady {
        /// How long it was given.
        after: Duration,
        /// What it wrote last.
        log: String,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(_) => write!(f, "zookeeper is not installed"),
            Self::Io(_) => write!(f, "zookeeper could not be launched"),
            Self::Exited { status, log } => write!(f, "zookeeper ended early ({status}); its log:\n{log}"),
            Self::NotReady { after, log } => {
                write!(f, "zookeeper did not serve within {after:?}; its log:\n{log}")
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
