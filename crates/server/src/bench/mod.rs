//! The benchmark: what scheduling costs beside the bare ZooKeeper writes that it cannot do without.
//!
//! Absolute figures belong to a machine, so everything is measured in one run against one server and reported
//! as a ratio to the floor, which takes the same number of jobs through the same transactions, batched by 100, without a scheduler. The jobs of the other side are real: submitted by a
//! [`Client`](bellwether::Client), assigned by an elected leader, run by workers, seen by the client. All of it, ZooKeeper too,
//! shares the machine.

mod cluster;
mod floor;
pub mod http;
mod idle;
mod load;
mod memory;
mod process;
pub mod scenario;

use std::time::Duration;

use bellwether::ConnectString;
use serde::Serialize;

use cluster::Cluster;
pub use memory::PendingMemory;

/// What to measure.
#[derive(Debug, Clone)]
pub struct BenchConfig {
    /// The servers, and a chroot under which a namespace per run is made.
    pub zookeeper: ConnectString,
    /// Jobs under load.
    pub jobs: usize,
    /// Jobs submitted one at a time.
    pub idle_jobs: usize,
    /// Workers, each a node of its own session.
    pub workers: usize,
    /// Slots of each.
    pub slots: u32,
    /// Jobs that wait while a node process's memory is measured; 0 leaves it out.
    pub pending: usize,
}

impl BenchConfig {
    /// The figures that the documentation quotes.
    #[must_use]
    pub fn new(zookeeper: ConnectString) -> Self {
        Self { zookeeper, jobs: 50_000, idle_jobs: 500, workers: 2, slots: 512, pending: 50_000 }
    }
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct BenchReport {
    /// Jobs under load.
    pub jobs: usize,
    /// Workers.
    pub workers: usize,
    /// Slots of each worker.
    pub slots: u32,
    /// Jobs per second of the bare transactions.
    pub floor_jobs_per_second: f64,
    /// Jobs per second through leader and workers, from the first submission to the last result seen.
    pub jobs_per_second: f64,
    /// The second over the first.
    pub ratio: f64,
    /// Write transactions per job under load, of all parties together.
    pub transactions_per_job: f64,
    /// Requests per job under load, reads and writes, of all parties together.
    pub requests_per_job: f64,
    /// Znode operations per job under load, reads and writes, of all parties together.
    pub operations_per_job: f64,
    /// Submission to result seen, one at a time, half of them within.
    pub idle_p50_ms: f64,
    /// As before, 99 of 100 within.
    pub idle_p99_ms: f64,
    /// Three bare writes one after another, half of them within.
    pub three_writes_p50_ms: f64,
    /// The idle median over that of three bare writes.
    pub idle_ratio: f64,
    /// What waiting jobs cost a node that leads and works; `None` when it was not measured.
    pub pending_memory: Option<PendingMemory>,
}

/// What the benchmark does now, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Bare transactions.
    Floor,
    /// Jobs under load; so many are over.
    Load(usize),
    /// Jobs one at a time; so many are over.
    Idle(usize),
    /// A node's memory.
    Memory,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[error("the benchmark failed while {during}: {reason}")]
pub struct BenchError {
    during: &'static str,
    reason: String,
}

fn failed(during: &'static str) -> impl Fn(String) -> BenchError {
    move |reason| BenchError { during, reason }
}

/// Measures. Makes namespaces under the chroot and leaves them there: ZooKeeper is not a place to delete
/// hundreds of thousands of znodes from in a hurry; give it a throw-away server.
///
/// Installs this process's metrics recorder, to count requests; a process runs one benchmark.
///
/// # Errors
/// When ZooKeeper cannot be reached, or a job does not succeed.
pub async fn run(config: &BenchConfig, mut progress: impl FnMut(Step)) -> Result<BenchReport, BenchError> {
    let counts = load::Counts::install().map_err(failed("installing the recorder"))?;
    let run = uuid::Uuid::now_v7();

    progress(Step::Floor);
    let namespace = cluster::namespace(config, run, "floor").map_err(failed("naming a namespace"))?;
    let floor = floor::throughput(&namespace, config.jobs).await.map_err(failed("measuring the floor"))?;

    let cluster = Cluster::start(config, run).await.map_err(failed("starting nodes"))?;
    let load = load::load(config, &cluster, &counts, &mut progress).await.map_err(failed("running jobs"))?;
    let idle = idle::measure(config, &cluster, &mut progress).await.map_err(failed("measuring latency"))?;
    cluster.stop().await;

    let pending_memory = if config.pending > 0 {
        progress(Step::Memory);
        Some(memory::measure(config, run).await.map_err(failed("measuring memory"))?)
    } else {
        None
    };

    Ok(BenchReport {
        jobs: config.jobs,
        workers: config.workers,
        slots: config.slots,
        floor_jobs_per_second: floor,
        jobs_per_second: load.jobs_per_second,
        ratio: load.jobs_per_second / floor,
        transactions_per_job: load.transactions_per_job,
        requests_per_job: load.requests_per_job,
        operations_per_job: load.operations_per_job,
        idle_p50_ms: idle.p50_ms,
        idle_p99_ms: idle.p99_ms,
        three_writes_p50_ms: idle.three_writes_p50_ms,
        idle_ratio: idle.p50_ms / idle.three_writes_p50_ms,
        pending_memory,
    })
}

#[expect(clippy::cast_precision_loss, reason = "no benchmark has 2^53 jobs")]
fn count(jobs: usize) -> f64 {
    jobs as f64
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
