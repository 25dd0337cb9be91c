//! The nodes of a run, in this process, each with its own session.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::machine::assigner::Strategy;
use bellwether_core::name::{Kind, NodeId};
use bellwether_host::election::ElectionConfig;
use bellwether_host::node::{CandidateConfig, Node, NodeConfig};
use bellwether_host::session::SessionConfig;
use bellwether_host::worker::{Handler, Registry, RunContext, WorkerConfig};
use bellwether_zk::ConnectString;
use uuid::Uuid;

use super::BenchConfig;
use crate::client::Client;

/// Kind of the jobs; its handler returns the payload.
pub(super) const KIND: &str = "echo";

const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Cluster {
    nodes: Vec<Node>,
    pub(super) client: Client,
    pub(super) namespace: ConnectString,
}

impl Cluster {
    pub(super) async fn start(config: &BenchConfig, run: Uuid) -> Result<Self, String> {
        let namespace = namespace(config, run, "jobs")?;
        let mut nodes = vec![candidate(&namespace, "leader").await?];
        for n in 0..config.workers {
            nodes.push(worker(&namespace, &format!("worker-{n}"), config.slots, echo()?).await?);
        }
        let client = Client::connect(&namespace.to_string()).await.map_err(|error| error.to_string())?;
        // A warm-up job: it shows that all parts are connected, elected and registered.
        let warm = client.submit(job(0)?).await.map_err(|error| error.to_string())?;
        warm.wait(Duration::from_secs(30)).await.map_err(|error| error.to_string())?;
        Ok(Self { nodes, client, namespace })
    }

    pub(super) async fn stop(self) {
        for node in self.nodes.iter().rev() {
            node.stop(Duration::from_secs(5)).await;
        }
        self.client.close().await;
    }
}

/// Returns the namespace of a part of this run.
pub(super) fn namespace(config: &BenchConfig, run: Uuid, part: &str) -> Result<ConnectString, String> {
    named(&config.zookeeper, run, part)
}

/// As [`namespace`], from an address.
pub(super) fn named(zookeeper: &ConnectString, run: Uuid, part: &str) -> Result<ConnectString, String> {
    let base = zookeeper.to_string();
    format!("{}/bench-{run}/{part}", base.trim_end_matches('/')).parse().map_err(|error| format!("{error}"))
}

/// As [`job`], with all priorities in turn.
pub(super) fn ranked(n: usize) -> Result<crate::Job, String> {
    let priority = u8::try_from(n % 10).map_err(|error| error.to_string())?;
    Ok(job(n)?.priority(priority))
}

pub(super) fn job(n: usize) -> Result<crate::Job, String> {
    crate::Job::new(KIND, &n).map_err(|error| error.to_string())
}

async fn candidate(namespace: &ConnectString, name: &str) -> Result<Node, String> {
    let election = ElectionConfig::new(NodeId::new(name).map_err(|error| error.to_string())?);
    node(namespace, Some(CandidateConfig { election, strategy: Strategy::LeastLoaded }), None).await
}

/// Starts a node that runs jobs.
pub(super) async fn worker(
    namespace: &ConnectString,
    name: &str,
    slots: u32,
    handlers: Registry,
) -> Result<Node, String> {
    let id = NodeId::new(name).map_err(|error| error.to_string())?;
    let worker = WorkerConfig {
        node: id,
        host: name.into(),
        slots,
        tags: vec![],
        handlers,
        drain_grace: SESSION_TIMEOUT,
    };
    node(namespace, None, Some(worker)).await
}

async fn node(
    namespace: &ConnectString,
    candidate: Option<CandidateConfig>,
    worker: Option<WorkerConfig>,
) -> Result<Node, String> {
    let config = NodeConfig {
        session: SessionConfig {
            connect: namespace.clone(),
            access: bellwether_zk::Access::default(),
            session_timeout: SESSION_TIMEOUT,
            create_namespace: true,
        },
        candidate,
        worker,
    };
    Node::start(config).await.map_err(|error| error.to_string())
}

fn echo() -> Result<Registry, String> {
    let echo = Handler::Async(Arc::new(|run: RunContext| Box::pin(async move { Ok(run.payload) })));
    let kind = Kind::new(KIND).map_err(|error| error.to_string())?;
    Registry::new([(kind, echo)]).map_err(|error| error.to_string())
}
