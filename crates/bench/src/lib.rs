//! The benchmark: the cost of scheduling compared with the bare ZooKeeper writes that each job needs.
//!
//! Absolute figures depend on the machine, so everything is measured in one run against one server and reported as a
//! ratio to the floor, which sends the same requests for the same number of jobs without a scheduler. The floor is measured
//! before and after the load, because a server becomes slower or faster during a run. The jobs of the other side are real:
//! submitted by a [`Client`](bellwether::Client), assigned by an elected leader, run by workers in processes of their own, and
//! read by the client. All parts share the machine, including ZooKeeper.

#![forbid(unsafe_code)]

mod cluster;
mod floor;
pub mod http;
mod idle;
mod load;
mod memory;
mod process;
pub mod scenario;
mod server;
pub mod sustained;
mod usage;

use std::time::Duration;

use bellwether::ConnectString;
use serde::Serialize;

use cluster::{Cluster, named};
pub use floor::Floors;
pub use memory::PendingMemory;
pub use server::Held;
pub use usage::Usage;

/// The configuration of a run.
#[derive(Debug, Clone)]
pub struct BenchConfig {
    /// The servers, and a chroot under which the namespaces of a run are created.
    pub zookeeper: ConnectString,
    /// Number of jobs under load.
    pub jobs: usize,
    /// Number of jobs submitted one at a time.
    pub idle_jobs: usize,
    /// Number of workers, each a node with its own session.
    pub workers: usize,
    /// Slots of each worker.
    pub slots: u32,
    /// Number of waiting jobs while the memory of a node process is measured; 0 skips the measurement.
    pub pending: usize,
}

/// The results of a run.
#[derive(Debug, Clone, Serialize)]
pub struct BenchReport {
    /// Number of jobs under load.
    pub jobs: usize,
    /// Number of workers.
    pub workers: usize,
    /// Slots of each worker.
    pub slots: u32,
    /// The floors before the load.
    pub floors_before: Floors,
    /// The floors after the load.
    pub floors_after: Floors,
    /// Jobs per second through leader and workers, from the first submission until the last result is read.
    pub jobs_per_second: f64,
    /// `jobs_per_second` divided by the mean of the floors, for each floor.
    pub ratios: Floors,
    /// Write transactions per job under load, of all processes together.
    pub transactions_per_job: f64,
    /// Requests per job under load, reads and writes, of all processes together.
    pub requests_per_job: f64,
    /// Znode operations per job under load, reads and writes, of all processes together.
    pub operations_per_job: f64,
    /// Microseconds of processor time per job under load.
    pub cpu_us_per_job: Usage<f64>,
    /// Median time from submission until the result is read, one job at a time.
    pub idle_p50_ms: f64,
    /// 99th percentile of that time.
    pub idle_p99_ms: f64,
    /// Requests per job, reads and writes, of all processes together, one job at a time.
    pub idle_requests_per_job: f64,
    /// Median time of three bare writes in sequence.
    pub three_writes_p50_ms: f64,
    /// Median time of one bare read.
    pub read_p50_ms: f64,
    /// `idle_p50_ms` divided by `three_writes_p50_ms`.
    pub idle_ratio: f64,
    /// Memory of waiting jobs in a node that is leader and worker; `None` if it was not measured.
    pub pending_memory: Option<PendingMemory>,
}

/// The current step of a run, for a progress bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Name of the step.
    pub what: String,
    /// Total number of items.
    pub of: usize,
    /// Number of items done.
    pub done: usize,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[error("the benchmark failed while {during}: {reason}")]
pub struct BenchError {
    during: &'static str,
    reason: String,
}

fn failed(during: &'static str) -> impl Fn(String) -> BenchError {
    move |reason| BenchError { during, reason }
}

/// Runs the benchmark. It creates namespaces under the chroot and does not delete them, because deleting hundreds of
/// thousands of znodes takes long: use a disposable server.
///
/// Installs this process's metrics recorder to count requests, so a process can run only one benchmark.
///
/// # Errors
/// If ZooKeeper cannot be reached, or a job does not succeed.
pub async fn run(
    config: &BenchConfig,
    mut progress: impl FnMut(Progress),
) -> Result<BenchReport, BenchError> {
    let counts = load::Counts::install().map_err(failed("installing the recorder"))?;
    let run = uuid::Uuid::now_v7();

    let floor = async |part: &str, jobs| {
        let namespace = named(&config.zookeeper, run, part).map_err(failed("naming a namespace"))?;
        floor::measure(&namespace, jobs).await.map_err(failed("measuring the floor"))
    };

    let begun = |what: &str, of| Progress { what: what.to_owned(), of, done: 0 };

    progress(begun("warming up", config.jobs));
    floor("warm-up", config.jobs.min(WARM_UP)).await?;
    progress(begun("bare requests", config.jobs));
    let floors_before = floor("floor-1", config.jobs).await?;
    let namespace = named(&config.zookeeper, run, "jobs").map_err(failed("naming a namespace"))?;
    let cluster =
        Cluster::start(namespace, config.workers, config.slots).await.map_err(failed("starting nodes"))?;
    let load =
        load::load(config.jobs, &cluster, &counts, &mut progress).await.map_err(failed("running jobs"))?;
    let idle =
        idle::measure(config, &cluster, &counts, &mut progress).await.map_err(failed("measuring latency"))?;
    cluster.stop().await.map_err(failed("stopping nodes"))?;
    progress(begun("bare requests", config.jobs));
    let floors_after = floor("floor-2", config.jobs).await?;

    let pending_memory = if config.pending > 0 {
        progress(begun("memory of waiting jobs", config.pending));
        Some(memory::measure(config, run).await.map_err(failed("measuring memory"))?)
    } else {
        None
    };

    let floors = floors_before.mean(floors_after);
    Ok(BenchReport {
        jobs: config.jobs,
        workers: config.workers,
        slots: config.slots,
        floors_before,
        floors_after,
        jobs_per_second: load.jobs_per_second,
        ratios: Floors {
            plain: load.jobs_per_second / floors.plain,
            packed: load.jobs_per_second / floors.packed,
        },
        transactions_per_job: load.sent.transactions / count(config.jobs),
        requests_per_job: load.sent.requests / count(config.jobs),
        operations_per_job: load.sent.operations / count(config.jobs),
        cpu_us_per_job: load.cpu_us_per_job,
        idle_p50_ms: idle.p50_ms,
        idle_p99_ms: idle.p99_ms,
        idle_requests_per_job: idle.requests_per_job,
        three_writes_p50_ms: idle.three_writes_p50_ms,
        read_p50_ms: idle.read_p50_ms,
        idle_ratio: idle.p50_ms / idle.three_writes_p50_ms,
        pending_memory,
    })
}

/// Jobs of the warm-up: Java compiles the code that handles these requests within some seconds.
const WARM_UP: usize = 20_000;

#[expect(clippy::cast_precision_loss, reason = "no benchmark has 2^53 jobs")]
fn count(jobs: usize) -> f64 {
    jobs as f64
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
