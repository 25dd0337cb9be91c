//! Throughput of real jobs.

use std::time::{Duration, Instant};

use bellwether::{State, metrics as metric};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::cluster::{Cluster, job};
use super::process::{Sent, sum};
use super::{BenchConfig, Step, count};

/// Longer than any useful run.
const PATIENCE: Duration = Duration::from_secs(600);

/// Counts the requests that all parts of this process sent.
pub(super) struct Counts(PrometheusHandle);

impl Counts {
    pub(super) fn install() -> Result<Self, String> {
        PrometheusBuilder::new().install_recorder().map(Self).map_err(|error| error.to_string())
    }

    fn sum(&self, counter: &str, labelled: &str) -> f64 {
        sum(&self.0.render(), counter, labelled)
    }

    pub(super) fn sent(&self) -> Sent {
        let (requests, operations) =
            (self.sum(metric::ZOOKEEPER_REQUESTS, ""), self.sum(metric::ZOOKEEPER_OPERATIONS, ""));
        Sent { requests, operations }
    }
}

pub(super) struct Load {
    pub(super) jobs_per_second: f64,
    pub(super) transactions_per_job: f64,
    pub(super) requests_per_job: f64,
    pub(super) operations_per_job: f64,
}

/// Measures real jobs through leader and workers.
pub(super) async fn load(
    config: &BenchConfig,
    cluster: &Cluster,
    counts: &Counts,
    progress: &mut impl FnMut(Step),
) -> Result<Load, String> {
    let before = (
        counts.sum(metric::ZOOKEEPER_REQUESTS, "write"),
        counts.sum(metric::ZOOKEEPER_REQUESTS, ""),
        counts.sum(metric::ZOOKEEPER_OPERATIONS, ""),
    );
    let jobs = (1..=config.jobs).map(job).collect::<Vec<_>>();
    progress(Step::Load(0));
    let started = Instant::now();
    let submitted = cluster.client.submit_many(jobs, |_| {}).await;
    let handles = submitted.into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let ids = handles.iter().map(|handle| handle.id().clone()).collect::<Vec<_>>();
    let ends = cluster.client.wait_many(&ids, PATIENCE, |over| progress(Step::Load(over))).await;
    let took = started.elapsed();
    for end in ends {
        let end = end.map_err(|error| error.to_string())?;
        if end.state != State::Succeeded {
            return Err(format!("job {} is {}", end.id, end.state));
        }
    }
    let per_job = |counter, labelled, before| (counts.sum(counter, labelled) - before) / count(config.jobs);
    Ok(Load {
        jobs_per_second: per_second(config.jobs, took),
        transactions_per_job: per_job(metric::ZOOKEEPER_REQUESTS, "write", before.0),
        requests_per_job: per_job(metric::ZOOKEEPER_REQUESTS, "", before.1),
        operations_per_job: per_job(metric::ZOOKEEPER_OPERATIONS, "", before.2),
    })
}

pub(super) fn per_second(jobs: usize, took: Duration) -> f64 {
    count(jobs) / took.as_secs_f64()
}
