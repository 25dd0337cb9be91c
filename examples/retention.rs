//! Records of ended jobs are kept for a while and then removed. The retention is one setting of the namespace.
//!
//! The example changes it, and shows that a purge does not remove jobs that have just ended: a client that lost the
//! reply to its submission may still look for them.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example retention
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use bellwether::client::{Purge, RetentionChange};
use bellwether::{Client, HandlerError, Handlers, Job, Node};

const SOON: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The expected output.
pub(crate) const EXPECTED: &str = "\
retention of dead jobs must be 1m to 3650d, not 1s: after a lost reply a client reads the record, and would \
submit a removed job again
dead jobs are kept for 90 days
report-7 is dead: no such month
a purge removes 0 records, and keeps 1 that has just ended
";

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or a job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let handlers = Handlers::new().job("report", async |_, month: u32| {
        if (1..=12).contains(&month) { Ok(month) } else { Err(HandlerError::new("no such month")) }
    });
    let node = Node::builder(zookeeper).handlers(handlers).start().await?;
    let client = Client::connect(zookeeper).await?;
    let mut story = Vec::new();

    let hasty = RetentionChange::new().dead(Duration::from_secs(1));
    if let Err(refused) = client.change_retention(&hasty).await {
        story.push(refused.to_string());
    }
    let set = client.change_retention(&RetentionChange::new().dead(90 * DAY)).await?;
    story.push(format!("dead jobs are kept for {} days", set.value.dead.as_secs() / DAY.as_secs()));

    let wrong = client.submit(Job::new("report", &13).id("report-7").max_attempts(1)).await?;
    let end = wrong.wait(SOON).await?;
    story.push(format!("{} is {}: {}", end.id, end.state, end.error.unwrap_or_default()));

    let purged = client.purge(&Purge::default().remove(true), |_| {}).await?;
    let (removed, too_recent) = (purged.removed, purged.too_recent);
    story.push(format!("a purge removes {removed} records, and keeps {too_recent} that has just ended"));
    client.close().await;
    node.stop().await;
    Ok(story.join("\n") + "\n")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let story = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("retention"))).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}
