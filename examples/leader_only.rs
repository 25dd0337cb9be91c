//! Two replicas of a service that needs a leader but no jobs.
//!
//! The leader stores a report with a fenced write. So a replica that wrongly believes that it is the leader cannot
//! store anything.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example leader_only
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use bellwether::election::{CommitError, Election, Lifetime, Op};

/// The expected output.
pub(crate) const EXPECTED: &str = "\
blue is the leader
blue stored report-1
blue stepped down
green is the leader, under a later epoch
blue cannot store report-2: it is not the leader
green stored report-2
green closed
blue is the leader again
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

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or no leader is elected in time.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let mut story = String::new();
    let mut tell = |line: &str| story += &format!("{line}\n");

    let blue = replica(zookeeper, "blue").await?;
    let first = leads(&blue).await?;
    let green = replica(zookeeper, "green").await?;
    assert!(blue.is_leader() && !green.is_leader());
    tell("blue is the leader");
    store(&blue, first, "report-1").await?;
    tell("blue stored report-1");

    blue.step_down().await;
    tell("blue stepped down");
    let second = leads(&green).await?;
    assert!(second > first);
    tell("green is the leader, under a later epoch");

    // A decision under an old epoch is refused, here before it is sent. If it were already on its way, ZooKeeper
    // would reject it because of the fence.
    let refused = store(&blue, first, "report-2").await;
    assert_eq!(refused, Err(CommitError::NotLeader(first)));
    tell("blue cannot store report-2: it is not the leader");
    store(&green, second, "report-2").await?;
    tell("green stored report-2");

    blue.stand();
    green.close().await;
    tell("green closed");
    assert!(leads(&blue).await? > second);
    tell("blue is the leader again");
    let epoch = blue.leadership().term().map(|term| term.epoch());
    assert_eq!(epoch, blue.fence().map(|fence| fence.version));
    blue.close().await;
    Ok(story)
}

async fn replica(zookeeper: &str, name: &str) -> Result<Election, Box<dyn Error>> {
    let replica = Election::builder(zookeeper).node_id(name).session_timeout(Duration::from_secs(4));
    Ok(replica.start().await?)
}

/// Waits until the replica is the leader and returns the epoch.
async fn leads(replica: &Election) -> Result<i32, Box<dyn Error>> {
    const SOON: Duration = Duration::from_secs(20);
    Ok(tokio::time::timeout(SOON, replica.watch().active()).await?)
}

async fn store(replica: &Election, epoch: i32, report: &str) -> Result<(), CommitError> {
    // An ephemeral znode of the service: it is removed with the replica, so that two runs do not conflict.
    let path = format!("/{report}");
    let create = Op::Create { path, data: b"42".to_vec(), lifetime: Lifetime::Ephemeral };
    replica.commit(epoch, vec![create]).await
}
