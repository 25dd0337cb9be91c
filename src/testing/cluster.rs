//! A whole cluster in one process.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bellwether_core::remedy::ErrorClass;
use bellwether_host::testing::Probe;
use bellwether_host::worker::Stage;
use bellwether_keeper::server::Keeper;
use futures::future::join_all;
use tokio::time::{sleep, timeout};

use super::namespace;
use super::node::ClusterNode;
use super::proxy::KeeperProxy;
use crate::client::{Client, ConnectError};
use crate::handler::Handlers;
use crate::node::{Node, NodeBuilder, StartError};

/// The namespace of the cluster. Each cluster has its own server.
pub(super) const CHROOT: &str = "/test";

/// Session timeout of the nodes: short enough to detect a loss soon, long enough for a busy machine.
const SESSION_TIMEOUT: Duration = Duration::from_secs(2);

/// Session timeout of the client, which no fault affects.
const CLIENT_SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// The resolution of the server's session expiry. It grants session timeouts of 0.2 s to a minute.
const TICK_TIME: Duration = Duration::from_millis(100);
const MAX_SESSION_TIMEOUT: Duration = Duration::from_secs(60);

/// The limit of all waits for a cluster: longer than any failover.
pub(super) const SOON: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How long running jobs may continue while a node stops.
const DRAIN_GRACE: Duration = Duration::from_secs(5);

/// An in-memory keeper, nodes and a client, all in this process. Dropping it kills the nodes and stops the server
/// without waiting: use [`Cluster::stop`] to wait.
#[derive(Debug)]
pub struct Cluster {
    // In the order in which they are dropped.
    nodes: Vec<ClusterNode>,
    client: Client,
    keeper: Arc<Keeper>,
    recipe: ClusterBuilder,
}

type Way = Arc<dyn Fn(usize, String) -> String + Send + Sync>;
type Configure = Arc<dyn Fn(usize, NodeBuilder) -> NodeBuilder + Send + Sync>;

/// Builds a [`Cluster`].
#[derive(Clone)]
pub struct ClusterBuilder {
    handlers: Handlers,
    nodes: usize,
    configure: Configure,
    way: Way,
    probe: Option<Probe>,
}

/// A cluster did not start, or did not reach an awaited state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The server did not start, or stopped without being asked to.
    #[error("the keeper does not run")]
    Keeper(#[source] Box<dyn Error + Send + Sync>),
    /// No port is available.
    #[error("no port for a node")]
    KeeperProxy(#[from] io::Error),
    /// A node's configuration is invalid.
    #[error("a node did not start")]
    Node(#[from] StartError),
    /// The client has no session.
    #[error("the client did not connect")]
    Client(#[from] ConnectError),
    /// The cluster did not reach the awaited state in time.
    #[error("not reached within {SOON:?}: {0}")]
    NotInTime(&'static str),
}

impl ClusterError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Keeper(_) | Self::KeeperProxy(_) => ErrorClass::Failed,
            Self::Node(error) => error.class(),
            Self::Client(error) => error.class(),
            Self::NotInTime(_) => ErrorClass::TimedOut,
        }
    }
}

bellwether_core::impl_remedy!(ClusterError);

impl fmt::Debug for ClusterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { handlers, nodes, configure: _, way: _, probe } = self;
        f.debug_struct("ClusterBuilder")
            .field("handlers", handlers)
            .field("nodes", nodes)
            .field("probe", probe)
            .finish_non_exhaustive()
    }
}

impl ClusterBuilder {
    /// Sets the number of nodes; 1 by default.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Changes the settings of each node, given its index from 0. By default each node is a candidate and a worker
    /// with all handlers, and has a session timeout of 2 s.
    #[must_use]
    pub fn configure(
        mut self,
        configure: impl Fn(usize, NodeBuilder) -> NodeBuilder + Send + Sync + 'static,
    ) -> Self {
        self.configure = Arc::new(configure);
        self
    }

    /// Routes the connection of each node, given its index, to the server through your own proxy. The function
    /// receives the server's connect string and returns the connect string for the node.
    #[must_use]
    pub fn by_way_of(mut self, way: impl Fn(usize, String) -> String + Send + Sync + 'static) -> Self {
        self.way = Arc::new(way);
        self
    }

    /// Observes the actors of the nodes. Each node is a scope that is labelled with its name.
    #[must_use]
    pub fn probe(mut self, probe: &Probe) -> Self {
        self.probe = Some(probe.clone());
        self
    }

    /// Starts the server, the nodes and the client, and waits until the cluster is [ready](Cluster::ready).
    ///
    /// # Errors
    /// [`ClusterError`].
    pub async fn start(self) -> Result<Cluster, ClusterError> {
        let server = Keeper::builder().tick_time(TICK_TIME).max_session_timeout(MAX_SESSION_TIMEOUT);
        let server = server.store(namespace::stored().await?);
        let keeper = Arc::new(server.start().await.map_err(keeper)?);
        let address = format!("{}{CHROOT}", keeper.connect_string());
        let client =
            Client::builder(&address).session_timeout(CLIENT_SESSION_TIMEOUT).deadline(SOON).connect();
        let client = client.await?;
        let mut cluster = Cluster { nodes: Vec::new(), client, keeper, recipe: self };
        for _ in 0..cluster.recipe.nodes {
            cluster.add().await?;
        }
        cluster.ready().await?;
        Ok(cluster)
    }
}

