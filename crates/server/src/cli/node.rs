//! `bellwether node`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bellwether::node::{ElectionStrategy, MAX_SLOTS};
use bellwether::{Access, Client, Handlers, NodeBuilder, NodeId, Tag};
use clap::{Args, ValueEnum};

use super::exit::{Failure, chain};
use super::{Global, config, gateway, input, process};
use crate::builtin::{self, Exec, ExecUser, Program};
use crate::node_process::{NodeProcess, ServeError};
use bellwether_gateway::metrics;
use bellwether_gateway::{Gateway, GatewayError, MetricsServer};

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
    /// Number of jobs that run at the same time [default: the number of processors, but at least 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SLOTS)))]
    pub(crate) slots: Option<u32>,
    /// Serve Prometheus metrics on this address, such as 127.0.0.1:9464. An address that other machines can reach requires
    /// TLS and tokens, as for the gateway, or --metrics-insecure. Port 0 selects a free port.
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Program that jobs of the kind `exec` may run: an absolute path, which allows any arguments, or a name and a command
    /// in which jobs fill in values, such as 'backup=/usr/bin/pg_dump -- {db}'. Can be repeated; without this option no
    /// program is allowed.
    #[arg(long, value_name = "PROG")]
    pub(crate) allow_exec: Vec<Program>,
    /// User that the programs of --allow-exec run as, so that they cannot read the node's files and environment. The node
    /// must be root, or have the capabilities CAP_SETUID, CAP_SETGID and CAP_KILL.
    #[arg(long, value_name = "USER")]
    pub(crate) exec_user: Option<String>,
    /// Do not run the sample kinds sum, echo, sleep and fail, with which the holder of a token that may submit them can occupy
    /// the worker. The worker then needs --allow-exec.
    #[arg(long)]
    pub(crate) no_sample_kinds: bool,
    /// Tags that this worker offers to jobs that require them.
    #[arg(long, value_delimiter = ',', value_name = "TAG,…")]
    pub(crate) tags: Vec<Tag>,
    /// Election strategy. The first candidate of a namespace decides; one with another strategy is refused.
    #[arg(long, default_value = "queue")]
    pub(crate) election: ElectionStrategy,
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
    config::warn_of_unknown_variables();
    ended(start(global.zookeeper()?, global.access.access()?, node).await?).await
}

/// Starts the roles. The node is on its way to ZooKeeper when this returns, and the gateway listens.
pub(crate) async fn start(zookeeper: &str, access: Access, options: Node) -> Result<NodeProcess, Failure> {
    process::protect_memory();
    let exec = options.exec().await?;
    let handlers = options.plays(Role::Worker).then(|| options.handlers(exec)).transpose()?;
    let kinds = match &handlers {
        Some(handlers) => {
            handlers.check().map_err(|error| Failure::usage(error.to_string()))?;
            handlers.kinds().cloned().collect()
        }
        None => Vec::new(),
    };
    let gateway = options.plays(Role::Gateway).then(|| options.gateway.checked()).transpose()?;
    let records = options.metrics_listen.is_some() || gateway.is_some();
    let metrics = records.then(|| metrics::record(&kinds)).transpose()?;
    let metrics_server = match (options.metrics_listen, &metrics) {
        (Some(address), Some(metrics)) => {
            let protection = options.gateway.metrics_protection()?;
            let started = MetricsServer::start(address, protection, metrics.clone()).await;
            let server = started.map_err(|error| {
                let options = match error {
                    GatewayError::Exposed { .. } => {
                        "--http-tokens, --http-tls-cert, --http-tls-key, --metrics-insecure"
                    }
                    GatewayError::Tls(_) => "--http-tls-cert, --http-tls-key, --http-tls-client-ca",
                    _ => "--metrics-listen",
                };
                Failure::of(&error, format!("{} ({options})", chain(&error)))
            })?;
            tracing::info!(address = %server.address(), "the node serves metrics");
            Some(server)
        }
        (_, _) => None,
    };
    // First, so that an address that is taken leaves nothing behind.
    let gateway = match (gateway, metrics) {
        (Some(gateway), Some(metrics)) => {
            let client =
                Client::builder(zookeeper).access(access.clone()).session_timeout(options.session_timeout);
            let client = client.open().await?;
            let gateway = gateway(client).metrics(metrics).start().await;
            Some(gateway.map_err(gateway::with_options)?)
        }
        (None, _) | (_, None) => None,
    };
    let node = match options.node(zookeeper, access, handlers) {
        Ok(None) => None,
        Ok(Some(builder)) => match builder.start().await {
            Ok(node) => Some(node),
            Err(error) => return Err(stopped(gateway, error.into()).await),
        },
        Err(failure) => return Err(stopped(gateway, failure).await),
    };
    let served = NodeProcess { node, gateway, metrics_server };
    if let Some(address) = served.http() {
        tracing::info!(%address, "the node serves HTTP");
    }
    Ok(served)
}

