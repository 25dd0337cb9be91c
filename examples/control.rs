//! Operates jobs: explains why a job does not run, pauses a kind, cancels and retries.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example control
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether::client::{Cancelled, Cause, Retried};
use bellwether::handler::with_state;
use bellwether::{Client, HandlerError, Handlers, Job, JobId, Kind, Node};

const SOON: Duration = Duration::from_secs(30);

/// The expected output.
pub(crate) const EXPECTED: &str = "\
import-1: no live worker has a handler for kind import
import-1: kind import is paused: the disk is replaced
resumed
import-1: it ended: the disk is full
import-1 is queued again, as generation 2
import-1 succeeded
import-2: it may not start before its start time
import-2 is cancelled, and never started
no kind is paused
";

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or a job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let mut story = String::new();
    let mut tell = |line: &str| story += &format!("{line}\n");
    let client = Client::connect(zookeeper).await?;
    let kind = Kind::new("import")?;
    let first = client.submit(Job::new("import", &1).id("import-1").max_attempts(1)).await?;
    tell(&format!("import-1: {}", explain(&client, first.id()).await?));

    // Paused before a worker can start it. Running jobs would continue, and more jobs may be submitted.
    assert!(client.pause_kind(&kind, "the disk is replaced").await?);
    let space = Arc::new(AtomicBool::new(false));
    let import = with_state(Arc::clone(&space)).job("import", |space, _, n: u32| async move {
        if space.load(Ordering::SeqCst) { Ok(n) } else { Err(HandlerError::new("the disk is full")) }
    });
    let handlers = Handlers::new().add(import);
    let node = Node::builder(zookeeper).handlers(handlers).start().await?;
    tell(&format!("import-1: {}", explain(&client, first.id()).await?));
    client.resume_kind(&kind).await?;
    tell("resumed");
    first.wait(SOON).await?;
    tell(&format!("import-1: {}", explain(&client, first.id()).await?));

    space.store(true, Ordering::SeqCst);
    let Retried::Reopened(generation) = client.retry(first.id()).await? else {
        return Err("a dead job can be retried".into());
    };
    tell(&format!("import-1 is queued again, as generation {generation}"));
    tell(&format!("import-1 {}", first.wait(SOON).await?.state));

    let second = Job::new("import", &2).id("import-2").delay(Duration::from_secs(3_600));
    let second = client.submit(second).await?;
    tell(&format!("import-2: {}", explain(&client, second.id()).await?));
    assert_eq!(client.cancel(second.id()).await?, Cancelled::Cancelled);
    let end = second.wait(SOON).await?;
    assert_eq!(end.attempt, 0);
    tell(&format!("import-2 is {}, and never started", end.state));
    assert!(client.kinds().await?.iter().all(|kind| kind.paused.is_none()));
    tell("no kind is paused");

    client.close().await;
    node.stop().await;
    Ok(story)
}

/// Returns the sentence of `bellwether job explain`, without the parts that differ between runs.
async fn explain(client: &Client, job: &JobId) -> Result<String, Box<dyn Error>> {
    Ok(match client.explain(job).await?.cause {
        Cause::NotBefore { .. } => "it may not start before its start time".to_owned(),
        Cause::Ended { error: Some(error), .. } => format!("it ended: {error}"),
        Cause::Paused { kind, pause } => {
            format!("kind {kind} is paused: {}", pause.note.unwrap_or_default())
        }
        cause => cause.to_string(),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let story = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("control"))).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}
