//! A namespace with nodes, a client and a witness session. Faults affect only the nodes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bellwether::client::{LeaderView, WorkerView};
use bellwether::{Client, Job, JobId, JobView, WorkerId};
use bellwether_testkit::{Request, eventually, eventually_some, namespace, op};
use bellwether_zk::{Zk, connect};

use crate::process::{Launch, NodeProcess};
use crate::runs::Runs;

/// The session timeout of the nodes: short enough to detect a loss soon, and long enough for a busy machine.
pub(crate) const SESSION: Duration = Duration::from_millis(1_500);
/// Longer than any recovery.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// The session timeout of clients without faults.
const LONG: Duration = Duration::from_secs(30);

/// A namespace.
pub(crate) struct Stage {
    pub(crate) to: String,
    pub(crate) client: Client,
    pub(crate) zk: Zk,
    pub(crate) runs: Runs,
    logs: AtomicU32,
}

impl Stage {
    pub(crate) async fn set(name: &str) -> Self {
        Self::at(namespace(name)).await
    }

    pub(crate) async fn at(to: String) -> Self {
        let client = client(&to).await;
        let zk = connect(&to.parse().unwrap(), LONG).await.unwrap();
        Self { to, client, zk, runs: Runs::new(), logs: AtomicU32::new(0) }
    }

    /// Returns the options of a node in this namespace.
    pub(crate) fn node(&self, name: &str) -> Launch {
        let log = format!("{name}-{}.log", self.logs.fetch_add(1, Ordering::Relaxed));
        Launch::new(name, &self.to, self.runs.dir().join(log))
    }

    /// Waits until there is a leader.
    pub(crate) async fn leader(&self) -> LeaderView {
        eventually_some("there is a leader", SOON, async || {
            self.client.leader().await.unwrap().filter(|leader| leader.standing)
        })
        .await
    }

    /// Waits until this node is the leader.
    pub(crate) async fn led_by(&self, node: &NodeProcess) -> LeaderView {
        let what = format!("{} is the leader", node.name());
        eventually_some(&what, SOON, async || {
            let leader = self.client.leader().await.unwrap();
            leader.filter(|leader| leader.standing && leader.node.as_str() == node.name())
        })
        .await
    }

    /// Waits until this many workers are registered.
    pub(crate) async fn workers(&self, count: usize) -> Vec<WorkerView> {
        let what = format!("{count} workers");
        eventually_some(&what, SOON, async || {
            let workers = self.client.workers().await.unwrap();
            (workers.len() == count).then_some(workers)
        })
        .await
    }

    /// Waits until this node's worker is registered with an id other than `old`.
    pub(crate) async fn worker(&self, node: &NodeProcess, old: Option<WorkerId>) -> WorkerId {
        let what = format!("{} is a worker", node.name());
        let is = |worker: &WorkerView| {
            Some(worker.id) != old && worker.info.as_ref().is_ok_and(|info| info.node.as_str() == node.name())
        };
        eventually_some(&what, SOON, async || {
            self.client.workers().await.unwrap().into_iter().find(is).map(|worker| worker.id)
        })
        .await
    }

    /// Submits jobs and checks that all are acknowledged.
    pub(crate) async fn submit(&self, jobs: impl IntoIterator<Item = Job>) -> Vec<JobId> {
        let answers = self.client.submit_many(jobs, |_| {}).await;
        answers.into_iter().map(|answer| answer.unwrap().id().clone()).collect()
    }

    /// Waits until these jobs have ended.
    pub(crate) async fn over(&self, ids: &[JobId]) -> Vec<JobView> {
        let answers = self.client.wait_many(ids, 2 * SOON, |_| {}).await;
        answers.into_iter().map(|answer| answer.unwrap()).collect()
    }

    pub(crate) async fn job(&self, id: &str) -> JobView {
        self.client.get(&JobId::new(id).unwrap()).await.unwrap().unwrap()
    }

    /// Waits until this many runs have started.
    pub(crate) async fn begun(&self, runs: usize) {
        let what = format!("{runs} runs have started");
        eventually(&what, SOON, async || self.runs.begun().values().flatten().count() >= runs).await;
    }
}

pub(crate) async fn client(to: &str) -> Client {
    Client::builder(to).session_timeout(LONG).deadline(SOON).connect().await.unwrap()
}

/// Recognizes the transactions on the wire.
pub(crate) mod step {
    use super::{Request, op};

    fn multi(request: &Request<'_>, paths: &[&str]) -> bool {
        request.op == op::MULTI && paths.iter().all(|path| request.mentions(path))
    }

    pub(crate) fn submit(request: &Request<'_>) -> bool {
        multi(request, &["/jobs/", "/ready/"])
    }

    /// A claim writes a record into `/epoch`; a beat only checks it.
    pub(crate) fn claim(request: &Request<'_>) -> bool {
        multi(request, &["/election/", "/epoch", "BW\u{1}\u{5}"])
    }

    pub(crate) fn beat(request: &Request<'_>) -> bool {
        multi(request, &["/election/", "/epoch", "/leading"]) && !claim(request)
    }

    pub(crate) fn assign(request: &Request<'_>) -> bool {
        multi(request, &["/epoch", "/workers/", "/ready/", "/assignments/"])
    }

    /// A worker closes an attempt.
    pub(crate) fn complete(request: &Request<'_>) -> bool {
        multi(request, &["/jobs/", "/assignments/"])
    }

    pub(crate) fn close_orphan(request: &Request<'_>) -> bool {
        multi(request, &["/epoch", "/jobs/", "/assignments/"])
    }

    pub(crate) fn remove_inbox(request: &Request<'_>) -> bool {
        multi(request, &["/epoch", "/assignments/"])
            && !["/jobs/", "/ready/"].iter().any(|path| request.mentions(path))
    }

    pub(crate) fn remove_records(request: &Request<'_>) -> bool {
        multi(request, &["/epoch", "/jobs/"])
            && !["/assignments/", "/ready/"].iter().any(|path| request.mentions(path))
    }

    pub(crate) fn promote(request: &Request<'_>) -> bool {
        multi(request, &["/epoch", "/delayed/", "/ready/"])
    }

    pub(crate) fn tick(request: &Request<'_>) -> bool {
        multi(request, &["/epoch", "/schedules/", "/jobs/", "/ready/"])
    }
}
