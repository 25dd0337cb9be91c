//! A node: one process's part in the namespace, embedded in your own binary.

mod exposure;
mod schedules;

use std::io;
use std::time::Duration;

use bellwether_actors::election::ElectionConfig;
use bellwether_actors::node::{CandidateConfig, NodeConfig};
use bellwether_actors::session::SessionConfig;
use bellwether_actors::worker::{Registry, RegistryError, WorkerConfig, WorkerConfigError};
use bellwether_core::name::{NameError, NodeId, Tag};
use bellwether_zk::{Access, ConnectString, ConnectStringError};
use tokio::signal::unix::{Signal, SignalKind, signal};

pub use bellwether_actors::node::NodeError;
pub use bellwether_actors::worker::Drained;
pub use bellwether_core::machine::assigner::Strategy as Placement;
pub use bellwether_core::machine::campaign::Strategy as ElectionStrategy;

#[cfg(feature = "http")]
use crate::client::{Client, ConnectError};
use crate::client::{Schedule, ScheduleError};
use crate::handler::Handlers;
#[cfg(feature = "http")]
use crate::http::{Gateway, GatewayBuilder, GatewayError};
pub use crate::session_timeout::check as check_session_timeout;
use crate::session_timeout::{self, SessionTimeoutError};
use crate::tools::Tools;

/// Long enough for a garbage collection of the ensemble, short enough that a dead worker's jobs move soon.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// What an operator's `systemctl stop` allows by default, with a margin.
const DRAIN_GRACE: Duration = Duration::from_secs(60);

