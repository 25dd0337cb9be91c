//! The builder of a node: its settings, their validation before any connection, and the start.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::clock_report::Process;
use bellwether_core::name::{NodeId, StrategyName, Tag, WorkerId};
use bellwether_core::placement::{OwnStrategies, PlacementStrategy};
use bellwether_host::election::ElectionConfig;
use bellwether_host::node::{CandidateConfig, NodeConfig};
use bellwether_host::session::SessionConfig;
use bellwether_host::worker::WorkerConfig;
use bellwether_zk::Access;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::id::{default_id, host_name};
use super::{ElectionStrategy, Node, StartError, TakeOver, WorkerOwner, exposure, schedules};
use crate::client::{ClientBuilder, Schedule};
use crate::codec::{Codec, PayloadCodec};
use crate::connection::Connection;
use crate::handler::{Handlers, JobContext, NodeClient};

/// The default of [`NodeBuilder::drain_grace`] and of `bellwether node --drain-grace`: 30 s. With the time for the requests to
/// ZooKeeper a stop takes at most 45 s, half of what `systemctl stop` allows by default.
pub const DEFAULT_DRAIN_GRACE: Duration = Duration::from_secs(30);

/// A custom placement strategy, whose type need not implement `Debug`.
#[derive(Clone)]
struct Own(Arc<dyn PlacementStrategy>);

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlacementStrategy")
    }
}

/// Builds a [`Node`].
#[derive(Debug, Clone)]
pub struct NodeBuilder {
    connection: Connection,
    node_id: Option<String>,
    drain_grace: Duration,
    candidate: bool,
    election: ElectionStrategy,
    strategies: Vec<(String, Own)>,
    slots: u32,
    tags: Vec<String>,
    former: Option<WorkerId>,
    owner: Option<WorkerOwner>,
    take_over: Option<TakeOver>,
    handlers: Option<Handlers>,
    schedules: Vec<Schedule>,
    codec: Option<Codec>,
}

impl NodeBuilder {
    pub(crate) fn new(connection: Connection) -> Self {
        Self {
            connection,
            node_id: None,
            drain_grace: DEFAULT_DRAIN_GRACE,
            candidate: true,
            election: ElectionStrategy::default(),
            strategies: Vec::new(),
            slots: default_slots(),
            tags: Vec::new(),
            former: None,
            owner: None,
            take_over: None,
            handlers: None,
            schedules: Vec::new(),
            codec: None,
        }
    }

