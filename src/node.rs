//! A node: the part of one process in a namespace, embedded in your own binary.

mod builder;
mod error;
mod exposure;
mod id;
mod schedules;
mod signals;

use std::time::Duration;

pub use bellwether_core::machine::assigner::Strategy as AssignmentStrategy;
pub use bellwether_core::machine::election::campaign::Strategy as ElectionStrategy;
pub use bellwether_host::node::NodeError;
pub use bellwether_host::worker::Drained;

pub use self::builder::NodeBuilder;
pub use self::error::{RunError, StartError};
pub use self::id::default_id;
#[cfg(feature = "http")]
use crate::http::Gateway;
pub use crate::session_timeout::check as check_session_timeout;

use self::signals::Signals;

/// A running node. Cheap to clone. The node runs until it is stopped, even when every clone is dropped.
#[derive(Debug, Clone)]
pub struct Node {
    inner: bellwether_host::node::Node,
    drain_grace: Duration,
    #[cfg(feature = "http")]
    gateway: Option<Gateway>,
}

impl Node {
    /// Returns a builder for a node of the namespace at `zookeeper`: `HOST:PORT[,…][/CHROOT]`.
    ///
    /// The node is a candidate for leadership. It is also a worker if it is given handlers.
    #[must_use]
    pub fn builder(zookeeper: impl Into<String>) -> NodeBuilder {
        NodeBuilder::new(zookeeper.into())
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
        let mut signals = Signals::listen().map_err(RunError::Signals)?;
        let first = tokio::select! {
            ended = self.inner.ended() => return Ok(ended?),
            error = self.gateway_died() => return Err(error),
            first = signals.next() => first,
        };
        tracing::info!("{first}: draining; send it again to stop immediately");
        let drained = tokio::select! {
            drained = self.stop() => drained,
            second = signals.next() => return Err(RunError::Interrupted(second)),
        };
        match drained {
            // A node that was not a worker leaves nothing behind.
            None | Some(Drained::Empty) => Ok(()),
            Some(Drained::Abandoned) => {
                tracing::warn!(
                    "the drain was given up: the leader recovers the remaining jobs after the session expires"
                );
                Err(RunError::Abandoned)
            }
        }
    }

    /// Stops the node: takes no new jobs, lets running jobs finish within the drain grace, hands back the rest, gives
    /// up leadership and closes the session. Returns `None` for a node that was not a worker.
    ///
    /// # Cancellation
    /// Dropping the future leaves the stop incomplete: call it again.
    pub async fn stop(&self) -> Option<Drained> {
        #[cfg(feature = "http")]
        if let Some(gateway) = &self.gateway {
            gateway.stop().await;
        }
        self.inner.stop(self.drain_grace).await
    }

    /// Waits until the node has ended. Returns `Ok` if it was asked to stop.
    ///
    /// # Errors
    /// The reason why the node ended without being asked to.
    pub async fn ended(&self) -> Result<(), NodeError> {
        self.inner.ended().await
    }

    /// Returns the node's gateway, if it has that role.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn gateway(&self) -> Option<&Gateway> {
        self.gateway.as_ref()
    }

    #[cfg(feature = "http")]
    async fn gateway_died(&self) -> RunError {
        match &self.gateway {
            // A gateway that was asked to stop is part of a node's stop, which ends this wait.
            Some(gateway) => match gateway.ended().await {
                Err(error) => error.into(),
                Ok(()) => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    #[cfg(not(feature = "http"))]
    async fn gateway_died(&self) -> RunError {
        std::future::pending().await
    }

    /// Returns the actors that the node consists of.
    #[must_use]
    pub fn actors(&self) -> &bellwether_host::node::Node {
        &self.inner
    }
}
