//! The cluster of the demo, and the nodes that it kills.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bellwether::client::LeaderView;
use bellwether::{Client, WorkerId};
use indicatif::ProgressBar;
use serde::Serialize;
use tempfile::TempDir;
use tokio::sync::watch;

use super::node::Node;
use super::{Stories, failed};
use crate::cli::exit::Failure;

const NODES: usize = 3;

/// Poll interval, short compared with a takeover.
const POLL: Duration = Duration::from_millis(10);

/// Limit for a start or a takeover.
const SOON: Duration = Duration::from_secs(30);

/// Three nodes and their history.
pub(super) struct Cluster {
    binary: PathBuf,
    namespace: String,
    client: Client,
    stories: Stories,
    nodes: Vec<Node>,
    logs: TempDir,
    /// Every worker that was ever seen, with its node.
    pub(super) workers: BTreeMap<WorkerId, String>,
    pub(super) terms: Vec<LeaderChange>,
    /// The workers that were killed.
    pub(super) killed: Vec<WorkerId>,
    pub(super) kills: Vec<String>,
}

/// A term of a leader and how it began.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LeaderChange {
    pub(super) epoch: i32,
    pub(super) node: String,
    pub(super) how: String,
}

impl Cluster {
    /// Starts the nodes. Returns when every node has a worker and one node is the leader.
    pub(super) async fn start(namespace: &str, client: Client, stories: Stories) -> Result<Self, Failure> {
        let binary = std::env::current_exe().map_err(|error| failed("cannot find the executable", &error))?;
        let logs = tempfile::Builder::new().prefix("bellwether-demo-").tempdir();
        let logs = logs.map_err(|error| failed("cannot create a directory for logs", &error))?;
        let mut cluster = Self {
            binary,
            namespace: namespace.to_owned(),
            client,
            stories,
            nodes: Vec::new(),
            logs,
            workers: BTreeMap::new(),
            terms: Vec::new(),
            killed: Vec::new(),
            kills: Vec::new(),
        };
        for n in 1..=NODES {
            cluster.add(&format!("node-{n}"))?;
        }
        cluster.all_work().await?;
        let leader = cluster.leader_after(0).await?;
        cluster.term(&leader, "was elected".to_owned());
        Ok(cluster)
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Kills the leader after a third of the jobs, starts its node again, and kills a worker after two thirds.
    pub(super) async fn lose_two(
        &mut self,
        mut done: watch::Receiver<usize>,
        total: usize,
        bar: &ProgressBar,
    ) -> Result<(), Failure> {
        let at = reached(&mut done, total / 3).await?;
        let leader = self.leader_after(0).await?;
        let name = leader.node.to_string();
        self.kill(&name)?;
        let killed = Instant::now();
        self.told(
            bar,
            format!(
                "kill -9 of {name} (leader and worker) after {at} jobs; started again after the takeover"
            ),
        );
        let next = self.leader_after(leader.epoch).await?;
        let took = killed.elapsed();
        self.term(&next, format!("took over {:.2} s after the kill", took.as_secs_f64()));
        self.add(&name)?;
        self.all_work().await?;

        let at = reached(&mut done, total * 2 / 3).await?;
        let victim = self
            .nodes
            .iter()
            .map(|node| node.name.clone())
            .find(|name| next.node.as_str() != name && leader.node.as_str() != name);
        let victim = victim.ok_or_else(|| Failure::failed("no worker is left to kill".to_owned()))?;
        self.kill(&victim)?;
        self.told(bar, format!("kill -9 of {victim} (worker) after {at} jobs"));
        Ok(())
    }

    fn told(&mut self, bar: &ProgressBar, what: String) {
        bar.suspend(|| self.stories.tell(&what));
        self.kills.push(what);
    }

    fn term(&mut self, leader: &LeaderView, how: String) {
        self.terms.push(LeaderChange { epoch: leader.epoch, node: leader.node.to_string(), how });
    }

    fn add(&mut self, name: &str) -> Result<(), Failure> {
        let log = self.logs.path().join(format!("{name}.log"));
        let node = Node::start(&self.binary, &self.namespace, name, &log);
        self.nodes.push(node.map_err(|error| failed(&format!("{name} did not start"), &error))?);
        Ok(())
    }

    fn kill(&mut self, name: &str) -> Result<(), Failure> {
        let at = self.nodes.iter().position(|node| node.name == name);
        let at = at.ok_or_else(|| Failure::failed(format!("{name} is not a node of this demo")))?;
        let of_node = self.workers.iter().filter(|(_, node)| *node == name).map(|(worker, _)| *worker);
        self.killed.extend(of_node.collect::<Vec<_>>());
        self.nodes.remove(at).kill().map_err(|error| failed(&format!("cannot kill {name}"), &error))
    }

    /// Waits until each node has a worker that was not killed.
    async fn all_work(&mut self) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            let workers =
                self.client.workers().await.map_err(|error| failed("cannot list the workers", &error))?;
            self.workers.extend(
                workers
                    .into_iter()
                    .filter_map(|worker| Some((worker.id, worker.info.ok()?.node.to_string()))),
            );
            let alive = self.workers.keys().filter(|worker| !self.killed.contains(worker)).count();
            if alive >= self.nodes.len() {
                return Ok(());
            }
            self.patience(began, "not every node has a worker")?;
            tokio::time::sleep(POLL).await;
        }
    }

    async fn leader_after(&self, epoch: i32) -> Result<LeaderView, Failure> {
        let began = Instant::now();
        loop {
            let leader =
                self.client.leader().await.map_err(|error| failed("cannot read the leader", &error))?;
            match leader {
                Some(leader) if leader.standing && leader.epoch > epoch => return Ok(leader),
                Some(_) | None => {}
            }
            self.patience(began, "there is no leader")?;
            tokio::time::sleep(POLL).await;
        }
    }

    fn patience(&self, began: Instant, what: &str) -> Result<(), Failure> {
        if began.elapsed() < SOON {
            return Ok(());
        }
        let mut told = format!("{what} after {SOON:?}");
        for node in &self.nodes {
            let log = std::fs::read_to_string(self.logs.path().join(format!("{}.log", node.name)));
            let last = log.as_deref().ok().and_then(|log| log.lines().last()).unwrap_or("none");
            told = format!("{told}; last log line of {}: {last}", node.name);
        }
        Err(Failure::failed(told))
    }
}

/// Waits until that many jobs have ended. Returns how many have ended.
async fn reached(done: &mut watch::Receiver<usize>, jobs: usize) -> Result<usize, Failure> {
    let over = done.wait_for(|over| *over >= jobs).await;
    over.map(|over| *over)
        .map_err(|_| Failure::failed(format!("the wait ended before {jobs} jobs had ended")))
}
