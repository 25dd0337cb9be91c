//! Leases: a handler that hangs loses its job, and one that renews its lease keeps it.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example leases
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::future::pending;
use std::time::Duration;

use bellwether::{Client, HandlerError, Handlers, Job, Node, handler};

const SOON: Duration = Duration::from_secs(30);

/// The shortest lease, to keep the example short: the default is five minutes.
const LEASE: Duration = Duration::from_secs(1);

/// The expected output.
pub(crate) const EXPECTED: &str = "\
hung: succeeded on attempt 2, after 1 loss
asking: succeeded on attempt 1, after 0 losses
renewed: succeeded on attempt 1, after 0 losses
hopeless: dead on attempt 2, after 2 losses
";

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or a job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    // Hangs on the first attempt. When the lease ends, the handler is cancelled and then dropped.
    let hung = handler::job("hung", |context, (): ()| async move {
        if context.attempt() == 1 {
            pending::<()>().await;
        }
        Ok(())
    });
    // Knows that it takes longer, and requests a longer lease.
    let asking = handler::job("asking", |context, (): ()| async move {
        context.renew_lease(5 * LEASE)?;
        tokio::time::sleep(2 * LEASE).await;
        Ok(())
    });
    // Does not know how long it takes: the lease is renewed as long as the worker is alive.
    let renewed = handler::job("renewed", |_, (): ()| async {
        tokio::time::sleep(2 * LEASE).await;
        Ok(())
    });
    let handlers = Handlers::new()
        .add(hung.lease(LEASE))
        .add(asking.lease(LEASE))
        .add(renewed.lease(LEASE).auto_renew(true))
        .job("hopeless", |_, (): ()| pending::<Result<(), HandlerError>>());
    let node = Node::builder(zookeeper).handlers(handlers).start().await?;
    let client = Client::connect(zookeeper).await?;

    let kinds = ["hung", "asking", "renewed"];
    let jobs = kinds.map(|kind| Job::new(kind, &()).id(kind));
    // A job may have its own lease. Each expired lease counts as a loss.
    let hopeless = Job::new("hopeless", &()).id("hopeless").lease(LEASE).max_losses(2);
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
