//! How a node is built: what it is given, the bounds that are checked before anything is connected to, and the start.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::name::{NodeId, Tag};
use bellwether_host::election::ElectionConfig;
use bellwether_host::node::{CandidateConfig, NodeConfig};
use bellwether_host::session::SessionConfig;
use bellwether_host::worker::WorkerConfig;
use bellwether_zk::{Access, ConnectString};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::id::{default_id, host_name};
use super::{AssignmentStrategy, ElectionStrategy, Node, StartError, exposure, schedules};
use crate::client::Schedule;
use crate::handler::{Handlers, JobContext, NodeClient};
use crate::session_timeout;

/// Long enough for a garbage collection of the ensemble, short enough that a dead worker's jobs move soon.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// What an operator's `systemctl stop` allows by default, with a margin.
const DRAIN_GRACE: Duration = Duration::from_secs(60);

/// Builds a [`Node`].
#[derive(Debug, Clone)]
pub struct NodeBuilder {
    zookeeper: String,
    access: Access,
    node_id: Option<String>,
    session_timeout: Duration,
    drain_grace: Duration,
    candidate: bool,
    election: ElectionStrategy,
    assignment: AssignmentStrategy,
    slots: u32,
    tags: Vec<String>,
    handlers: Option<Handlers>,
    schedules: Vec<Schedule>,
}

impl NodeBuilder {
    pub(super) fn new(zookeeper: String) -> Self {
        Self {
            zookeeper,
            access: Access::default(),
            node_id: None,
            session_timeout: SESSION_TIMEOUT,
            drain_grace: DRAIN_GRACE,
            candidate: true,
            election: ElectionStrategy::default(),
            assignment: AssignmentStrategy::default(),
            slots: default_slots(),
            tags: Vec::new(),
            handlers: None,
            schedules: Vec::new(),
        }
    }

    /// Who all of the node's sessions are to ZooKeeper. By default nobody in particular: then anyone who reaches ZooKeeper
    /// may read and change all that the node creates.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// What people call it; by default the host's name and the process id. Nothing relies on its uniqueness.
    #[must_use]
    pub fn node_id(mut self, id: impl Into<String>) -> Self {
        self.node_id = Some(id.into());
        self
    }

    /// Makes it a worker that runs these.
    #[must_use]
    pub fn handlers(mut self, handlers: Handlers) -> Self {
        self.handlers = Some(handlers);
        self
    }

    /// How many jobs it runs at a time; by default as many as the machine has processors, at least 4.
    #[must_use]
    pub fn slots(mut self, slots: u32) -> Self {
        self.slots = slots;
        self
    }

    /// A tag that it offers; jobs may require it.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// A schedule to add when ZooKeeper serves. May be called again for more. Nodes that are started with the same ones
    /// make each once. One of its name that differs stays as it is, and this one is told as a conflict in the log, unless
    /// it [replaces](Schedule::replace); so is one whose only instant is in the past.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedules.push(schedule);
        self
    }

    /// Whether it takes part in leadership; by default it does.
    #[must_use]
    pub fn candidate(mut self, candidate: bool) -> Self {
        self.candidate = candidate;
        self
    }

    /// How candidates are ordered. All nodes of a namespace must agree.
    #[must_use]
    pub fn election(mut self, strategy: ElectionStrategy) -> Self {
        self.election = strategy;
        self
    }

    /// How it chooses workers while it leads.
    #[must_use]
    pub fn assignment(mut self, strategy: AssignmentStrategy) -> Self {
        self.assignment = strategy;
        self
    }

    /// How long ZooKeeper waits for a silent node before its jobs and its leadership move; 10 s by default, at
    /// least 100 ms. ZooKeeper clamps it to 2 to 20 of its ticks.
    #[must_use]
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout;
        self
    }

    /// How long a stopping node lets its jobs run before it hands them back; 60 s by default.
    #[must_use]
    pub fn drain_grace(mut self, grace: Duration) -> Self {
        self.drain_grace = grace;
        self
    }

    /// Starts the node. It connects, campaigns and registers from then on, and again after every loss.
    ///
    /// # Errors
    /// [`StartError`]: something that was given is out of its bounds. That ZooKeeper cannot be reached is none:
    /// the node keeps trying, and logs it.
    pub async fn start(self) -> Result<Node, StartError> {
        self.started().await
    }

    /// Boxed, so that all of it is compiled here and not again in each program.
    fn started(self) -> BoxFuture<'static, Result<Node, StartError>> {
        self.start_all().boxed()
    }

    async fn start_all(self) -> Result<Node, StartError> {
        let connect = self.zookeeper.parse::<ConnectString>()?;
        let session_timeout = session_timeout::check(self.session_timeout)?;
        let host = host_name();
        let node = NodeId::new(self.node_id.clone().unwrap_or_else(default_id))?;
        for schedule in &self.schedules {
            let wrong = |reason| StartError::Schedule { name: schedule.name().to_owned(), reason };
            schedule.check().map_err(wrong)?;
        }
        let worker = self.worker(&node, host, session_timeout)?;
        let candidate = self.candidate.then(|| {
            let election = ElectionConfig { strategy: self.election, ..ElectionConfig::new(node) };
            CandidateConfig { election, strategy: self.assignment }
        });
        if worker.is_none() && candidate.is_none() {
            return Err(StartError::NoRole);
        }
        let session =
            SessionConfig { connect, access: self.access.clone(), session_timeout, create_namespace: true };
        let config = NodeConfig { session, candidate, worker };
        let inner = bellwether_host::node::Node::start(config).await;
        let inner = inner.map_err(|error| StartError::Actors(Box::new(error)))?;
        exposure::watch(&inner);
        if !self.schedules.is_empty() {
            let (node, schedules) = (inner.clone(), self.schedules);
            tokio::spawn(async move {
                let added = schedules::add(self.zookeeper, self.access, session_timeout, schedules);
                tokio::select! {
                    () = added => {}
                    // With what was not added yet, as it says itself why it ended.
                    _ended = node.ended() => {}
                }
            });
        }
        Ok(Node { inner, drain_grace: self.drain_grace })
    }

    fn worker(
        &self,
        node: &NodeId,
        host: String,
        session_timeout: Duration,
    ) -> Result<Option<WorkerConfig>, StartError> {
        let Some(handlers) = &self.handlers else { return Ok(None) };
        let handlers = handlers.clone().build()?;
        let kinds = handlers.kinds().cloned().collect();
        let client = NodeClient::new(&self.zookeeper, self.access.clone(), session_timeout, kinds);
        let client = Arc::new(client);
        let handlers = handlers.adapt(move |run| JobContext::of_node(run, Arc::clone(&client)));
        let tags = self.tags.iter().map(Tag::new).collect::<Result<Vec<_>, _>>()?;
        let config = WorkerConfig {
            node: node.clone(),
            host,
            slots: self.slots,
            tags,
            handlers,
            drain_grace: self.drain_grace,
        };
        config.check()?;
        Ok(Some(config))
    }
}

fn default_slots() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(processors).unwrap_or(u32::MAX).max(4)
}
