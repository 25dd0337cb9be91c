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

/// A role of a node.
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
    /// A queue: each candidate watches the one before it.
    Queue,
    /// One znode: the first candidate to create it leads.
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
    /// File with these options and with schedules; `bellwether config example` prints one. An option overrides its
    /// environment variable, and the variable overrides the file.
    #[arg(long, value_name = "FILE", env = "BELLWETHER_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
    /// Name of this node for operators [default: host name and process id].
    #[arg(long, value_name = "NAME")]
    pub(crate) node_id: Option<NodeId>,
    /// Roles of this node.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "candidate,worker")]
    pub(crate) roles: Vec<Role>,
    /// Number of jobs that run at the same time.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=i64::from(bellwether_core::budget::MAX_SLOTS)))]
    pub(crate) slots: u32,
    /// Serve Prometheus metrics on this address, such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics_addr: Option<SocketAddr>,
    /// Program that jobs of the kind `exec` may run. Can be repeated; without this option no program is allowed.
    #[arg(long, value_name = "PROG")]
    pub(crate) allow_exec: Vec<String>,
    /// Tag that this worker offers to jobs that require it. Can be repeated.
    #[arg(long)]
    pub(crate) tag: Vec<Tag>,
    /// Assignment strategy: round-robin, random, least-loaded or rendezvous.
    #[arg(long, default_value = "least-loaded")]
    pub(crate) strategy: Strategy,
    /// Election strategy; must be the same for all nodes of a namespace.
    #[arg(long, value_enum, default_value = "queue")]
    pub(crate) election: Election,
    /// Time after which ZooKeeper ends the session of a silent node; then its jobs and its leadership move to other
    /// nodes.
    #[arg(long, default_value = "10s", value_parser = session_timeout, value_name = "DURATION")]
    pub(crate) session_timeout: Duration,
    /// Time for running jobs to end when the node stops; jobs that still run are handed back.
    #[arg(long, default_value = "30s", value_parser = input::duration, value_name = "DURATION")]
    pub(crate) drain_grace: Duration,
    #[command(flatten, next_help_heading = "Gateway options, for --roles …,gateway")]
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

/// Starts a node. It connects to ZooKeeper in the background.
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
        tracing::info!(%address, "serving metrics");
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
        tracing::info!(address = %gateway.address(), "serving HTTP");
    }
    Ok(started)
}

/// Runs until a signal stops the node, or a part that the node needs has failed.
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
