//! The nodes of a run, in this process, each with its own session.

use std::sync::Arc;
use std::time::Duration;

use bellwether::handler::{Handlers, with_state};
use bellwether::{Client, ConnectString, Job, Node};
use uuid::Uuid;

use super::BenchConfig;

/// Kind of the jobs; its handler returns the payload.
pub(super) const KIND: &str = "echo";

/// No handler of a benchmark takes longer.
const DRAIN_GRACE: Duration = Duration::from_secs(5);

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
            nodes.push(
                worker(&namespace, &format!("worker-{n}"), config.slots, handlers(&[KIND], || {})).await?,
            );
        }
        let client = Client::connect(&namespace.to_string()).await.map_err(|error| error.to_string())?;
        // A warm-up job: it shows that all parts are connected, elected and registered.
        let warm = client.submit(job(0)).await.map_err(|error| error.to_string())?;
        warm.wait(Duration::from_secs(30)).await.map_err(|error| error.to_string())?;
        Ok(Self { nodes, client, namespace })
    }

    pub(super) async fn stop(self) {
        for node in self.nodes.iter().rev() {
            node.stop().await;
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
pub(super) fn ranked(n: usize) -> Job {
    let priority = u8::try_from(n % 10).expect("one digit");
    job(n).priority(priority)
}

pub(super) fn job(n: usize) -> Job {
    Job::new(KIND, &n)
}

/// Starts a node that leads and runs no jobs.
pub(super) async fn candidate(namespace: &ConnectString, name: &str) -> Result<Node, String> {
    let node = Node::builder(namespace.to_string()).node_id(name);
    node.start().await.map_err(|error| error.to_string())
}

/// Starts a node that runs jobs.
pub(super) async fn worker(
    namespace: &ConnectString,
    name: &str,
    slots: u32,
    handlers: Handlers,
) -> Result<Node, String> {
    let node = Node::builder(namespace.to_string()).node_id(name).candidate(false);
    let node = node.handlers(handlers).slots(slots).drain_grace(DRAIN_GRACE);
    node.start().await.map_err(|error| error.to_string())
}

/// Handlers that return the payload, after `begun`.
pub(super) fn handlers(kinds: &[&str], begun: impl Fn() + Send + Sync + 'static) -> Handlers {
    let begun = with_state(Arc::new(begun));
    let echo = |kind| {
        begun.raw(kind, |begun, context| async move {
            begun();
            Ok(context.payload().clone())
        })
    };
    kinds.iter().fold(Handlers::new(), |handlers, kind| handlers.add(echo(kind)))
}