    /// Sets the identity of all of the node's sessions to ZooKeeper.
    ///
    /// By default the sessions are not authenticated. Then every client that can reach ZooKeeper may read and change
    /// all znodes that the node creates.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.connection.access = access;
        self
    }

    /// Sets the node's name for people; by default the host name and the process id. It need not be unique.
    #[must_use]
    pub fn node_id(mut self, id: impl Into<String>) -> Self {
        self.node_id = Some(id.into());
        self
    }

    /// Makes the node a worker that runs these handlers.
    #[must_use]
    pub fn handlers(mut self, handlers: Handlers) -> Self {
        self.handlers = Some(handlers);
        self
    }

    /// Sets how many jobs the worker runs concurrently; by default the number of processors, at least 4.
    #[must_use]
    pub fn slots(mut self, slots: u32) -> Self {
        self.slots = slots;
        self
    }

    /// Sets the tags of the worker, which jobs may require.
    #[must_use]
    pub fn tags(mut self, tags: impl IntoIterator<Item: Into<String>>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Names the worker that this one replaces, in a program that runs jobs for other processes: the process that runs the
    /// attempts is alive and has moved to this node from a node that died.
    ///
    /// The attempts of the former worker are then handed back without a loss, because no job of it has killed the process.
    /// If the leader closes them before it reads the new registration, they count as lost.
    #[must_use]
    pub fn former_worker(mut self, worker: WorkerId) -> Self {
        self.former = Some(worker);
        self
    }

    /// Sets the owner of the worker, in a program that runs jobs for other processes: a digest of what only the process knows.
    /// It is stored in the worker's registration. Another node with the same owner can [take over](Self::take_over) its attempts.
    #[must_use]
    pub fn worker_owner(mut self, owner: WorkerOwner) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Makes the first registration of the worker take over attempts of a former worker with the same
    /// [owner](Self::worker_owner), before it takes jobs. Without an owner nothing is taken over.
    ///
    /// Name the former worker also with [`Self::former_worker`], so that what is not moved is handed back without a loss.
    #[must_use]
    pub fn take_over(mut self, take_over: TakeOver) -> Self {
        self.take_over = Some(take_over);
        self
    }

    /// Adds a schedule as soon as ZooKeeper is reachable. May be called repeatedly to add more.
    ///
    /// Nodes that start with the same schedule create it once. If a different schedule of this id exists, it is
    /// kept and the conflict is logged, unless this one [replaces](Schedule::replace) it. A schedule whose only
    /// instant is in the past is also logged and not added.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedules.push(schedule);
        self
    }

    /// Decodes payloads before the handlers run, and encodes their results, with this codec: see [`codec`](crate::codec). It
    /// also encodes the payloads of sub-jobs that handlers submit and of the node's schedules, and decodes the results that
    /// joins read. By default payloads and results are stored as they are.
    #[must_use]
    pub fn payload_codec(self, codec: impl PayloadCodec) -> Self {
        self.codec(Some(Codec::new(codec)))
    }

    pub(crate) fn codec(mut self, codec: Option<Codec>) -> Self {
        self.codec = codec;
        self
    }

    /// Sets whether the node takes part in leader election; by default it does.
    #[must_use]
    pub fn candidate(mut self, candidate: bool) -> Self {
        self.candidate = candidate;
        self
    }

    /// Sets how candidates are ordered. The first candidate of a namespace decides; one with
    /// another strategy is refused.
    #[must_use]
    pub fn election(mut self, strategy: ElectionStrategy) -> Self {
        self.election = strategy;
        self
    }

    /// Adds a custom placement strategy, which the node uses while it is the leader and the namespace's setting names it:
    /// see [`placement`](crate::placement). Add it to every candidate, because each may become the leader.
    #[must_use]
    pub fn placement_strategy(
        mut self,
        name: impl Into<String>,
        strategy: impl PlacementStrategy + 'static,
    ) -> Self {
        self.strategies.push((name.into(), Own(Arc::new(strategy))));
        self
    }

    /// Sets how long ZooKeeper waits for a silent node before its session expires, and its jobs and its leadership
    /// move to other nodes. 10 s by default, at least 100 ms. ZooKeeper clamps it to 2 to 20 of its ticks.
    #[must_use]
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.connection.session_timeout = timeout;
        self
    }

    /// Sets how long running jobs may continue while the node stops, before it hands them back; 30 s by default
    /// ([`DEFAULT_DRAIN_GRACE`]).
    #[must_use]
    pub fn drain_grace(mut self, grace: Duration) -> Self {
        self.drain_grace = grace;
        self
    }

    /// Starts the node. From then on it connects, campaigns and registers, and does so again after every connection
    /// loss.
    ///
    /// # Errors
    /// [`StartError`]: a setting is invalid. An unreachable ZooKeeper is not an error: the node keeps trying and logs
    /// it.
    pub async fn start(self) -> Result<Node, StartError> {
        self.started().await
    }

    /// Boxed, so that the future is compiled in this crate and not again in each program.
    fn started(self) -> BoxFuture<'static, Result<Node, StartError>> {
        self.start_all().boxed()
    }

    async fn start_all(self) -> Result<Node, StartError> {
        let connect = self.connection.check()?;
        let host = host_name();
        let node = NodeId::new(self.node_id.clone().unwrap_or_else(default_id))?;
        for schedule in &self.schedules {
            let wrong = |reason| StartError::Schedule { id: schedule.id().to_owned(), reason };
            schedule.check().map_err(wrong)?;
        }
        let owner = node.to_string();
        let process = Process { node: Some(node.clone()), host: host.clone() };
        let worker = self.worker(&node, host)?;
        let mut strategies = OwnStrategies::default();
        for (name, Own(strategy)) in self.strategies {
            strategies.add(StrategyName::new(name)?, strategy)?;
        }
        let candidate = self.candidate.then(|| {
            let election = ElectionConfig { strategy: self.election, ..ElectionConfig::new(node) };
            CandidateConfig { election, strategies }
        });
        if worker.is_none() && candidate.is_none() && self.schedules.is_empty() {
            return Err(StartError::NoRole);
        }
        let session = SessionConfig {
            owner,
            is_trusted: true,
            election: candidate.as_ref().map(|candidate| candidate.election.strategy),
            connect,
            access: self.connection.access.clone(),
            session_timeout: self.connection.session_timeout,
            create_namespace: true,
            reads_clock: Some(process),
        };
        let config = NodeConfig { session, candidate, worker };
        let inner = bellwether_host::node::Node::start(config).await;
        let inner = inner.map_err(|error| StartError::Actors(Box::new(error)))?;
        exposure::watch(&inner);
        if !self.schedules.is_empty() {
            let (node, schedules) = (inner.clone(), self.schedules);
            let client = ClientBuilder::new(self.connection).codec(self.codec);
            tokio::spawn(async move {
                let added = schedules::add(client, schedules);
                tokio::select! {
                    () = added => {}
                    // The node reports itself why it ended.
                    _ended = node.ended() => {}
                }
            });
        }
        Ok(Node { inner, drain_grace: self.drain_grace })
    }

    fn worker(&self, node: &NodeId, host: String) -> Result<Option<WorkerConfig>, StartError> {
        let Some(handlers) = &self.handlers else { return Ok(None) };
        let handlers = handlers.clone().build(self.codec.as_ref())?;
        let client = ClientBuilder::new(self.connection.clone()).codec(self.codec.clone());
        let client = Arc::new(NodeClient::new(client));
        let handlers = handlers.adapt(move |run| JobContext::of_node(run, Arc::clone(&client)));
        let tags = self.tags.iter().map(Tag::new).collect::<Result<Vec<_>, _>>()?;
        let config = WorkerConfig {
            node: node.clone(),
            host,
            slots: self.slots,
            tags,
            handlers,
            drain_grace: self.drain_grace,
            former: self.former,
            owner: self.owner,
            takeover: self.take_over.as_ref().map(TakeOver::config),
        };
        config.check()?;
        Ok(Some(config))
    }
}

fn default_slots() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(processors).unwrap_or(u32::MAX).max(4)
}
