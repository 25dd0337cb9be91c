//! Job ids: named jobs, and submitting a job again.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example identity
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bellwether::client::{Accepted, IfExists, SubmitError};
use bellwether::handler::with_state;
use bellwether::{Client, Handlers, Job, JobError, Node};
use tokio::sync::Semaphore;

const SOON: Duration = Duration::from_secs(30);

/// How many clients submit the same job concurrently.
const CLIENTS: usize = 5;

/// The expected output.
pub(crate) const EXPECTED: &str = "\
report:2026-11 is new
submitted again it is the same job
another payload is a conflict
with ignore, the existing job is kept
5 clients submit rebuild:index, 1 creates it
each sees it end; it ran once, never twice concurrently
after its end it is opened again, as generation 2
";

/// The runs of the kind `rebuild`.
struct Rebuilds {
    now: AtomicUsize,
    /// The most that ran at the same time.
    most: AtomicUsize,
    all: AtomicUsize,
    /// Each run waits for a permit.
    gate: Semaphore,
}

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or a job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let mut story = String::new();
    let mut tell = |line: String| story += &format!("{line}\n");
    let (now, most, all) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let rebuilds = Arc::new(Rebuilds { now, most, all, gate: Semaphore::new(0) });
    let rebuild = with_state(Arc::clone(&rebuilds)).job("rebuild", |rebuilds, _, (): ()| async move {
        let now = rebuilds.now.fetch_add(1, Ordering::SeqCst) + 1;
        rebuilds.most.fetch_max(now, Ordering::SeqCst);
        rebuilds.all.fetch_add(1, Ordering::SeqCst);
        let _through = rebuilds.gate.acquire().await?;
        rebuilds.now.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    });
    let handlers = Handlers::new().job("report", |_, month: u32| async move { Ok(month) }).add(rebuild);
    let node = Node::builder(zookeeper).handlers(handlers).slots(8).start().await?;
    let client = Client::connect(zookeeper).await?;

    // A name within a kind. Even if a reply is lost, submitting it again creates no second job.
    let report = |month: u32| Ok::<_, JobError>(Job::new("report", &month).named("2026-11"));
    let job = client.submit(report(11)?).await?;
    assert_eq!(job.accepted(), Accepted::New);
    tell(format!("{} is new", job.id()));
    assert!(client.submit(report(11)?).await?.is_duplicate());
    tell("submitted again it is the same job".to_owned());
    let conflict = client.submit(report(12)?).await;
    assert!(matches!(conflict, Err(SubmitError::Conflict { .. })));
    tell("another payload is a conflict".to_owned());
    let ignored = client.submit(report(12)?.if_exists(IfExists::Ignore)).await?;
    assert_eq!(ignored.accepted(), Accepted::Other);
    assert_eq!(job.result(SOON).await?.bytes(), b"11");
    tell("with ignore, the existing job is kept".to_owned());

    // At most one runs at a time in the cluster, however many clients submit it.
    let rebuild = || {
        let job = Job::new("rebuild", &());
        Ok::<_, JobError>(job.named("index").if_exists(IfExists::Again))
    };
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(Client::connect(zookeeper).await?);
    }
    let mut jobs = Vec::new();
    for client in &clients {
        jobs.push(client.submit(rebuild()?).await?);
    }
    let made = jobs.iter().filter(|job| job.accepted() == Accepted::New).count();
    tell(format!("{CLIENTS} clients submit {}, {made} creates it", jobs[0].id()));
    rebuilds.gate.add_permits(1);
    for job in &jobs {
        job.wait(SOON).await?;
    }
    assert_eq!((rebuilds.all.load(Ordering::SeqCst), rebuilds.most.load(Ordering::SeqCst)), (1, 1));
    tell("each sees it end; it ran once, never twice concurrently".to_owned());
    let opened = clients[0].submit(rebuild()?).await?;
    assert_eq!(opened.accepted(), Accepted::Again(2));
    let end = opened.wait(SOON).await?;
    tell(format!("after its end it is opened again, as generation {}", end.generation));

    for client in clients {
        client.close().await;
    }
    client.close().await;
    node.stop().await;
    Ok(story)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let story = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("identity"))).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}
