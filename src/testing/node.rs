//! A node of a test's cluster, and what may befall it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_host::session::SessionStatus;
use bellwether_keeper::server::Keeper;

use super::proxy::KeeperProxy;
use crate::node::{Drained, Node};

/// A node of a [`Cluster`](super::Cluster). It is killed when it is dropped.
#[derive(Debug)]
pub struct ClusterNode {
    pub(super) name: String,
    pub(super) node: Node,
    pub(super) proxy: KeeperProxy,
    pub(super) keeper: Arc<Keeper>,
    pub(super) gone: AtomicBool,
}

impl ClusterNode {
    /// What it is called: `node-0`, `node-1`, ….
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The node.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Whether it may act as the leader at this moment.
    #[must_use]
    pub fn leads(&self) -> bool {
        let parts = self.node.actors().parts();
        let parts = parts.borrow();
        !self.is_gone() && parts.election.as_ref().is_some_and(|election| election.may_act())
    }

    /// Ends it as `kill -9` ends a process: nothing is handed back, nothing more is sent, and ZooKeeper finds out when
    /// the session has timed out. Handlers are dropped at their next await; a blocking one runs to its end, but its
    /// result goes nowhere.
    pub async fn kill(&self) {
        self.cut_down();
        if let Err(end) = self.node.ended().await {
            tracing::debug!(node = self.name, %end, "killed");
        }
    }

    fn cut_down(&self) {
        self.gone.store(true, Ordering::SeqCst);
        self.proxy.cut();
        self.node.actors().kill();
    }

    /// Ends its ZooKeeper session, as ZooKeeper does when it has not heard of it in time. The node lives on, and comes
    /// back under another session. `false` when it has no session now, or is gone.
    pub async fn expire(&self) -> bool {
        match self.session() {
            Some(session) if !self.is_gone() => self.keeper.expire(session).await,
            Some(_) | None => false,
        }
    }

    /// Cuts its connection to ZooKeeper, and lets it make no other, until [`ClusterNode::mend`].
    pub fn cut_off(&self) {
        self.proxy.cut();
    }

    /// What it asks of ZooKeeper is done, and it hears of nothing, until [`ClusterNode::mend`].
    pub fn lose_replies(&self) {
        self.proxy.lose_replies();
    }

    /// Lets it speak with ZooKeeper again. A killed one does not come back.
    pub fn mend(&self) {
        if !self.is_gone() {
            self.proxy.mend();
        }
    }

    /// Stops it gracefully, as [`Node::stop`] does.
    pub async fn stop(&self) -> Option<Drained> {
        let drained = self.node.stop().await;
        self.gone.store(true, Ordering::SeqCst);
        drained
    }

    /// Whether it was killed or stopped, or has ended by itself.
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
