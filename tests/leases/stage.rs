//! Handlers that run until a gate opens, and reads of their znodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bellwether::testing::Cluster;
use bellwether::{Job, JobContext, JobId, JobView};
use bellwether_core::job::Assignment;
use bellwether_core::{path, wire};
use bellwether_testkit::eventually;
use bellwether_zk::{Zk, connect};
use tokio::sync::watch;

pub(crate) const SOON: Duration = Duration::from_secs(30);

/// The shortest valid lease.
pub(crate) const LEASE: Duration = Duration::from_secs(1);

/// A gate at which handlers wait, and a record of the runs that reached it.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Inner>);

struct Inner {
    open: watch::Sender<bool>,
    came: Mutex<BTreeMap<String, Vec<JobContext>>>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner { open: watch::Sender::new(false), came: Mutex::default() }))
    }

    pub(crate) fn open(&self) {
        self.0.open.send_replace(true);
    }

    /// Records the run. No earlier run of the job may still be trusted, even if its code runs on.
    pub(crate) fn come(&self, context: &JobContext) {
        let now = Instant::now();
        let mut came = self.0.came.lock().unwrap();
        let runs = came.entry(context.job().to_string()).or_default();
        let trusted = runs.iter().find(|earlier| now < earlier.trusted_until()).map(JobContext::attempt);
        runs.push(context.clone());
        drop(came);
        assert_eq!(trusted, None, "attempt {} runs while an earlier one is trusted", context.attempt());
    }

    pub(crate) async fn wait(&self) {
        self.0.open.subscribe().wait_for(|open| *open).await.unwrap();
    }

    /// Blocks the thread.
    pub(crate) fn block(&self) {
        while !*self.0.open.borrow() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the attempts that ran, in the order of their starts.
    pub(crate) fn came(&self, job: &str) -> Vec<u32> {
        let came = self.0.came.lock().unwrap();
        came.get(job).map(|runs| runs.iter().map(JobContext::attempt).collect()).unwrap_or_default()
    }

    pub(crate) async fn has_come(&self, job: &str, runs: usize) {
        let what = format!("{job} has run {runs} times");
        eventually(&what, SOON, async || self.came(job).len() >= runs).await;
    }
}

pub(crate) fn job(kind: &str, id: &str) -> Job {
    Job::new(kind, &()).id(id)
}

pub(crate) async fn over(cluster: &Cluster, id: &str) -> JobView {
    let answers = cluster.client().wait_many(&[JobId::new(id).unwrap()], SOON, |_| {}).await;
    answers.into_iter().next().unwrap().unwrap()
}

pub(crate) async fn view(cluster: &Cluster, id: &str) -> JobView {
    cluster.client().get(&JobId::new(id).unwrap()).await.unwrap().unwrap()
}

pub(crate) async fn look(cluster: &Cluster) -> Zk {
    connect(&cluster.zookeeper().parse().unwrap(), SOON).await.unwrap()
}

/// Returns a running job's assignment and its version.
pub(crate) async fn assignment(cluster: &Cluster, zk: &Zk, id: &str) -> (Assignment, i32) {
    let worker = view(cluster, id).await.worker.unwrap();
    let path = path::assignment(worker, &JobId::new(id).unwrap());
    let node = zk.get(path).await.unwrap().unwrap();
    (wire::decode(&node.data).unwrap(), node.version)
}

/// Returns how often a job's record was set.
pub(crate) async fn record_version(zk: &Zk, id: &str) -> i32 {
    zk.get(path::record(&JobId::new(id).unwrap())).await.unwrap().unwrap().version
}
