//! Steady load for minutes: whether the rate of a short run lasts, with results that are read and records that are removed.
//!
//! A burst of jobs gives the rate of a short run. Then callers keep a fixed number of jobs open: each submits some, waits for
//! them, checks their results and submits the next. Records are kept for the shortest time that a namespace allows, so after
//! that time the leader removes as many records as clients create. A caller whose jobs the namespace refuses because it is full
//! waits and submits them again, as a real producer would; the report counts the refusals. Next to the load, single jobs of the
//! highest priority are submitted one at a time: an ordinary job waits for all jobs before it, which says more about the number
//! of open jobs than about the scheduler.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use bellwether::client::RetentionChange;
use bellwether::error::chain;
use bellwether::{Client, ConnectString};
use futures::future::{try_join, try_join_all};
use serde::Serialize;
use tokio::time::{interval, sleep};
use uuid::Uuid;

use super::cluster::{Cluster, named, sum_job};
use super::idle::percentile;
use super::load::{burst, check, is_full, per_second, submit, wait};
use super::{BenchError, Held, Progress, Usage, failed, millis};

/// Jobs per caller and round.
const ROUND: usize = 1_000;

/// Concurrent callers: together they keep the leader and the workers busy.
const CALLERS: usize = 16;

/// The shortest time for which a namespace keeps records.
const KEPT: Duration = Duration::from_secs(60);

/// Time between two readings of memory, between two single jobs, and before a refused job is submitted again.
const TICK: Duration = Duration::from_millis(250);

/// The highest priority.
const URGENT: u8 = 9;

/// Longest time for a single job under load.
const PATIENCE: Duration = Duration::from_secs(60);

/// The configuration of a run.
#[derive(Debug, Clone)]
pub struct SustainedConfig {
    /// The servers, and a chroot under which the namespace is created.
    pub zookeeper: ConnectString,
    /// Number of jobs of the short run.
    pub jobs: usize,
    /// Number of workers, each a process.
    pub workers: usize,
    /// Slots of each worker.
    pub slots: u32,
    /// Duration of the steady load.
    pub duration: Duration,
}

/// The results of a run.
#[derive(Debug, Clone, Serialize)]
pub struct SustainedReport {
    /// Jobs per second of the short run.
    pub short_jobs_per_second: f64,
    /// Duration of the steady load.
    pub seconds: f64,
    /// Jobs that were submitted and whose results were read under the steady load.
    pub jobs: usize,
    /// `jobs` per second.
    pub jobs_per_second: f64,
    /// `jobs_per_second` divided by `short_jobs_per_second`.
    pub ratio: f64,
    /// Jobs per second in each tenth of the duration.
    pub tenths: Vec<f64>,
    /// Median time from the submission of a single job of the highest priority until its result is read.
    pub p50_ms: f64,
    /// 99th percentile of that time.
    pub p99_ms: f64,
    /// Number of these jobs.
    pub single_jobs: usize,
    /// Submissions that the namespace refused because it was full. Each was repeated until it was accepted.
    pub refusals: usize,
    /// Microseconds of processor time per job.
    pub cpu_us_per_job: Usage<f64>,
    /// Resident bytes of each process before the steady load.
    pub bytes_before: Usage<u64>,
    /// The same in the middle.
    pub bytes_halfway: Usage<u64>,
    /// The same at the end.
    pub bytes_after: Usage<u64>,
    /// What the server held before the steady load.
    pub held_before: Held,
    /// The same in the middle.
    pub held_halfway: Held,
    /// The same at the end.
    pub held_after: Held,
}

/// Runs the steady load. It creates a namespace under the chroot and does not delete it: use a disposable server.
///
/// # Errors
/// If ZooKeeper cannot be reached, or a job does not succeed.
pub async fn run(
    config: &SustainedConfig,
    mut progress: impl FnMut(Progress),
) -> Result<SustainedReport, BenchError> {
    let namespace =
        named(&config.zookeeper, Uuid::now_v7(), "sustained").map_err(failed("naming a namespace"))?;
    let cluster =
        Cluster::start(namespace, config.workers, config.slots).await.map_err(failed("starting nodes"))?;
    keep_briefly(&cluster.client).await.map_err(failed("setting the retention"))?;

    let started = Instant::now();
    let short = |done| progress(Progress { what: "short run".into(), of: config.jobs, done });
    burst(0..config.jobs, &cluster, short).await.map_err(failed("running jobs"))?;
    let short_jobs_per_second = per_second(config.jobs, started.elapsed());

    let report = steady(config, &cluster, short_jobs_per_second, &mut progress).await;
    let report = report.map_err(failed("running steady load"))?;
    cluster.stop().await.map_err(failed("stopping nodes"))?;
    Ok(report)
}

async fn keep_briefly(client: &Client) -> Result<(), String> {
    let change = RetentionChange::new().succeeded(KEPT);
    client.change_retention(&change).await.map(drop).map_err(|error| chain(&error))
}

