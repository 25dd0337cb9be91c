//! Errors of starting and running a node.

use std::io;

use bellwether_core::name::NameError;
use bellwether_core::placement::CustomStrategyError;
use bellwether_core::remedy::ErrorClass;
use bellwether_host::node::NodeError;
use bellwether_host::worker::{RegistryError, WorkerConfigError};

use crate::client::ScheduleError;
use crate::connection::InvalidConnection;

/// A node was not started. No connection was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The settings of the connection are invalid.
    #[error(transparent)]
    Connection(#[from] InvalidConnection),
    /// A name is malformed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The handlers are invalid.
    #[error(transparent)]
    Handlers(#[from] RegistryError),
    /// A schedule is invalid.
    #[error("schedule {id}")]
    Schedule {
        /// The schedule's id.
        id: String,
        /// The validation error.
        #[source]
        reason: ScheduleError,
    },
    /// A custom placement strategy has the name of another strategy.
    #[error(transparent)]
    Placement(#[from] CustomStrategyError),
    /// A setting of the worker is out of bounds.
    #[error(transparent)]
    Worker(#[from] WorkerConfigError),
    /// The node has no role and no schedules.
    #[error("a node needs a role: give it handlers or schedules, or let it be a candidate for leadership")]
    NoRole,
    /// The actor system failed.
    #[error("the node's actors could not be started")]
    Actors(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// [`Node::run`](crate::Node::run) did not end cleanly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The node ended without being asked to: its namespace was refused, or its actors failed repeatedly.
    #[error(transparent)]
    Ended(#[from] NodeError),
    /// The process cannot listen for signals. The node still runs.
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    /// The named signal arrived during the drain. The leader recovers the remaining jobs after the session expires.
    #[error("{0} during the drain: the remaining jobs are recovered after the session timeout")]
    Interrupted(&'static str),
    /// The drain was given up because ZooKeeper could not be reached. The leader recovers the remaining jobs after
    /// the session expires.
    #[error("the drain was given up: the remaining jobs are recovered after the session timeout")]
    Abandoned,
}

impl StartError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Connection(_)
            | Self::Name(_)
            | Self::Handlers(_)
            | Self::Schedule { .. }
            | Self::Placement(_)
            | Self::Worker(_)
            | Self::NoRole => ErrorClass::Invalid,
            Self::Actors(_) => ErrorClass::Failed,
        }
    }
}

impl RunError {
    /// Returns the class of the error. Except after [`RunError::Signals`], the node has ended or is draining: start
    /// another one.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Ended(error) => error.class(),
            Self::Signals(_) | Self::Interrupted(_) | Self::Abandoned => ErrorClass::Failed,
        }
    }
}

bellwether_core::impl_remedy!(StartError, RunError);
