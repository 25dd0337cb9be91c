//! Reconciles a system with a job that submits a sub-job for each record set. All nodes work on the sub-jobs, then
//! their join runs, then the finished handler of the parent.
//!
//! Each system is in turn a member of a group of two, so the books are closed once both systems, with all of their
//! sub-jobs, are done.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example sub_jobs
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether::handler::with_state;
use bellwether::{Client, Handlers, JobKind, JoinKind, Node, ParentKind};

const SOON: Duration = Duration::from_secs(60);
const SYSTEMS: [&str; 2] = ["x", "y"];
const RECORD_SETS: u32 = 10;

/// The expected output.
pub(crate) const EXPECTED: &str = "\
x: 10 record sets, 45 differences
y: 10 record sets, 45 differences
books closed: 2 systems
";

/// Reconciles one system.
struct System;

impl JobKind for System {
    const NAME: &'static str = "recon-parent";
    type Payload = String;
    type Result = String;
}

impl JoinKind for System {
    type Joined = ();
}

impl ParentKind for System {
    type SubJob = RecordSet;
    type Finished = ();
}

/// Compares one record set. Its result is the number of differences.
struct RecordSet;

impl JobKind for RecordSet {
    const NAME: &'static str = "recon-record-set";
    type Payload = u32;
    type Result = u32;
}

impl JoinKind for RecordSet {
    /// The numbers of record sets and of differences.
    type Joined = (u32, u32);
}

/// The lines of output, from all nodes.
type Log = Arc<Mutex<Vec<String>>>;

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or the group is not done in time.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let log = Log::default();
    let mut nodes = Vec::new();
    for name in ["one", "two", "three"] {
        nodes.push(Node::builder(zookeeper).node_id(name).handlers(handlers(&log)).start().await?);
    }
    let client = Client::connect(zookeeper).await?;
    let group = client.group(System::group("november").total(2)).await?;
    for (number, system) in (0..).zip(SYSTEMS) {
        group.submit(number, System::job(&system.to_owned())).await?;
    }
    group.wait(SOON).await?;
    client.close().await;
    for node in nodes {
        node.stop().await;
    }
    let mut lines = log.lock().map_err(|_| "a handler panicked")?.clone();
    // The two systems end in any order, and the books are closed after both.
    if let Some((_, systems)) = lines.split_last_mut() {
        systems.sort();
    }
    Ok(lines.iter().map(|line| format!("{line}\n")).collect())
}

fn handlers(log: &Log) -> Handlers {
    let shared = with_state(Arc::clone(log));
    let note = |log: &Log, line: String| log.lock().map(|mut log| log.push(line)).is_ok();
    Handlers::new()
        .kind::<System>(|job, system| async move {
            // A second attempt finds the group of the first, and the members by their numbers.
            let sets = job.sub_jobs::<RecordSet>().finished(true).open().await?;
            for set in 0..RECORD_SETS {
                sets.submit(set, RecordSet::job(&set)).await?;
            }
            Ok(system)
        })
        .kind::<RecordSet>(|_, set| async move { Ok(set) })
        .join::<RecordSet>(|_, mut sets| async move {
            let (mut count, mut differences) = (0_u32, 0_u32);
            while let Some(set) = sets.next().await? {
                count += 1;
                differences += set.into_result()?;
            }
            Ok((count, differences))
        })
        .add(shared.finished::<System>(move |log, _, recon| async move {
            let system = recon.parent_result()?;
            let (sets, differences) = recon.join_result()?.unwrap_or_default();
            note(&log, format!("{system}: {sets} record sets, {differences} differences"));
            Ok(())
        }))
        .add(shared.join::<System>(move |log, _, mut systems| async move {
            let mut count = 0_u32;
            while let Some(system) = systems.next().await? {
                count += u32::from(system.succeeded());
            }
            note(&log, format!("books closed: {count} systems"));
            Ok(())
        }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let story = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("sub-jobs"))).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}
