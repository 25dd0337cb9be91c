//! A node: one process's part in the namespace, embedded in your own binary.

mod builder;
mod error;
mod exposure;
mod id;
mod schedules;
mod signals;

use std::time::Duration;

pub use bellwether_core::budget::MAX_SLOTS;
pub use bellwether_core::machine::assigner::Strategy as AssignmentStrategy;
pub use bellwether_core::machine::election::campaign::Strategy as ElectionStrategy;
pub use bellwether_host::node::NodeError;
pub use bellwether_host::worker::Drained;

pub use self::builder::NodeBuilder;
pub use self::error::{RunError, StartError};
pub use self::id::default_id;
pub use self::signals::ShutdownSignals;
pub use crate::session_timeout::check as check_session_timeout;

/// A running node. Cheap to clone; it runs until it is stopped, whether or not a clone is kept.
#[derive(Debug, Clone)]
pub struct Node {
    inner: bellwether_host::node::Node,
    drain_grace: Duration,
}

impl Node {
    /// Starts to build a node of the namespace at `zookeeper`: `HOST:PORT[,…][/CHROOT]`.
    ///
    /// It is a candidate for leadership, and a worker once it is given handlers.
    #[must_use]
    pub fn builder(zookeeper: impl Into<String>) -> NodeBuilder {
        NodeBuilder::new(zookeeper.into())
    }

    /// Runs until SIGTERM or ctrl-c, then drains and stops. A second signal ends it at once.
    ///
    /// # Errors
    /// [`RunError`]: the node ended by itself, or it was stopped and left jobs behind.
    ///
    /// # Cancellation
    /// Dropping the future leaves the node running. After [`RunError::Interrupted`] it still drains: end the process.
    /// This process's SIGTERM and ctrl-c stay with the node after the first call.
    pub async fn run(&self) -> Result<(), RunError> {
        let mut signals = ShutdownSignals::listen().map_err(RunError::Signals)?;
        let first = tokio::select! {
            ended = self.inner.ended() => return Ok(ended?),
            first = signals.next() => first,
        };
        tracing::info!("{first}: draining; again to stop at once");
        let drained = tokio::select! {
            drained = self.stop() => drained,
            second = signals.next() => return Err(RunError::Interrupted(second)),
        };
        match drained {
            // It was no worker, so it left nothing.
            None | Some(Drained::Empty) => Ok(()),
            Some(Drained::Abandoned) => {
                tracing::warn!(
                    "the drain was given up: the leader recovers what is left once the session is over"
                );
                Err(RunError::Abandoned)
            }
        }
    }

    /// Takes nothing new, finishes what runs within the drain grace, hands back the rest, gives leadership up,
    /// closes the session and ends. `None` for a node that was no worker.
    ///
    /// # Cancellation
    /// Dropping the future leaves the node somewhere between: call it again.
    pub async fn stop(&self) -> Option<Drained> {
        self.inner.stop(self.drain_grace).await
    }

    /// Waits until the node has ended, and says why if it was not asked to.
    ///
    /// # Errors
    /// What it ended of.
    pub async fn ended(&self) -> Result<(), NodeError> {
        self.inner.ended().await
    }

    /// The actors beneath.
    #[must_use]
    pub fn actors(&self) -> &bellwether_host::node::Node {
        &self.inner
    }
}