impl Node {
    /// Returns what the kind `exec` may do, after a check that it can.
    async fn exec(&self) -> Result<Exec, Failure> {
        let exec = Exec::new(self.allow_exec.clone()).map_err(|error| Failure::usage(chain(&error)))?;
        match &self.exec_user {
            Some(_) if exec.is_empty() => {
                Err(Failure::usage("exec_user needs allow_exec: give both, or neither"))
            }
            Some(name) => {
                let user = ExecUser::find(name).map_err(|error| Failure::usage(chain(&error)))?;
                user.check().await.map_err(|error| Failure::usage(chain(&error)))?;
                Ok(exec.user(user))
            }
            None => {
                if !exec.is_empty() {
                    tracing::warn!(
                        "THE PROGRAMS OF allow_exec ARE NOT SEPARATED FROM THIS NODE: they can read every file that it \
                         can read, also its passwords and keys, and stop it. Give them a user of their own with \
                         exec_user: docs/security.md, \"Programs of the kind exec\""
                    );
                }
                Ok(exec)
            }
        }
    }

    /// The kinds of the worker.
    fn handlers(&self, exec: Exec) -> Result<Handlers, Failure> {
        if !self.no_sample_kinds {
            return Ok(builtin::handlers(exec));
        }
        if exec.is_empty() {
            return Err(Failure::usage(
                "with no_sample_kinds the worker has no kinds: give allow_exec, or omit the role worker",
            ));
        }
        Ok(builtin::programs(exec))
    }

    fn plays(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// The node of the roles candidate and worker, and of the schedules of the file; `None` if there is nothing to do for it.
    fn node(
        self,
        zookeeper: &str,
        access: Access,
        handlers: Option<Handlers>,
    ) -> Result<Option<NodeBuilder>, Failure> {
        let candidate = self.plays(Role::Candidate);
        let schedules = match &self.config {
            Some(file) => config::read(file)?.schedules,
            None => Vec::new(),
        };
        if !candidate && handlers.is_none() && schedules.is_empty() {
            return Ok(None);
        }
        let mut builder = bellwether::Node::builder(zookeeper)
            .access(access)
            .candidate(candidate)
            .election(self.election)
            .session_timeout(self.session_timeout)
            .drain_grace(self.drain_grace);
        builder = schedules.into_iter().fold(builder, NodeBuilder::schedule);
        if let Some(handlers) = handlers {
            builder = builder.handlers(handlers).tags(self.tags.iter().map(Tag::as_str));
            if let Some(slots) = self.slots {
                builder = builder.slots(slots);
            }
        }
        if let Some(id) = &self.node_id {
            builder = builder.node_id(id.as_str());
        }
        Ok(Some(builder))
    }
}

async fn stopped(gateway: Option<Gateway>, failure: Failure) -> Failure {
    if let Some(gateway) = gateway {
        gateway.stop().await;
    }
    failure
}

/// Runs until a signal ends it, or one of its parts ends on its own.
pub(crate) async fn ended(served: NodeProcess) -> Result<(), Failure> {
    served.run().await.map_err(|error| match error {
        ServeError::Node(error) => error.into(),
        ServeError::Gateway(error) => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use bellwether::node::{DEFAULT_DRAIN_GRACE, DEFAULT_SESSION_TIMEOUT};
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        node: Node,
    }

    #[test]
    fn the_options_of_a_node_have_the_defaults_of_the_library() {
        let Command { node } = Command::parse_from(["node"]);
        assert_eq!((node.drain_grace, node.session_timeout), (DEFAULT_DRAIN_GRACE, DEFAULT_SESSION_TIMEOUT));
    }
}
