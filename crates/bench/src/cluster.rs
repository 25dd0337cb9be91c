//! The parts of a run: leader and workers, each in its own process, and a client in this process.

use std::sync::Arc;
use std::time::Duration;

use bellwether::error::chain;
use bellwether::handler::{HandlerError, Handlers, with_state};
use bellwether::{Client, ConnectString, Job, Node};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::load::Counts;
use super::process::{self, NodeProcess, Sent};
use super::server::Server;
use super::usage::Usage;

/// Kind of the jobs of scenarios, whose workers run in this process; its handler returns the payload.
pub(super) const KIND: &str = "echo";

/// Kind of the jobs under load: a sample kind of the command, whose handler returns the sum of the payload.
const SUM: &str = "sum";

/// No handler of a benchmark takes longer.
const DRAIN_GRACE: Duration = Duration::from_secs(5);

const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Cluster {
    leader: NodeProcess,
    workers: Vec<NodeProcess>,
    server: Server,
    pub(super) client: Client,
    pub(super) namespace: ConnectString,
}

impl Cluster {
    /// Starts leader and workers, and waits until they have run a job.
    pub(super) async fn start(namespace: ConnectString, workers: usize, slots: u32) -> Result<Self, String> {
        let client = Client::connect(&namespace.to_string()).await.map_err(|error| chain(&error))?;
        let leader = NodeProcess::lead(&namespace, "candidate", &client).await?;
        let processes = (0..workers).map(|_| NodeProcess::work(&namespace, slots));
        let workers = processes.collect::<Result<Vec<_>, _>>()?;
        let by = Instant::now() + PATIENCE;
        while client.workers().await.map_err(|error| chain(&error))?.len() < workers.len() {
            if Instant::now() >= by {
                return Err(format!("not all workers registered in {} s", PATIENCE.as_secs()));
            }
            sleep(Duration::from_millis(50)).await;
        }
        let warm = client.submit(sum_job(0)).await.map_err(|error| chain(&error))?;
        warm.wait(PATIENCE).await.map_err(|error| chain(&error))?;
        let server = Server::find(&namespace);
        Ok(Self { leader, workers, server, client, namespace })
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the requests of all processes so far.
    pub(super) async fn sent(&self, counts: &Counts) -> Result<Sent, String> {
        let mut sent = counts.sent().plus(self.leader.sent().await?, 1.0);
        for worker in &self.workers {
            sent = sent.plus(worker.sent().await?, 1.0);
        }
        Ok(sent)
    }

    /// Returns the processor time of each process so far.
    pub(super) fn cpu(&self) -> Result<Usage<Duration>, String> {
        Ok(Usage {
            client: process::cpu("self")?,
            leader: self.leader.cpu()?,
            workers: self.workers.iter().map(NodeProcess::cpu).sum::<Result<_, _>>()?,
            server: self.server.cpu(),
        })
    }

    /// Returns the resident memory of each process.
    pub(super) fn bytes(&self) -> Result<Usage<u64>, String> {
        Ok(Usage {
            client: process::bytes("self")?,
            leader: self.leader.bytes()?,
            workers: self.workers.iter().map(NodeProcess::bytes).sum::<Result<_, _>>()?,
            server: self.server.bytes(),
        })
    }

    /// Kills the processes. The namespace is abandoned.
    pub(super) async fn stop(mut self) -> Result<(), String> {
        for node in self.workers.iter_mut().chain([&mut self.leader]) {
            node.kill().await?;
        }
        self.client.close().await;
        Ok(())
    }
}

/// Returns the namespace of a part of this run.
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

/// A job whose result is `n`, for workers in their own processes.
pub(super) fn sum_job(n: usize) -> Job {
    Job::new(SUM, &[n])
}

/// Starts a node that leads and runs no jobs.
pub(super) async fn candidate(namespace: &ConnectString, name: &str) -> Result<Node, String> {
    let node = Node::builder(namespace.to_string()).node_id(name);
    node.start().await.map_err(|error| chain(&error))
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
    node.start().await.map_err(|error| chain(&error))
}

/// The payload of a job that fails.
pub(super) const FAIL: &str = "fail";

/// Handlers that return the payload, after `begun`.
pub(super) fn handlers(kinds: &[&str], begun: impl Fn() + Send + Sync + 'static) -> Handlers {
    let begun = with_state(Arc::new(begun));
    let echo = |kind| {
        begun.raw(kind, |begun, context| async move {
            begun();
            match context.payload().bytes() {
                br#""fail""# => Err(HandlerError::new("as it was told")),
                _ => Ok(context.payload().clone()),
            }
        })
    };
    kinds.iter().fold(Handlers::new(), |handlers, kind| handlers.add(echo(kind)))
}
