//! The floor: the ZooKeeper requests of a job's life, sent by one caller without a scheduler.
//!
//! A batch of jobs is submitted, assigned, read, completed, and its results are read, by one caller that knows everything in
//! advance: no leader, no watches, no retries. The znodes have as many bytes as those of real jobs. Two floors are measured:
//! with one znode per job and step, which is the layout of the product, and packed, with one znode per batch and step. No
//! scheduler with the same layout is faster on the same server.

mod packed;
mod plain;

use std::future::Future;
use std::time::{Duration, Instant};

use bellwether::ConnectString;
use bellwether::error::chain;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;
use uuid::Uuid;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, MultiWriteError};

/// Jobs in a transaction: as many as the client and the leader put into one under load.
const BATCH: usize = 100;

/// Transactions in flight: enough to keep the server busy. More only wait there.
const WINDOW: usize = 8;

const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Parents of records and of entries, as in a namespace.
const BUCKETS: u128 = 256;

/// The parent of assignments, whose name is as long as a worker's.
const INBOX: &str = "/assignments/00000000-0000-0000-0000-000000000000";

/// Bytes of a serial write: about those of a record.
const SERIAL: [u8; 200] = [0; 200];

const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());

/// Jobs per second of the bare requests.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Floors {
    /// One znode per job and step.
    pub plain: f64,
    /// One znode per hundred jobs and step.
    pub packed: f64,
}

impl Floors {
    /// Returns the means of two measurements.
    pub(super) fn mean(self, other: Self) -> Self {
        Self {
            plain: f64::midpoint(self.plain, other.plain),
            packed: f64::midpoint(self.packed, other.packed),
        }
    }
}

/// Measures both floors in this namespace, which must not exist.
pub(super) async fn measure(namespace: &ConnectString, jobs: usize) -> Result<Floors, String> {
    let client = &connect(namespace).await?;
    plain::prepare(client).await?;
    packed::prepare(client).await?;
    let plain = throughput(jobs, |ids| plain::life(client, ids)).await?;
    let packed = throughput(jobs, |ids| packed::life(client, ids)).await?;
    Ok(Floors { plain, packed })
}

async fn throughput<F>(jobs: usize, life: impl Fn(Vec<Uuid>) -> F) -> Result<f64, String>
where
    F: Future<Output = Result<(), Failed>>,
{
    let ids = (0..jobs).map(|_| Uuid::now_v7()).collect::<Vec<_>>();
    let started = Instant::now();
    let batches = stream::iter(ids.chunks(BATCH)).map(|ids| life(ids.to_vec())).buffer_unordered(WINDOW);
    batches.try_collect::<()>().await.map_err(|error| chain(&error))?;
    Ok(super::load::per_second(jobs, started.elapsed()))
}

/// A bare request failed.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Write(#[from] MultiWriteError),
    #[error(transparent)]
    Read(#[from] zookeeper_client::Error),
}

/// The duration of single requests, one after another.
pub(super) struct Serial {
    pub(super) writes: Vec<Duration>,
    pub(super) reads: Vec<Duration>,
}

/// Creates `count` znodes, and then reads each.
pub(super) async fn serial(namespace: &ConnectString, count: usize) -> Result<Serial, String> {
    let client = connect(namespace).await?;
    let (mut writes, mut reads) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for n in 0..count {
        let path = format!("/serial-{n}");
        let started = Instant::now();
        client.create(&path, &SERIAL, &PERSISTENT).await.map_err(|error| chain(&error))?;
        writes.push(started.elapsed());
    }
    for n in 0..count {
        let path = format!("/serial-{n}");
        let started = Instant::now();
        client.get_data(&path).await.map_err(|error| chain(&error))?;
        reads.push(started.elapsed());
    }
    Ok(Serial { writes, reads })
}

/// Creates the buckets below a parent.
async fn buckets(client: &Client, parent: &str) -> Result<(), String> {
    for bucket in 0..BUCKETS {
        mkdir(client, &format!("{parent}/{bucket:02x}")).await?;
    }
    Ok(())
}

async fn mkdir(client: &Client, path: &str) -> Result<(), String> {
    client.mkdir(path, &PERSISTENT).await.map_err(|error| chain(&error))
}

/// The path of a znode in one of the buckets.
fn below(parent: &str, id: &Uuid) -> String {
    let bucket = id.as_u128() % BUCKETS;
    format!("{parent}/{bucket:02x}/{id}")
}

/// Connects, and creates the chroot.
async fn connect(namespace: &ConnectString) -> Result<Client, String> {
    let connector = Client::connector().with_session_timeout(SESSION_TIMEOUT);
    let client = connector.connect(&namespace.servers().join(",")).await.map_err(|error| chain(&error))?;
    mkdir(&client, namespace.chroot()).await?;
    client.chroot(namespace.chroot()).map_err(|_| format!("{namespace} has no usable chroot"))
}
