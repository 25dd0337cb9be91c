//! The baseline of the benchmark: the transactions of a job, sent with plain client calls.
//!
//! There are no actors, no leader, no watches and no retries: one caller that knows everything in advance creates,
//! assigns and completes batches of jobs. No scheduler can be faster on the same server.

use std::time::{Duration, Instant};

use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path;
use futures::stream::{self, StreamExt, TryStreamExt};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error, MultiWriteError};

use crate::session::Zk;

const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());

/// The bytes of one job's znodes, with realistic sizes.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The data of a new record.
    pub record: Vec<u8>,
    /// The data of a queue entry.
    pub entry: Vec<u8>,
    /// The data of an assignment.
    pub assignment: Vec<u8>,
    /// The data of a record with its result.
    pub done: Vec<u8>,
}

/// The cost of the baseline.
#[derive(Debug, Clone, Copy)]
pub struct Floor {
    /// The time for all jobs.
    pub took: Duration,
    /// The number of requests.
    pub requests: usize,
    /// The number of operations in these requests.
    pub operations: usize,
}

/// Submits, assigns and completes `jobs` in batches of `batch`, with `window` batches in flight. The inbox of `worker`
/// must exist.
///
/// # Errors
/// When a transaction fails or the connection is lost: a partial run is useless for a benchmark.
pub async fn run(
    zk: &Zk,
    jobs: &[JobId],
    worker: WorkerId,
    sample: &Sample,
    batch: usize,
    window: usize,
) -> Result<Floor, String> {
    let client = zk.client();
    let epoch = client.check_stat(path::EPOCH).await.map_err(text)?.map_or(0, |stat| stat.version);
    let started = Instant::now();
    let batches = stream::iter(jobs.chunks(batch))
        .map(|jobs| life(client, jobs, worker, sample, epoch))
        .buffer_unordered(window)
        .try_fold(
            (0, 0),
            |sum, (requests, operations)| async move { Ok((sum.0 + requests, sum.1 + operations)) },
        );
    let (requests, operations) = batches.await.map_err(text)?;
    Ok(Floor { took: started.elapsed(), requests, operations })
}

/// The durations of `count` single creates, one after another.
///
/// # Errors
/// When one fails.
pub async fn serial_writes(zk: &Zk, parent: &str, count: usize) -> Result<Vec<Duration>, String> {
    let mut took = Vec::with_capacity(count);
    for n in 0..count {
        let path = format!("{parent}/serial-{n}");
        let started = Instant::now();
        zk.client().create(&path, &[0; 200], &PERSISTENT).await.map_err(text)?;
        took.push(started.elapsed());
    }
    Ok(took)
}

async fn life(
    client: &Client,
    jobs: &[JobId],
    worker: WorkerId,
    sample: &Sample,
    epoch: i32,
) -> Result<(usize, usize), MultiWriteError> {
    let mut submit = client.new_multi_writer();
    for job in jobs {
        submit.add_create(&path::record(job), &sample.record, &PERSISTENT)?;
        submit.add_create(&path::queue_entry(job), &sample.entry, &PERSISTENT)?;
    }
    submit.commit().await?;
    let mut assign = client.new_multi_writer();
    assign.add_check_version(path::EPOCH, epoch)?;
    for job in jobs {
        assign.add_delete(&path::queue_entry(job), None)?;
        assign.add_create(&path::assignment(worker, job), &sample.assignment, &PERSISTENT)?;
    }
    assign.commit().await?;
    let mut complete = client.new_multi_writer();
    for job in jobs {
        complete.add_set_data(&path::record(job), &sample.done, Some(0))?;
        complete.add_delete(&path::assignment(worker, job), None)?;
    }
    complete.commit().await?;
    Ok((3, 6 * jobs.len() + 1))
}

fn text(error: impl Into<Error>) -> String {
    error.into().to_string()
}
