//! Throughput of real jobs.

use std::time::{Duration, Instant};

use bellwether::{JobView, State};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::cluster::{Cluster, sum_job};
use super::process::Sent;
use super::usage::Usage;
use super::{Step, count};

/// Longer than any useful run.
const PATIENCE: Duration = Duration::from_secs(600);

/// Counts the requests that all parts of this process sent.
pub(super) struct Counts(PrometheusHandle);

impl Counts {
    pub(super) fn install() -> Result<Self, String> {
        PrometheusBuilder::new().install_recorder().map(Self).map_err(|error| error.to_string())
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
    progress: &mut impl FnMut(Step),
) -> Result<Load, String> {
    progress(Step::Load(0));
    let (sent, cpu) = (cluster.sent(counts).await?, cluster.cpu()?);
    let started = Instant::now();
    burst(0..jobs, cluster, |over| progress(Step::Load(over))).await?;
    let (took, cpu) = (started.elapsed(), cluster.cpu()?.per_job(cpu, jobs));
    let sent = cluster.sent(counts).await?.plus(sent, -1.0);
    Ok(Load { jobs_per_second: per_second(jobs, took), sent, cpu_us_per_job: cpu })
}

/// Submits the jobs with these numbers, waits for all of them and checks their results.
pub(super) async fn burst(
    numbers: std::ops::Range<usize>,
    cluster: &Cluster,
    progress: impl FnMut(usize),
) -> Result<(), String> {
    let jobs = numbers.clone().map(sum_job).collect::<Vec<_>>();
    let submitted = cluster.client.submit_many(jobs, |_| {}).await;
    let handles = submitted.into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let ends = cluster.client.wait_for_many(&handles, PATIENCE, progress).await;
    for (n, end) in numbers.zip(ends) {
        check(n, &end.map_err(|error| error.to_string())?)?;
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
