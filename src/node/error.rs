//! Why a node does not start, and why its run does not end well.

use std::io;

use bellwether_core::name::NameError;
use bellwether_host::node::NodeError;
use bellwether_host::worker::{RegistryError, WorkerConfigError};
use bellwether_zk::ConnectStringError;

use crate::client::ScheduleError;
use crate::session_timeout::SessionTimeoutError;

/// Why a node was not started. Nothing was connected to.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Where ZooKeeper is, is not said well.
    #[error(transparent)]
    ConnectString(#[from] ConnectStringError),
    /// The session timeout is out of its bounds.
    #[error(transparent)]
    SessionTimeout(#[from] SessionTimeoutError),
    /// A name is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The handlers are not.
    #[error(transparent)]
    Handlers(#[from] RegistryError),
    /// A schedule is wrong.
    #[error("schedule {name}")]
    Schedule {
        /// Which.
        name: String,
        /// What is wrong with it.
        #[source]
        reason: ScheduleError,
    },
    /// A worker's bound is broken.
    #[error(transparent)]
    Worker(#[from] WorkerConfigError),
    /// It has no role.
    #[error("a node needs a role: give it handlers, or let it be a candidate for leadership")]
    NoRole,
    /// The actor system failed.
    #[error("the node's actors could not be started")]
    Actors(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Why [`Node::run`](crate::Node::run) did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The node ended by itself: its namespace was refused, or its actors kept dying.
    #[error(transparent)]
    Ended(#[from] NodeError),
    /// Signals cannot be heard. The node runs.
    #[error("signals cannot be heard")]
    Signals(#[source] io::Error),
    /// A second signal, this one, came during the drain. The leader recovers what is left once the session is over.
    #[error("{0} during the drain: the jobs that are left are recovered after the session timeout")]
    Interrupted(&'static str),
    /// The drain was given up, as ZooKeeper could not be reached. The leader recovers what is left once the session
    /// is over.
    #[error("the drain was given up: the jobs that are left are recovered after the session timeout")]
    Abandoned,
}
