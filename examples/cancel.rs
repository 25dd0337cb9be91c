//! Cancels a waiting job, a running job and a job that has ended.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example cancel
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bellwether::client::Cancelled;
use bellwether::handler::with_state;
use bellwether::{Client, HandlerError, Handlers, Job, Node, State};
use tokio::sync::Notify;

const SOON: Duration = Duration::from_secs(30);

/// The expected output.
pub(crate) const EXPECTED: &str = "\
the first runs, the second waits
the second is cancelled before it started: 0 attempts
the first is asked to stop
the first cleaned up
the first is cancelled: 1 attempt
the third succeeded: too late to cancel
";

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or a job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let mut story = String::new();
    let mut tell = |line: &str| story += &format!("{line}\n");
    let (began, cleaned) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let shared = with_state((Arc::clone(&began), Arc::clone(&cleaned)));
    let endless = shared.job("endless", |(began, cleaned), context, (): ()| async move {
        began.notify_one();
        // A handler that ignores the signal is dropped at its next await, half a second later.
        context.cancelled().await;
        cleaned.notify_one();
        Err::<(), _>(HandlerError::new("stopped half-way"))
    });
    let handlers = Handlers::new().job("quick", |_, n: u32| async move { Ok(n) }).add(endless);
    // One slot: the second job has to wait.
    let node = Node::builder(zookeeper).handlers(handlers).slots(1).start().await?;
    let client = Client::connect(zookeeper).await?;

    let first = client.submit(Job::new("endless", &())).await?;
    began.notified().await;
    let second = client.submit(Job::new("endless", &())).await?;
    tell("the first runs, the second waits");

    assert_eq!(client.cancel(second.id()).await?, Cancelled::Cancelled);
    let view = second.wait(SOON).await?;
    tell(&format!("the second is {} before it started: {} attempts", view.state, view.attempt));

    assert!(matches!(client.cancel(first.id()).await?, Cancelled::Requested(_)));
    tell("the first is asked to stop");
    cleaned.notified().await;
    tell("the first cleaned up");
    let view = first.wait(SOON).await?;
    tell(&format!("the first is {}: {} attempt", view.state, view.attempt));

    let third = client.submit(Job::new("quick", &3)).await?;
    third.wait(SOON).await?;
    assert_eq!(client.cancel(third.id()).await?, Cancelled::AlreadyTerminal(State::Succeeded));
    tell("the third succeeded: too late to cancel");

    client.close().await;
    node.stop().await;
    Ok(story)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let story = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("cancel"))).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}
