//! The baseline: the ZooKeeper transactions of a job's life, sent by one caller without a scheduler.
//!
//! A batch of jobs is created, assigned and completed by one caller that knows everything in advance: no leader, no watches,
//! no retries. The znodes have as many bytes as those of real jobs. On the same server no scheduler that takes one znode per
//! job is faster.

use std::time::{Duration, Instant};

use bellwether::ConnectString;
use futures::stream::{self, StreamExt, TryStreamExt};
use uuid::Uuid;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error, MultiWriteError};

/// Jobs in a transaction: as many as the client and the leader put into one under load.
const BATCH: usize = 100;

/// Transactions in flight: enough to keep the server busy. More only wait there.
const WINDOW: usize = 8;

const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a new record, a queue entry, an assignment and a record with its result, of a job whose payload is a number.
const RECORD: [u8; 89] = [0; 89];
const ENTRY: [u8; 30] = [0; 30];
const ASSIGNMENT: [u8; 25] = [0; 25];
const DONE: [u8; 147] = [0; 147];

/// Parents of records and of queue entries, as in a namespace.
const BUCKETS: u128 = 256;

/// The parent of assignments, whose name is as long as a worker's.
const INBOX: &str = "/assignments/00000000-0000-0000-0000-000000000000";

/// Bytes of a serial write: about those of a record.
const SERIAL: [u8; 200] = [0; 200];

const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());

/// Jobs per second of bare transactions in this namespace, which must not exist.
pub(super) async fn throughput(namespace: &ConnectString, jobs: usize) -> Result<f64, String> {
    let client = connect(namespace).await?;
    for path in ["/epoch", "/jobs", "/queue", INBOX] {
        client.mkdir(path, &PERSISTENT).await.map_err(text)?;
    }
    for bucket in 0..BUCKETS {
        client.mkdir(&format!("/jobs/{bucket:02x}"), &PERSISTENT).await.map_err(text)?;
        client.mkdir(&format!("/queue/{bucket:02x}"), &PERSISTENT).await.map_err(text)?;
    }
    let ids = (0..jobs).map(|_| Uuid::now_v7()).collect::<Vec<_>>();
    let started = Instant::now();
    let batches = stream::iter(ids.chunks(BATCH)).map(|ids| life(&client, ids)).buffer_unordered(WINDOW);
    batches.try_collect::<()>().await.map_err(text)?;
    Ok(super::load::per_second(jobs, started.elapsed()))
}

/// How long each of `count` single creates took, one after another.
pub(super) async fn serial_writes(namespace: &ConnectString, count: usize) -> Result<Vec<Duration>, String> {
    let client = connect(namespace).await?;
    let mut took = Vec::with_capacity(count);
    for n in 0..count {
        let path = format!("/serial-{n}");
        let started = Instant::now();
        client.create(&path, &SERIAL, &PERSISTENT).await.map_err(text)?;
        took.push(started.elapsed());
    }
    Ok(took)
}

/// Submits, assigns and completes the jobs, each step in one transaction.
async fn life(client: &Client, jobs: &[Uuid]) -> Result<(), MultiWriteError> {
    let mut submit = client.new_multi_writer();
    for job in jobs {
        submit.add_create(&below("/jobs", job), &RECORD, &PERSISTENT)?;
        submit.add_create(&below("/queue", job), &ENTRY, &PERSISTENT)?;
    }
    submit.commit().await?;
    let mut assign = client.new_multi_writer();
    assign.add_check_version("/epoch", 0)?;
    for job in jobs {
        assign.add_delete(&below("/queue", job), None)?;
        assign.add_create(&format!("{INBOX}/{job}"), &ASSIGNMENT, &PERSISTENT)?;
    }
    assign.commit().await?;
    let mut complete = client.new_multi_writer();
    for job in jobs {
        complete.add_set_data(&below("/jobs", job), &DONE, Some(0))?;
        complete.add_delete(&format!("{INBOX}/{job}"), None)?;
    }
    complete.commit().await?;
    Ok(())
}

/// The path of a job's znode in one of the buckets.
fn below(parent: &str, job: &Uuid) -> String {
    let bucket = job.as_u128() % BUCKETS;
    format!("{parent}/{bucket:02x}/{job}")
}

/// Connects, and creates the chroot.
async fn connect(namespace: &ConnectString) -> Result<Client, String> {
    let connector = Client::connector().with_session_timeout(SESSION_TIMEOUT);
    let client =
        connector.connect(&namespace.servers().join(",")).await.map_err(|error| error.to_string())?;
    client.mkdir(namespace.chroot(), &PERSISTENT).await.map_err(|error| error.to_string())?;
    client.chroot(namespace.chroot()).map_err(|_| format!("{namespace} has no usable chroot"))
}

fn text(error: impl Into<Error>) -> String {
    error.into().to_string()
}
