//! A whole cluster in one process.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bellwether_host::testing::Probe;
use bellwether_host::worker::Stage;
use bellwether_keeper::model::Config;
use bellwether_keeper::server::{Keeper, StopReason};
use futures::future::join_all;
use tokio::time::{sleep, timeout};

use super::node::ClusterNode;
use super::proxy::KeeperProxy;
use crate::client::{Client, ConnectError};
use crate::handler::Handlers;
use crate::node::{Node, NodeBuilder, StartError};

/// The namespace of each cluster on its own server.
const CHROOT: &str = "/test";

/// Of the nodes: a loss is seen soon, and a busy machine does not cause one.
const SESSION_TIMEOUT: Duration = Duration::from_secs(2);

/// Of the client, which no fault shall touch.
const CLIENT_SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// How exact the server's time is. Sessions of 0.2 s to a minute are granted.
const TICK_MS: i32 = 100;
const LONGEST_SESSION_MS: i32 = 60_000;

/// How long the waits here last at most: longer than any takeover.
const SOON: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How long a stopping node lets its jobs run.
const DRAIN_GRACE: Duration = Duration::from_secs(5);

/// A keeper in memory, nodes and a client, all in this process. Dropping it kills the nodes and stops the server without
/// waiting for them: see [`Cluster::stop`].
#[derive(Debug)]
pub struct Cluster {
    // In the order in which they end.
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

/// Why a cluster did not start, or did not do what was waited for.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The server did not start.
    #[error("the keeper did not start")]
    Keeper(#[from] bellwether_keeper::server::StartError),
    /// The server stopped by itself.
    #[error(transparent)]
    Stopped(#[from] StopReason),
    /// No port.
    #[error("no port for a node")]
    KeeperProxy(#[from] io::Error),
    /// A node's configuration is out of its bounds.
    #[error("a node did not start")]
    Node(#[from] StartError),
    /// The client has no session.
    #[error("the client did not connect")]
    Client(#[from] ConnectError),
    /// What was waited for did not come about.
    #[error("not within {SOON:?}: {0}")]
    NotInTime(&'static str),
}

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
    /// How many nodes; 1 by default.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Changes what the n-th node is built with, counted from 0. By default each is a candidate and a worker with all
    /// the handlers, and has a session timeout of 2 s.
    #[must_use]
    pub fn configure(
        mut self,
        configure: impl Fn(usize, NodeBuilder) -> NodeBuilder + Send + Sync + 'static,
    ) -> Self {
        self.configure = Arc::new(configure);
        self
    }

    /// Leads the n-th node's way to the server past something of one's own, such as a proxy: given the server's connect
    /// string, it answers what the node shall connect to.
    #[must_use]
    pub fn by_way_of(mut self, way: impl Fn(usize, String) -> String + Send + Sync + 'static) -> Self {
        self.way = Arc::new(way);
        self
    }

    /// Watches the nodes' actors; each node is a scope that is labelled with its name.
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
        let config = Config {
            tick_ms: TICK_MS,
            max_session_timeout_ms: Some(LONGEST_SESSION_MS),
            ..Config::default()
        };
        let keeper = Arc::new(Keeper::builder().config(config).start().await?);
        let address = format!("{}{CHROOT}", keeper.connect_string());
        let client =
            Client::builder().session_timeout(CLIENT_SESSION_TIMEOUT).deadline(SOON).connect(&address);
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
    /// Starts to build a cluster whose workers run these.
    #[must_use]
    pub fn builder(handlers: Handlers) -> ClusterBuilder {
        let (configure, way) = (Arc::new(|_, node| node), Arc::new(|_, server| server));
        ClusterBuilder { handlers, nodes: 1, configure, way, probe: None }
    }

    /// A client, which no fault of a node touches.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Where nodes and clients of one's own connect to.
    #[must_use]
    pub fn zookeeper(&self) -> String {
        format!("{}{CHROOT}", self.keeper.connect_string())
    }

    /// The nodes, also those that were killed or stopped, in the order of their start.
    #[must_use]
    pub fn nodes(&self) -> &[ClusterNode] {
        &self.nodes
    }

    /// The node of this name, such as that of a [`JobView::node`](crate::JobView).
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&ClusterNode> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Starts one more node, and does not wait for it: see [`Cluster::ready`].
    ///
    /// # Errors
    /// When its configuration is out of its bounds, or there is no port.
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

    /// Waits until a node leads, if there is a candidate, and every worker is registered. Nodes that were killed or
    /// stopped, or have ended, do not count.
    ///
    /// # Errors
    /// [`ClusterError::NotInTime`].
    pub async fn ready(&self) -> Result<(), ClusterError> {
        soon("every worker is registered, and a node leads", || async {
            let live = || self.nodes.iter().filter(|node| !node.is_gone());
            let candidates = live().any(|node| node.node.actors().parts().borrow().election.is_some());
            let led = !candidates || live().any(ClusterNode::leads);
            (led && live().all(serves)).then_some(())
        })
        .await
    }

    /// Waits until a node leads, and tells which.
    ///
    /// # Errors
    /// [`ClusterError::NotInTime`].
    pub async fn leader(&self) -> Result<&ClusterNode, ClusterError> {
        soon("a node leads", || async { self.nodes.iter().find(|node| node.leads()) }).await
    }

    /// Stops the nodes gracefully and all at once, then the client and the server. When this returns, nothing of it is
    /// left but blocking handlers that have not returned, and for some session timeouts the client library's tasks of
    /// nodes that were killed.
    ///
    /// # Errors
    /// When the server had stopped by itself.
    pub async fn stop(self) -> Result<(), ClusterError> {
        let Self { nodes, client, keeper, recipe: _ } = self;
        let live = nodes.iter().filter(|node| !node.is_gone());
        join_all(live.map(ClusterNode::stop)).await;
        drop(nodes);
        client.close().await;
        match Arc::into_inner(keeper) {
            Some(keeper) => Ok(keeper.stop().await?),
            None => unreachable!("only the nodes had it, too"),
        }
    }
}

/// Whether its worker is registered, if it is to be one.
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
