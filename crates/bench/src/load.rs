//! Throughput of real jobs.

use std::ops::Range;
use std::time::{Duration, Instant};

use bellwether::client::SubmitError;
use bellwether::error::chain;
use bellwether::{ErrorClass, JobHandle, JobView, State};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::cluster::{Cluster, sum_job};
use super::process::Sent;
use super::usage::Usage;
use super::{Progress, count};

/// Longer than any useful run.
const PATIENCE: Duration = Duration::from_secs(600);

/// Counts the requests that all parts of this process sent.
pub(super) struct Counts(PrometheusHandle);

impl Counts {
    pub(super) fn install() -> Result<Self, String> {
        PrometheusBuilder::new().install_recorder().map(Self).map_err(|error| chain(&error))
    }

    pub(super) fn sent(&self) -> Sent {
        Sent::from_metrics(&self.0.render())
    }
}

pub(super) struct Load {
    pub(super) jobs_per_second: f64,
    /// Requests of all processes under load.
    pub(super) sent: Sent,
    pub(super) cpu_us_per_job: Usage<f64>,
}

/// Runs jobs through leader and workers, and reads the result of each.
pub(super) async fn load(
    jobs: usize,
    cluster: &Cluster,
    counts: &Counts,
    progress: &mut impl FnMut(Progress),
) -> Result<Load, String> {
    let mut ended = |done| progress(Progress { what: "jobs under load".into(), of: jobs, done });
    ended(0);
    let (sent, cpu) = (cluster.sent(counts).await?, cluster.cpu()?);
    let started = Instant::now();
    burst(0..jobs, cluster, &mut ended).await?;
    let (took, cpu) = (started.elapsed(), cluster.cpu()?.per_job(cpu, jobs));
    let sent = cluster.sent(counts).await?.plus(sent, -1.0);
    Ok(Load { jobs_per_second: per_second(jobs, took), sent, cpu_us_per_job: cpu })
}

/// Submits the jobs with these numbers, waits for all of them and checks their results.
pub(super) async fn burst(
    numbers: Range<usize>,
    cluster: &Cluster,
    progress: impl FnMut(usize),
) -> Result<(), String> {
    let submitted = submit(&numbers.clone().collect::<Vec<_>>(), cluster).await?;
    if !submitted.refused.is_empty() {
        let refused = submitted.refused.len();
        return Err(format!("the namespace is full: it refused {refused} of {} jobs", numbers.len()));
    }
    wait(&submitted, cluster, progress).await
}

/// The outcome of a submission of several jobs.
pub(super) struct Submitted {
    /// The numbers of those that were accepted, in order.
    pub(super) accepted: Vec<usize>,
    /// One for each of `accepted`.
    pub(super) handles: Vec<JobHandle>,
    /// The numbers of those for which the namespace has no capacity, in order.
    pub(super) refused: Vec<usize>,
}

/// Submits the jobs with these numbers.
pub(super) async fn submit(numbers: &[usize], cluster: &Cluster) -> Result<Submitted, String> {
    let jobs = numbers.iter().copied().map(sum_job).collect::<Vec<_>>();
    let mut submitted = Submitted { accepted: Vec::new(), handles: Vec::new(), refused: Vec::new() };
    for (&n, result) in numbers.iter().zip(cluster.client.submit_many(jobs, |_| {}).await) {
        match result {
            Ok(handle) => {
                submitted.accepted.push(n);
                submitted.handles.push(handle);
            }
            Err(error) if is_full(&error) => submitted.refused.push(n),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(submitted)
}

/// Whether the namespace has no capacity for the job.
pub(super) fn is_full(error: &SubmitError) -> bool {
    error.class() == ErrorClass::Overloaded
}

/// Waits for the accepted jobs and checks their results.
pub(super) async fn wait(
    submitted: &Submitted,
    cluster: &Cluster,
    progress: impl FnMut(usize),
) -> Result<(), String> {
    let ends = cluster.client.wait_for_many(&submitted.handles, PATIENCE, progress).await;
    for (&n, end) in submitted.accepted.iter().zip(ends) {
        check(n, &end.map_err(|error| chain(&error))?)?;
    }
    Ok(())
}

/// Checks that a job succeeded with its number as the result.
pub(super) fn check(n: usize, end: &JobView) -> Result<(), String> {
    let result = end.result.as_ref().map(|result| String::from_utf8_lossy(result.bytes()).into_owned());
    if end.state == State::Succeeded && result.as_deref() == Some(n.to_string().as_str()) {
        Ok(())
    } else {
        Err(format!("job {} is {} with the result {result:?}; expected {n}", end.id, end.state))
    }
}

pub(super) fn per_second(jobs: usize, took: Duration) -> f64 {
    count(jobs) / took.as_secs_f64()
}
