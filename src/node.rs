//! A node: the part of one process in a namespace, embedded in your own binary.

mod builder;
mod error;
mod exposure;
mod id;
mod schedules;
mod signals;
mod take_over;
mod worker;

use std::time::Duration;

pub use bellwether_core::budget::MAX_SLOTS;
pub use bellwether_core::machine::election::campaign::Strategy as ElectionStrategy;
pub use bellwether_host::node::NodeError;
pub use bellwether_host::worker::{Drained, WorkerConfigError};

pub use self::builder::{DEFAULT_DRAIN_GRACE, NodeBuilder};
pub use self::error::{RunError, StartError};
pub use self::id::default_id;
pub(crate) use self::id::host_name;
pub use self::signals::{ShutdownSignals, run_until_signal};
pub use self::take_over::{HeldAttempt, Refusal, TakeOver, TakenAttempt, WorkerOwner};
pub use self::worker::{WorkerState, WorkerWatch};
use crate::connection::Connection;
pub use crate::connection::{DEFAULT_SESSION_TIMEOUT, check_session_timeout};

/// A running node. Cheap to clone. The node runs until it is stopped, even when every clone is dropped.
#[derive(Debug, Clone)]
pub struct Node {
    inner: bellwether_host::node::Node,
    drain_grace: Duration,
}

impl Node {
    /// Returns a builder for a node of the namespace at `zookeeper`: `HOST:PORT[,…][/CHROOT]`.
    ///
    /// The node is a candidate for leadership. It is also a worker if it is given handlers.
    #[must_use]
    pub fn builder(zookeeper: impl Into<String>) -> NodeBuilder {
        NodeBuilder::new(Connection::new(zookeeper))
    }

    /// Runs until SIGTERM or ctrl-c, then drains and stops. A second signal ends the run immediately.
    ///
    /// # Errors
    /// [`RunError`]: the node ended without being asked to, or it was stopped and left jobs behind.
    ///
    /// # Cancellation
    /// Dropping the future leaves the node running. After [`RunError::Interrupted`] the node still drains: end the
    /// process. After the first call the node keeps the process's handlers for SIGTERM and ctrl-c.
    pub async fn run(&self) -> Result<(), RunError> {
        run_until_signal(async { Ok(self.inner.ended().await?) }, self.stop()).await
    }

    /// Stops the node: takes no new jobs, lets running jobs finish within the drain grace, hands back the rest, gives
    /// up leadership and closes the session. Returns `None` for a node that was not a worker.
    ///
    /// # Cancellation
    /// Dropping the future leaves the stop incomplete: call it again.
    pub async fn stop(&self) -> Option<Drained> {
        self.stop_within(self.drain_grace).await
    }

    /// Stops the node like [`Node::stop`], with another drain grace. During a stop it shortens the grace of that stop; a
    /// longer one has no effect. Without a grace, all running jobs are handed back.
    ///
    /// # Cancellation
    /// Dropping the future leaves the stop incomplete: call it again.
    pub async fn stop_within(&self, grace: Duration) -> Option<Drained> {
        self.inner.stop(grace).await
    }

    /// Ends the node without a drain, as if its process had died, but without the wait for the session timeout: the
    /// leader closes the attempts of its worker as lost. Returns when the node's session is closed.
    ///
    /// # Cancellation
    /// Dropping the future leaves the end incomplete: call it again.
    ///
    /// # Connection loss
    /// Without a connection the registration remains until the session expires.
    pub async fn abort(&self) {
        self.inner.abort().await;
    }

    /// Watches the node's worker.
    ///
    /// With the id of the registered worker, a client changes its slots, its tags and the kinds that are paused on it while it
    /// runs ([`Client::change_worker`](crate::Client::change_worker)):
    ///
    /// ```no_run
    /// # use bellwether::client::WorkerChange;
    /// # use bellwether::node::WorkerState;
    /// # async fn narrow(node: &bellwether::Node, client: &bellwether::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut worker = node.watch_worker();
    /// while let Some(state) = worker.changed().await {
    ///     if let WorkerState::Serving(id) = state {
    ///         client.change_worker(id, &WorkerChange::new().slots(2)).await?;
    ///         break;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn watch_worker(&self) -> WorkerWatch {
        WorkerWatch::new(self.inner.parts())
    }

    /// Waits until the node has ended. Returns `Ok` if it was asked to stop.
    ///
    /// # Errors
    /// The reason why the node ended without being asked to.
    pub async fn ended(&self) -> Result<(), NodeError> {
        self.inner.ended().await
    }

    /// Returns the actors that the node consists of, for tests of Bellwether itself.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    #[must_use]
    pub fn actors(&self) -> &bellwether_host::node::Node {
        &self.inner
    }
}
