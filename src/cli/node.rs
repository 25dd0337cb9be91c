//! `bellwether node`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bellwether::node::{ElectionStrategy, NodeError, RunError, StartError};
use bellwether::{Access, NodeId, Tag};
use bellwether_core::machine::assigner::Strategy;
use clap::{Args, ValueEnum};

use super::exit::{Failure, Kind, chain};
use super::{Global, config, gateway, input};

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Stands for election.
    Candidate,
    /// Runs jobs.
    Worker,
    /// Serves HTTP.
    Gateway,
}

/// How candidates are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Election {
    /// In a line, each watching the one before it.
    Queue,
    /// Whoever comes first after the leader is gone.
    Single,
}

impl From<Election> for ElectionStrategy {
    fn from(election: Election) -> Self {
        match election {
            Election::Queue => Self::Queue,
            Election::Single => Self::Single,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Node {
    /// A file with these options, as `bellwether config example` shows them, and with schedules. An option here wins
    /// over its environment variable, and that over the file.
    #[arg(long, value_name = "FILE", env = "BELLWETHER_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
    /// What operators call this process [default: its host name and process id].
    #[arg(long, value_name = "NAME")]
    pub(crate) node_id: Option<NodeId>,
    /// What this node does.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "candidate,worker")]
    pub(crate) roles: Vec<Role>,
    /// How many jobs it runs at a time.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=i64::from(bellwether_core::budget::MAX_SLOTS)))]
    pub(crate) slots: u32,
    /// Serve Prometheus metrics on this address, such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics_addr: Option<SocketAddr>,
    /// A program that jobs of the kind `exec` may run. May be given again; none is allowed otherwise.
    #[arg(long, value_name = "PROG")]
    pub(crate) allow_exec: Vec<String>,
    /// What this worker offers to jobs that require it. May be given again.
    #[arg(long)]
    pub(crate) tag: Vec<Tag>,
    /// Which worker gets a job: round-robin, random, least-loaded, rendezvous.
    #[arg(long, default_value = "least-loaded")]
    pub(crate) strategy: Strategy,
    /// How candidates for leadership are ordered; the same for all nodes of a namespace.
    #[arg(long, value_enum, default_value = "queue")]
    pub(crate) election: Election,
    /// How long ZooKeeper waits for a silent node before its jobs and its leadership move.
    #[arg(long, default_value = "10s", value_parser = session_timeout, value_name = "DURATION")]
    pub(crate) session_timeout: Duration,
    /// How long running jobs may take to end when the node stops; then they are handed back.
    #[arg(long, default_value = "30s", value_parser = input::duration, value_name = "DURATION")]
    pub(crate) drain_grace: Duration,
    #[command(flatten, next_help_heading = "The gateway, with --roles …,gateway")]
    pub(crate) gateway: gateway::HttpOptions,
}

fn session_timeout(text: &str) -> Result<Duration, String> {
    let given = input::duration(text)?;
    bellwether::node::check_session_timeout(given).map_err(|error| error.to_string())
}

pub(crate) async fn run(global: &Global, node: Node) -> Result<(), Failure> {
    config::warn_of_strangers();
    ended(start(global.zookeeper()?, global.access.access()?, node).await?).await
}

/// Starts a node; it is on its way to ZooKeeper when this returns.
pub(crate) async fn start(zookeeper: &str, access: Access, node: Node) -> Result<bellwether::Node, Failure> {
    let mut builder = bellwether::Node::builder(zookeeper)
        .access(access)
        .candidate(node.roles.contains(&Role::Candidate))
        .assignment(node.strategy)
        .election(node.election.into())
        .session_timeout(node.session_timeout)
        .drain_grace(node.drain_grace);
    if let Some(file) = &node.config {
        let config = config::read(file)?;
        builder = config.schedules.into_iter().fold(builder, |builder, schedule| builder.schedule(schedule));
    }
    let mut kinds = Vec::new();
    if node.roles.contains(&Role::Worker) {
        let handlers = bellwether::stock::handlers(node.allow_exec);
        let registry = handlers.clone().build().map_err(|error| Failure::usage(error.to_string()))?;
        kinds.extend(registry.kinds().cloned());
        builder =
            node.tag.iter().fold(builder.handlers(handlers).slots(node.slots), |b, tag| b.tag(tag.as_str()));
    }
    if let Some(id) = &node.node_id {
        builder = builder.node_id(id.as_str());
    }
    let gateway = node.roles.contains(&Role::Gateway).then(|| node.gateway.builder()).transpose()?;
    if let Some(address) = node.metrics_addr {
        tracing::info!(%address, "metrics are served");
    }
    let metrics = match (node.metrics_addr, &gateway) {
        (Some(address), _) => Some(bellwether::metrics::serve(address, &kinds)),
        (None, Some(_)) => Some(bellwether::metrics::record(&kinds)),
        (None, None) => None,
    };
    let metrics = metrics.transpose().map_err(|error| Failure::failed(error.to_string()))?;
    if let (Some(gateway), Some(metrics)) = (gateway, metrics) {
        builder = builder.gateway(gateway.metrics(metrics));
    }
    let started = builder.start().await.map_err(|error| match error {
        StartError::ConnectString(_)
        | StartError::SessionTimeout(_)
        | StartError::Name(_)
        | StartError::Handlers(_)
        | StartError::Worker(_)
        | StartError::NoRole => Failure::usage(error.to_string()),
        StartError::Schedule { .. } => Failure::usage(chain(&error)),
        StartError::Actors(_) | StartError::Gateway(_) => Failure::failed(chain(&error)),
    })?;
    if let Some(gateway) = started.gateway() {
        tracing::info!(address = %gateway.address(), "HTTP is served");
    }
    Ok(started)
}

/// Runs until a signal has ended it, or something it cannot live without did.
pub(crate) async fn ended(node: bellwether::Node) -> Result<(), Failure> {
    node.run().await.map_err(|error| match error {
        RunError::Ended(NodeError::Namespace(_)) => Failure::new(Kind::Unreachable, chain(&error)),
        RunError::Ended(NodeError::Actors(_))
        | RunError::Gateway(_)
        | RunError::Signals(_)
        | RunError::Interrupted(_)
        | RunError::Abandoned => Failure::failed(chain(&error)),
    })
}