/// A running node. Cheap to clone; it runs until it is stopped, whether or not a clone is kept.
#[derive(Debug, Clone)]
pub struct Node {
    inner: bellwether_actors::node::Node,
    drain_grace: Duration,
    #[cfg(feature = "http")]
    gateway: Option<Gateway>,
}

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
    /// The gateway does not serve.
    #[cfg(feature = "http")]
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// It has no role.
    #[error("a node needs a role: give it handlers, or let it be a candidate for leadership")]
    NoRole,
    /// The actor system failed.
    #[error("the node's actors could not be started")]
    Actors(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Why [`Node::run`] did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The node ended by itself: its namespace was refused, or its actors kept dying.
    #[error(transparent)]
    Ended(#[from] NodeError),
    /// The gateway ended by itself. The rest of the node runs.
    #[cfg(feature = "http")]
    #[error(transparent)]
    Gateway(#[from] GatewayError),
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
    placement: Placement,
    slots: u32,
    tags: Vec<String>,
    handlers: Option<Handlers>,
    schedules: Vec<Schedule>,
    #[cfg(feature = "http")]
    gateway: Option<GatewayBuilder>,
}

impl Node {
    /// Starts to build a node of the namespace at `zookeeper`: `HOST:PORT[,…][/CHROOT]`.
    ///
    /// It is a candidate for leadership, and a worker once it is given handlers.
    #[must_use]
    pub fn builder(zookeeper: impl Into<String>) -> NodeBuilder {
        NodeBuilder {
            zookeeper: zookeeper.into(),
            access: Access::default(),
            node_id: None,
            session_timeout: SESSION_TIMEOUT,
            drain_grace: DRAIN_GRACE,
            candidate: true,
            election: ElectionStrategy::default(),
            placement: Placement::default(),
            slots: default_slots(),
            tags: Vec::new(),
            handlers: None,
            schedules: Vec::new(),
            #[cfg(feature = "http")]
            gateway: None,
        }
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
        let mut signals = Signals::listen().map_err(RunError::Signals)?;
        let first = tokio::select! {
            ended = self.inner.ended() => return Ok(ended?),
            error = self.gateway_died() => return Err(error),
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
        #[cfg(feature = "http")]
        if let Some(gateway) = &self.gateway {
            gateway.stop().await;
        }
        self.inner.stop(self.drain_grace).await
    }

    /// Waits until the node has ended, and says why if it was not asked to.
    ///
    /// # Errors
    /// What it ended of.
    pub async fn ended(&self) -> Result<(), NodeError> {
        self.inner.ended().await
    }

    /// Its gateway, if it plays that role.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn gateway(&self) -> Option<&Gateway> {
        self.gateway.as_ref()
    }

    #[cfg(feature = "http")]
    async fn gateway_died(&self) -> RunError {
        match &self.gateway {
            // One that was asked to end is part of a stop, which ends this wait.
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

    /// The actors beneath.
    #[must_use]
    pub fn actors(&self) -> &bellwether_actors::node::Node {
        &self.inner
    }
}

impl NodeBuilder {
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

    /// Makes it a gateway too: it serves HTTP in front of its namespace, with a session of its own, from its start to its
    /// stop, whether or not ZooKeeper serves.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn gateway(mut self, gateway: GatewayBuilder) -> Self {
        self.gateway = Some(gateway);
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
    pub fn placement(mut self, strategy: Placement) -> Self {
        self.placement = strategy;
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
            CandidateConfig { election, strategy: self.placement }
        });
        if worker.is_none() && candidate.is_none() && !self.is_gateway() {
            return Err(StartError::NoRole);
        }
        // Before the actors, so that an address that is taken leaves nothing behind.
        #[cfg(feature = "http")]
        let gateway = self.start_gateway().await?;
        let session =
            SessionConfig { connect, access: self.access.clone(), session_timeout, create_namespace: true };
        let config = NodeConfig { session, candidate, worker };
        let inner = bellwether_actors::node::Node::start(config).await;
        #[cfg(feature = "http")]
        if let (Err(_), Some(gateway)) = (&inner, &gateway) {
            gateway.stop().await;
        }
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
        Ok(Node {
            inner,
            drain_grace: self.drain_grace,
            #[cfg(feature = "http")]
            gateway,
        })
    }

    #[cfg(feature = "http")]
    fn is_gateway(&self) -> bool {
        self.gateway.is_some()
    }

    #[cfg(not(feature = "http"))]
    fn is_gateway(&self) -> bool {
        false
    }

    #[cfg(feature = "http")]
    async fn start_gateway(&self) -> Result<Option<Gateway>, StartError> {
        let Some(gateway) = self.gateway.clone() else { return Ok(None) };
        gateway.check()?;
        let client = Client::builder().access(self.access.clone()).session_timeout(self.session_timeout);
        let client = client.open(&self.zookeeper).await;
        let client = client.map_err(|error| match error {
            ConnectError::ConnectString(error) => StartError::ConnectString(error),
            ConnectError::SessionTimeout(error) => StartError::SessionTimeout(error),
            ConnectError::Unavailable(error) => StartError::Actors(Box::new(error)),
        })?;
        Ok(Some(gateway.start(client).await?))
    }

    fn worker(
        &self,
        node: &NodeId,
        host: String,
        session_timeout: Duration,
    ) -> Result<Option<WorkerConfig>, StartError> {
        let Some(handlers) = &self.handlers else { return Ok(None) };
        let handlers: Registry = handlers.clone().build()?;
        let kinds = handlers.kinds().cloned().collect();
        let tools = Tools::new(&self.zookeeper, self.access.clone(), session_timeout, kinds);
        let handlers = handlers.with_tools(tools.into());
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

/// What asks a node to stop. Listened to from the start to the end: a signal between two calls is not lost.
struct Signals {
    term: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        let (term, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self { term, interrupt })
    }

    /// The next one's name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "ctrl-c",
        }
    }
}

fn default_slots() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(processors).unwrap_or(u32::MAX).max(4)
}

fn host_name() -> String {
    nix::unistd::gethostname().map_or_else(|_| "localhost".into(), |name| name.to_string_lossy().into_owned())
}

/// What a node is called to which nobody gave an id.
#[must_use]
pub fn default_id() -> String {
    format!("{}-{}", name_from(&host_name()), std::process::id())
}

/// A host's name with what a node id may not have replaced.
fn name_from(host: &str) -> String {
    host.chars().take(64).map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect()
}
