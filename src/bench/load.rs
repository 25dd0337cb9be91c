//! Throughput: of bare transactions (the floor), and of real jobs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bellwether_core::job::{Assignment, Attempt, Ending};
use bellwether_core::metric;
use bellwether_core::name::{JobId, NodeId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::time::WallMillis;
use bellwether_core::txn;
use bellwether_core::wire::{SCHEMA, encode};
use bellwether_core::worker::WorkerInfo;
use bellwether_zk::bare::{self, Sample};
use bellwether_zk::{connect, open_namespace};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use uuid::Uuid;

use super::cluster::{Cluster, job, namespace};
use super::process::{Sent, sum};
use super::{BenchConfig, Step, count};

/// Jobs per transaction, as in the published figures of the floor.
const BATCH: usize = 100;

/// Concurrent transactions: enough to keep the server busy; more would only queue there.
const WINDOW: usize = 8;

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
        let (requests, operations) = (self.sum(metric::ZK_REQUESTS, ""), self.sum(metric::ZK_OPERATIONS, ""));
        Sent { requests, operations }
    }
}

pub(super) struct Load {
    pub(super) jobs_per_second: f64,
    pub(super) transactions_per_job: f64,
    pub(super) requests_per_job: f64,
    pub(super) operations_per_job: f64,
}

/// Measures jobs per second of bare transactions.
pub(super) async fn floor(config: &BenchConfig, run: Uuid) -> Result<f64, String> {
    let to = namespace(config, run, "floor")?;
    let zk = connect(&to, Duration::from_secs(10)).await.map_err(|error| error.to_string())?;
    open_namespace(&zk, true).await.map_err(|error| error.to_string())?;
    let worker = WorkerId::new(Uuid::now_v7());
    let info = WorkerInfo {
        node: NodeId::new("floor").map_err(|error| error.to_string())?,
        host: "floor".into(),
        kinds: vec![],
        leases: BTreeMap::new(),
        slots: 0,
        tags: vec![],
        codec: SCHEMA,
        started_at: WallMillis(0),
        draining: false,
    };
    let registered = zk.commit(txn::register(worker, &info)).await;
    if registered != Outcome::Applied(()) {
        return Err(format!("registering was answered with {registered:?}"));
    }
    let jobs = (0..config.jobs).map(|_| JobId::from_uuid(Uuid::now_v7())).collect::<Vec<_>>();
    let floor = bare::run(&zk, &jobs, worker, &sample(worker)?, BATCH, WINDOW).await?;
    Ok(per_second(config.jobs, floor.took))
}

/// Measures real jobs through leader and workers.
pub(super) async fn load(
    config: &BenchConfig,
    cluster: &Cluster,
    counts: &Counts,
    progress: &mut impl FnMut(Step),
) -> Result<Load, String> {
    let before = (
        counts.sum(metric::ZK_REQUESTS, "write"),
        counts.sum(metric::ZK_REQUESTS, ""),
        counts.sum(metric::ZK_OPERATIONS, ""),
    );
    let jobs = (1..=config.jobs).map(job).collect::<Result<Vec<_>, _>>()?;
    progress(Step::Load(0));
    let started = Instant::now();
    let submitted = cluster.client.submit_many(jobs, |_| {}).await;
    let handles = submitted.into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let ids = handles.iter().map(|handle| handle.id().clone()).collect::<Vec<_>>();
    let ends = cluster.client.wait_many(&ids, PATIENCE, |over| progress(Step::Load(over))).await;
    let took = started.elapsed();
    for end in ends {
        let end = end.map_err(|error| error.to_string())?;
        if end.state != crate::State::Succeeded {
            return Err(format!("job {} is {}", end.id, end.state));
        }
    }
    let per_job = |counter, labelled, before| (counts.sum(counter, labelled) - before) / count(config.jobs);
    Ok(Load {
        jobs_per_second: per_second(config.jobs, took),
        transactions_per_job: per_job(metric::ZK_REQUESTS, "write", before.0),
        requests_per_job: per_job(metric::ZK_REQUESTS, "", before.1),
        operations_per_job: per_job(metric::ZK_OPERATIONS, "", before.2),
    })
}

/// Returns the bytes of a job of the load, before and after its run.
fn sample(worker: WorkerId) -> Result<Sample, String> {
    let (_, record) = job(1)?
        .into_record(WallMillis(1_700_000_000_000), Uuid::now_v7)
        .map_err(|error| error.to_string())?;
    let entry = record.entry();
    let assignment = Assignment::new(1, 1, record.submitted_at);
    let ending = Ending::Succeeded(record.payload.clone());
    let (done, _) = record.clone().close(Attempt { number: 1, worker }, ending, record.submitted_at, 0);
    Ok(Sample {
        record: encode(&record),
        entry: encode(&entry),
        assignment: encode(&assignment),
        done: encode(&done),
    })
}

fn per_second(jobs: usize, took: Duration) -> f64 {
    count(jobs) / took.as_secs_f64()
}