impl Cluster {
    /// Returns a builder for a cluster whose workers run these handlers.
    #[must_use]
    pub fn builder(handlers: Handlers) -> ClusterBuilder {
        let (configure, way) = (Arc::new(|_, node| node), Arc::new(|_, server| server));
        ClusterBuilder { handlers, nodes: 1, configure, way, probe: None }
    }

    /// Returns a client that no fault of a node affects.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the connect string for further nodes and clients.
    #[must_use]
    pub fn zookeeper(&self) -> String {
        format!("{}{CHROOT}", self.keeper.connect_string())
    }

    /// Returns all nodes, including killed and stopped ones, in the order of their start.
    #[must_use]
    pub fn nodes(&self) -> &[ClusterNode] {
        &self.nodes
    }

    /// Returns the node of this name, for example the name in a [`JobView::node`](crate::JobView).
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&ClusterNode> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Starts one more node without waiting until it is [ready](Cluster::ready).
    ///
    /// # Errors
    /// Fails if the node's configuration is invalid, or no port is available.
    pub async fn add(&mut self) -> Result<&ClusterNode, ClusterError> {
        let index = self.nodes.len();
        let name = format!("node-{index}");
        let proxy = KeeperProxy::to(self.keeper.address()).await?;
        let server = (self.recipe.way)(index, format!("{}{CHROOT}", proxy.address()));
        let node = Node::builder(server)
            .node_id(&name)
            .session_timeout(SESSION_TIMEOUT)
            .drain_grace(DRAIN_GRACE)
            .handlers(self.recipe.handlers.clone());
        let starting = (self.recipe.configure)(index, node).start();
        let node = match &self.recipe.probe {
            Some(probe) => probe.scope(&name, starting).await?,
            None => starting.await?,
        };
        let (keeper, gone) = (Arc::clone(&self.keeper), AtomicBool::new(false));
        self.nodes.push(ClusterNode { name, node, proxy, keeper, gone });
        Ok(&self.nodes[index])
    }

    /// Waits until a node is the leader, if there is a candidate, and every worker is registered. Killed, stopped and
    /// ended nodes do not count.
    ///
    /// # Errors
    /// [`ClusterError::NotInTime`].
    pub async fn ready(&self) -> Result<(), ClusterError> {
        soon("every worker is registered, and a node is the leader", || async {
            let live = || self.nodes.iter().filter(|node| !node.is_gone());
            let candidates = live().any(|node| node.node.actors().parts().borrow().election.is_some());
            let led = !candidates || live().any(ClusterNode::leads);
            (led && live().all(serves)).then_some(())
        })
        .await
    }

    /// Waits until a node is the leader and returns it.
    ///
    /// # Errors
    /// [`ClusterError::NotInTime`].
    pub async fn leader(&self) -> Result<&ClusterNode, ClusterError> {
        soon("a node is the leader", || async { self.nodes.iter().find(|node| node.leads()) }).await
    }

    /// Stops all nodes gracefully and concurrently, then the client and the server. When this returns, only blocking
    /// handlers that have not returned still run, and, for some session timeouts, tasks of the ZooKeeper client of
    /// killed nodes.
    ///
    /// # Errors
    /// Fails if the server had stopped before.
    pub async fn stop(self) -> Result<(), ClusterError> {
        let Self { nodes, client, keeper, recipe: _ } = self;
        let live = nodes.iter().filter(|node| !node.is_gone());
        join_all(live.map(ClusterNode::stop)).await;
        drop(nodes);
        client.close().await;
        match Arc::into_inner(keeper) {
            Some(keeper) => keeper.stop().await.map_err(self::keeper),
            None => unreachable!("only the nodes hold other references to the keeper"),
        }
    }
}

pub(super) fn keeper(error: impl Error + Send + Sync + 'static) -> ClusterError {
    ClusterError::Keeper(Box::new(error))
}

/// Whether the node's worker is registered, or the node is not a worker.
fn serves(node: &ClusterNode) -> bool {
    let parts = node.node.actors().parts();
    let parts = parts.borrow();
    parts.worker.as_ref().is_none_or(|worker| worker.status().borrow().stage == Stage::Serving)
}

async fn soon<T, F: Future<Output = Option<T>>>(
    what: &'static str,
    mut look: impl FnMut() -> F,
) -> Result<T, ClusterError> {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            sleep(LOOK_EVERY).await;
        }
    };
    timeout(SOON, looking).await.map_err(|_| ClusterError::NotInTime(what))
}
