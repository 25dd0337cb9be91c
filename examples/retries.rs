//! Failing jobs: retried after a backoff, dead after too many failures, and retried by an operator.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example retries
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether::client::Retried;
use bellwether::handler::with_state;
use bellwether::{Client, HandlerError, Handlers, Job, Node};

const SOON: Duration = Duration::from_secs(30);

/// The expected output.
pub(crate) const EXPECTED: &str = "\
flaky: succeeded on attempt 3, after 2 failures
hopeless: dead: the disk is full, after 2 failures
hopeless: queued again as generation 2
hopeless: succeeded on attempt 1, after 0 failures
";

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or a job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let mut story = String::new();
    let space = Arc::new(AtomicBool::new(false));
    let handlers = Handlers::new()
        .job("flaky", |context, (): ()| async move {
            match context.attempt() {
                attempt @ 1..=2 => Err(HandlerError::new(format!("no luck on attempt {attempt}"))),
                attempt => Ok(attempt),
            }
        })
        .add(with_state(Arc::clone(&space)).job("hopeless", |space, _, (): ()| async move {
            let space = space.load(Ordering::SeqCst);
            if space { Ok("stored") } else { Err(HandlerError::new("the disk is full")) }
        }));
    let node = Node::builder(zookeeper).handlers(handlers).start().await?;
    let client = Client::connect(zookeeper).await?;

    // The backoff doubles with each failure, up to the second bound, and has jitter.
    let (first, longest) = (Duration::from_millis(50), Duration::from_secs(1));
    let flaky = Job::new("flaky", &()).max_attempts(5).backoff(first, longest);
    let flaky = client.submit(flaky).await?.wait(SOON).await?;
    story +=
        &format!("flaky: {} on attempt {}, after {} failures\n", flaky.state, flaky.attempt, flaky.failures);

    let hopeless = Job::new("hopeless", &()).max_attempts(2).backoff(first, longest);
    let hopeless = client.submit(hopeless).await?;
    let dead = hopeless.wait(SOON).await?;
    story += &format!("hopeless: {}, after {} failures\n", dead.status(), dead.failures);

    // An operator fixes the cause and runs `bellwether job retry ID`, or:
    space.store(true, Ordering::SeqCst);
    let Retried::Reopened(generation) = client.retry(hopeless.id()).await? else {
        return Err("a dead job can be retried".into());
    };
    story += &format!("hopeless: queued again as generation {generation}\n");
    let mended = hopeless.wait(SOON).await?;
    story += &format!(
        "hopeless: {} on attempt {}, after {} failures\n",
        mended.state, mended.attempt, mended.failures
    );

    client.close().await;
    node.stop().await;
    Ok(story)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let story = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("retries"))).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}