async fn steady(
    config: &SustainedConfig,
    cluster: &Cluster,
    short_jobs_per_second: f64,
    progress: &mut impl FnMut(Progress),
) -> Result<SustainedReport, String> {
    let (bytes_before, held_before, cpu) = (cluster.bytes()?, cluster.server().held().await, cluster.cpu()?);
    let load = Load {
        started: Instant::now(),
        duration: config.duration,
        done: Cell::new(0),
        refusals: Cell::new(0),
    };
    let middle = RefCell::new(None);
    let singles = RefCell::new(Vec::new());
    let observe = async {
        let mut done_at = vec![0];
        let mut ticks = interval(TICK);
        while !load.is_over() {
            ticks.tick().await;
            let (tenths, done) = (load.tenths(), load.done.get());
            done_at.resize((tenths + 1).min(11), done);
            if tenths >= 5 && middle.borrow().is_none() {
                let halfway = (cluster.bytes()?, cluster.server().held().await);
                middle.replace(Some(halfway));
            }
            let seconds = |time: Duration| usize::try_from(time.as_secs()).unwrap_or(usize::MAX);
            let what = format!("{done} jobs, seconds");
            progress(Progress { what, of: seconds(config.duration), done: seconds(load.started.elapsed()) });
        }
        // The last tenth ends with the load.
        done_at.resize(11, load.done.get());
        Ok::<_, String>(done_at)
    };
    let callers = try_join_all((0..CALLERS).map(|caller| load.call(cluster, caller)));
    let single = load.single(cluster, &singles);
    let (done_at, ((), _)) = try_join(observe, try_join(single, callers)).await?;
    let took = load.started.elapsed();
    let jobs = load.done.get();
    let (bytes_halfway, held_halfway) = middle.into_inner().ok_or("the load ended before its middle")?;
    let mut singles = singles.into_inner();
    singles.sort();
    let tenth = config.duration / 10;
    Ok(SustainedReport {
        short_jobs_per_second,
        seconds: took.as_secs_f64(),
        jobs,
        jobs_per_second: per_second(jobs, took),
        ratio: per_second(jobs, took) / short_jobs_per_second,
        tenths: done_at.windows(2).map(|done| per_second(done[1] - done[0], tenth)).collect(),
        p50_ms: millis(percentile(&singles, 50)),
        p99_ms: millis(percentile(&singles, 99)),
        single_jobs: singles.len(),
        refusals: load.refusals.get(),
        cpu_us_per_job: cluster.cpu()?.per_job(cpu, jobs + singles.len()),
        bytes_before,
        bytes_halfway,
        bytes_after: cluster.bytes()?,
        held_before,
        held_halfway,
        held_after: cluster.server().held().await,
    })
}

/// The load in progress.
struct Load {
    started: Instant,
    duration: Duration,
    done: Cell<usize>,
    refusals: Cell<usize>,
}

impl Load {
    fn is_over(&self) -> bool {
        self.started.elapsed() >= self.duration
    }

    /// Returns the number of tenths of the duration that have passed.
    fn tenths(&self) -> usize {
        let tenths = 10 * self.started.elapsed().as_millis() / self.duration.as_millis().max(1);
        usize::try_from(tenths).unwrap_or(usize::MAX)
    }

    /// Submits a round of jobs after the other. Refused jobs are part of the next round.
    async fn call(&self, cluster: &Cluster, caller: usize) -> Result<(), String> {
        let mut numbers = (caller..).step_by(CALLERS);
        let mut round = Vec::new();
        while !self.is_over() {
            round.extend(numbers.by_ref().take(ROUND - round.len()));
            let submitted = submit(&round, cluster).await?;
            wait(&submitted, cluster, |_| {}).await?;
            self.done.set(self.done.get() + submitted.accepted.len());
            self.refusals.set(self.refusals.get() + submitted.refused.len());
            if !submitted.refused.is_empty() {
                sleep(TICK).await;
            }
            round = submitted.refused;
        }
        Ok(())
    }

    /// Submits single jobs, one at a time, and records their latencies.
    async fn single(&self, cluster: &Cluster, took: &RefCell<Vec<Duration>>) -> Result<(), String> {
        // A separate client: the client of the load polls, because it waits for many jobs.
        let client = Client::connect(&cluster.namespace.to_string()).await.map_err(|error| chain(&error))?;
        let mut n = 0;
        while !self.is_over() {
            let started = Instant::now();
            match client.submit(sum_job(n).priority(URGENT)).await {
                Ok(handle) => {
                    let end = handle.wait(PATIENCE).await.map_err(|error| chain(&error))?;
                    took.borrow_mut().push(started.elapsed());
                    check(n, &end)?;
                    n += 1;
                }
                Err(error) if is_full(&error) => self.refusals.set(self.refusals.get() + 1),
                Err(error) => return Err(error.to_string()),
            }
            sleep(TICK).await;
        }
        client.close().await;
        Ok(())
    }
}
