//! An operator at work: why does it not run, pause, cancel, retry.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, a namespace of its own), or starts one:
//!
//! ```sh
//! cargo run --example control
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether::client::{Cancelled, Retried, Why};
use bellwether::{Client, HandlerError, Handlers, Job, JobId, Kind, Node};

const SOON: Duration = Duration::from_secs(30);

/// What it prints.
pub(crate) const EXPECTED: &str = "\
import-1: no live worker has a handler for kind import
import-1: kind import is paused by ops
resumed
import-1: it is over: the disk is full
import-1 is queued again, as generation 2
import-1 succeeded
import-2: it may not start before its time
import-2 is cancelled, and never began
nothing is paused any more
";

/// Plays the story and tells it.
///
/// # Errors
/// When ZooKeeper cannot be reached, or a job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let mut story = String::new();
    let mut tell = |line: &str| story += &format!("{line}\n");
    let client = Client::connect(zookeeper).await?;
    let kind = Kind::new("import")?;
    let first = client.submit(Job::new("import", &1)?.id("import-1").max_attempts(1)).await?;
    tell(&format!("import-1: {}", explain(&client, first.id()).await?));

    // Paused before anybody can begin. What runs would go on, and more may be submitted.
    assert!(client.pause_kind(&kind, "ops").await?);
    let space = Arc::new(AtomicBool::new(false));
    let has_space = Arc::clone(&space);
    let handlers = Handlers::new().job("import", move |_, n: u32| {
        let has_space = has_space.load(Ordering::SeqCst);
        async move { if has_space { Ok(n) } else { Err(HandlerError::new("the disk is full")) } }
    });
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

    let second = Job::new("import", &2)?.id("import-2").delay(Duration::from_secs(3_600));
    let second = client.submit(second).await?;
    tell(&format!("import-2: {}", explain(&client, second.id()).await?));
    assert_eq!(client.cancel(second.id()).await?, Cancelled::Cancelled);
    let end = second.wait(SOON).await?;
    assert_eq!(end.attempt, 0);
    tell(&format!("import-2 is {}, and never began", end.state));
    assert!(client.kinds().await?.iter().all(|kind| kind.paused.is_none()));
    tell("nothing is paused any more");

    client.close().await;
    node.stop().await;
    Ok(story)
}

/// In a sentence, as `bellwether job explain` has it, but without what differs from run to run.
async fn explain(client: &Client, job: &JobId) -> Result<String, Box<dyn Error>> {
    Ok(match client.explain(job).await?.why {
        Why::NotBefore { .. } => "it may not start before its time".to_owned(),
        Why::Over { error: Some(error), .. } => format!("it is over: {error}"),
        Why::Paused { kind, pause } => {
            format!("kind {kind} is paused by {}", pause.by.unwrap_or_default())
        }
        why => why.to_string(),
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
