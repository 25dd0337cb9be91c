//! A node of a test cluster, and the faults that can be injected into it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_host::session::SessionStatus;
use bellwether_keeper::server::Keeper;

use super::proxy::KeeperProxy;
use crate::node::{Drained, Node};

/// A node of a [`Cluster`](super::Cluster). Dropping it kills the node.
#[derive(Debug)]
pub struct ClusterNode {
    pub(super) name: String,
    pub(super) node: Node,
    pub(super) proxy: KeeperProxy,
    pub(super) keeper: Arc<Keeper>,
    pub(super) gone: AtomicBool,
}

impl ClusterNode {
    /// Returns the name of the node: `node-0`, `node-1`, ….
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the node.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Whether the node may act as the leader at this moment.
    #[must_use]
    pub fn leads(&self) -> bool {
        let parts = self.node.actors().parts();
        let parts = parts.borrow();
        !self.is_gone() && parts.election.as_ref().is_some_and(|election| election.may_act())
    }

    /// Kills the node like `kill -9`: nothing is handed back, nothing more is sent, and ZooKeeper notices when the
    /// session expires. Handlers are dropped at their next await. A blocking handler runs to its end, but its result
    /// is lost.
    pub async fn kill(&self) {
        self.cut_down();
        if let Err(end) = self.node.ended().await {
            tracing::debug!(node = self.name, %end, "the test killed the node");
        }
    }

    fn cut_down(&self) {
        self.gone.store(true, Ordering::SeqCst);
        self.proxy.cut();
        self.node.actors().kill();
    }

    /// Expires the node's ZooKeeper session, as if ZooKeeper had not heard from it in time. The node keeps running
    /// and opens another session. Returns `false` if the node has no session now or has ended.
    pub async fn expire(&self) -> bool {
        match self.session() {
            Some(session) if !self.is_gone() => self.keeper.expire(session).await,
            Some(_) | None => false,
        }
    }

    /// Cuts the node's connection to ZooKeeper and refuses new ones until [`ClusterNode::mend`].
    pub fn cut_off(&self) {
        self.proxy.cut();
    }

    /// Lets the node's requests reach ZooKeeper, but drops all replies until [`ClusterNode::mend`].
    pub fn lose_replies(&self) {
        self.proxy.lose_replies();
    }

    /// Lets the node communicate with ZooKeeper again. A killed node stays dead.
    pub fn mend(&self) {
        if !self.is_gone() {
            self.proxy.mend();
        }
    }

    /// Stops the node gracefully: see [`Node::stop`].
    pub async fn stop(&self) -> Option<Drained> {
        let drained = self.node.stop().await;
        self.gone.store(true, Ordering::SeqCst);
        drained
    }

    /// Whether the node was killed or stopped, or has ended for another reason.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst) || self.node.actors().has_ended()
    }

    fn session(&self) -> Option<i64> {
        let parts = self.node.actors().parts();
        let status = parts.borrow().session.as_ref()?.status();
        let status = status.borrow();
        match &*status {
            SessionStatus::Connected(zk) => Some(zk.session_id()),
            SessionStatus::Connecting { .. } | SessionStatus::Disconnected | SessionStatus::Refused(_) => {
                None
            }
        }
    }
}

impl Drop for ClusterNode {
    fn drop(&mut self) {
        self.cut_down();
    }
}
