//! Leases: a handler that hangs loses its job, one that renews keeps it, and nobody has to kill anything.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, a namespace of its own), or starts one:
//!
//! ```sh
//! cargo run --example leases
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::future::pending;
use std::time::Duration;

use bellwether::{Client, HandlerError, Handlers, Job, Node};

const SOON: Duration = Duration::from_secs(30);

/// The shortest that there is: an example should not take five minutes.
const LEASE: Duration = Duration::from_secs(1);

/// What it prints.
pub(crate) const EXPECTED: &str = "\
hung: succeeded on attempt 2, after 1 loss
asking: succeeded on attempt 1, after 0 losses
renewed: succeeded on attempt 1, after 0 losses
hopeless: dead on attempt 2, after 2 losses
";

/// Plays the story and tells it.
///
/// # Errors
/// When ZooKeeper cannot be reached, or a job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let handlers = Handlers::new()
        // Hangs at first. When its lease is over it is told to stop, and dropped if it does not.
        .job("hung", |context, (): ()| async move {
            if context.attempt() == 1 {
                pending::<()>().await;
            }
            Ok(())
        })
        .lease(LEASE)
        // Knows that it takes longer, and says so.
        .job("asking", |context, (): ()| async move {
            context.renew_lease(5 * LEASE)?;
            tokio::time::sleep(2 * LEASE).await;
            Ok(())
        })
        .lease(LEASE)
        // Does not know how long it takes: as long as its worker lives, it works.
        .job("renewed", |_, (): ()| async {
            tokio::time::sleep(2 * LEASE).await;
            Ok(())
        })
        .lease(LEASE)
        .renew_automatically()
        .job("hopeless", |_, (): ()| pending::<Result<(), HandlerError>>());
    let node = Node::builder(zookeeper).handlers(handlers).start().await?;
    let client = Client::connect(zookeeper).await?;

    let kinds = ["hung", "asking", "renewed"];
    let jobs = kinds
        .iter()
        .map(|kind| Ok(Job::new(kind, &())?.id(kind)))
        .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    // A job may have a lease of its own, and each hang counts as a loss.
    let hopeless = Job::new("hopeless", &())?.id("hopeless").lease(LEASE).max_losses(2);
    let mut story = String::new();
    for answer in client.submit_many(jobs.into_iter().chain([hopeless]), |_| {}).await {
        let end = answer?.wait(SOON).await?;
        let losses = if end.losses == 1 { "loss" } else { "losses" };
        story +=
            &format!("{}: {} on attempt {}, after {} {losses}\n", end.id, end.state, end.attempt, end.losses);
    }

    client.close().await;
    node.stop().await;
    Ok(story)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let story = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("leases"))).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}
