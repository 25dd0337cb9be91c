//! Two replicas of a service that wants one leader and no jobs.
//!
//! Each replica computes a report's number as the leader and stores it with a fenced write, so that a replica that
//! thinks it leads and does not cannot store anything.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, a namespace of its own), or starts one:
//!
//! ```sh
//! cargo run --example leader_only
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use bellwether::election::{CommitError, Election, Lifetime, Op};

/// What it prints, whichever replica comes first.
pub(crate) const EXPECTED: &str = "\
blue leads
blue stored report-1
blue stepped down
green leads, and its epoch is later
blue cannot store report-2: it does not lead
green stored report-2
green closed
blue leads again
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let zookeeper = zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("leader-only"));
    let story = run(&zookeeper).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}

/// Plays the story and tells it.
///
/// # Errors
/// When ZooKeeper cannot be reached, or an election does not come to an end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let mut story = String::new();
    let mut tell = |line: &str| story += &format!("{line}\n");

    let blue = replica(zookeeper, "blue").await?;
    let first = leads(&blue).await?;
    let green = replica(zookeeper, "green").await?;
    assert!(blue.is_leader() && !green.is_leader());
    tell("blue leads");
    store(&blue, first, "report-1").await?;
    tell("blue stored report-1");

    blue.step_down().await;
    tell("blue stepped down");
    let second = leads(&green).await?;
    assert!(second > first);
    tell("green leads, and its epoch is later");

    // What a replica decided under an old epoch is refused, here before it is sent; were it on its way already,
    // ZooKeeper would refuse it by the fence.
    let refused = store(&blue, first, "report-2").await;
    assert_eq!(refused, Err(CommitError::NotLeader(first)));
    tell("blue cannot store report-2: it does not lead");
    store(&green, second, "report-2").await?;
    tell("green stored report-2");

    blue.stand();
    green.close().await;
    tell("green closed");
    assert!(leads(&blue).await? > second);
    tell("blue leads again");
    let epoch = blue.leadership().term().map(|term| term.epoch());
    assert_eq!(epoch, blue.fence().map(|fence| fence.version));
    blue.close().await;
    Ok(story)
}

async fn replica(zookeeper: &str, name: &str) -> Result<Election, Box<dyn Error>> {
    let replica = Election::builder(zookeeper).node(name).session_timeout(Duration::from_secs(4));
    Ok(replica.start().await?)
}

/// The epoch, once it leads.
async fn leads(replica: &Election) -> Result<i32, Box<dyn Error>> {
    const SOON: Duration = Duration::from_secs(20);
    Ok(tokio::time::timeout(SOON, replica.watch().active()).await?)
}

async fn store(replica: &Election, epoch: i32, report: &str) -> Result<(), CommitError> {
    // A znode of the service's own, which goes with the replica: two runs do not meet.
    let path = format!("/{report}");
    let create = Op::Create { path, data: b"42".to_vec(), lifetime: Lifetime::Ephemeral };
    replica.commit(epoch, vec![create]).await
}
