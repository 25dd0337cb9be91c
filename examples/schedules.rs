//! A report every second: one job per tick, on any node, and no jobs for ticks during a pause.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example schedules
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::{Duration, SystemTime};

use bellwether::client::{Added, ScheduleRecordView};
use bellwether::schedule::{Misfire, Overlap, SkipReason, instant};
use bellwether::{Client, Handlers, Job, Node, Schedule, ScheduleId, State};

const SECOND: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(30);

/// The expected output.
pub(crate) const EXPECTED: &str = "\
2026-03-28T01:30:00Z
2026-03-29T01:00:00Z
2026-03-30T00:30:00Z
two nodes start with the schedule: it exists once
3 ticks, one second apart, have 3 jobs that succeeded
triggered while it is paused: Succeeded
it continues, and the missed ticks are recorded as skipped: Pause
";

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or a job does not end.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let mut story = String::new();

    // In the night when clocks go forward in Berlin, 02:30 does not exist: the tick is at the end of the gap.
    let nightly = Schedule::cron("nightly", "30 2 * * *", Job::new("report", &"nightly"))
        .zone("Europe/Berlin")
        .overlap(Overlap::Forbid);
    let before = SystemTime::UNIX_EPOCH + Duration::from_secs(1_774_656_000);
    for tick in nightly.preview(before, 3)? {
        story += &format!("{}\n", instant(tick));
    }

    let beat = Schedule::every("beat", SECOND, Job::new("report", &"beat")).misfire(Misfire::Once);
    let mut nodes = Vec::new();
    for name in ["one", "two"] {
        let handlers = Handlers::new().job("report", |_, what: String| async move { Ok(what.len()) });
        nodes.push(
            Node::builder(zookeeper).node_id(name).handlers(handlers).schedule(beat.clone()).start().await?,
        );
    }
    let client = Client::connect(zookeeper).await?;
    let (schedules, id) = (client.schedules(), ScheduleId::new("beat")?);
    let made =
        schedules.add(&beat).await? == Added::Unchanged || schedules.list(None, 10).await?.items.len() == 1;
    story += if made { "two nodes start with the schedule: it exists once\n" } else { "more than one\n" };

    let three = ticked(&client, &id, 3).await?;
    let first = three.when.ticks_after(three.created_at, 1)?[0];
    let ticks = (0..3).map(|n| first + n * SECOND).collect::<Vec<_>>();
    let mut succeeded = 0;
    for tick in &ticks {
        let job = client.wait(&bellwether::schedule::tick_id(&id, *tick), SOON).await?;
        succeeded += u32::from(job.state == State::Succeeded);
    }
    story += &format!("3 ticks, one second apart, have {succeeded} jobs that succeeded\n");

    let paused = schedules.pause(&id).await?.record?;
    let job = schedules.trigger(&id).await?.wait(SOON).await?;
    story += &format!("triggered while it is paused: {:?}\n", job.state);
    // Long enough to miss a tick or two.
    tokio::time::sleep(2 * SECOND).await;
    let resumed = schedules.resume(&id).await?.record?;
    let skipped = resumed.last_skipped.ok_or("no tick was skipped")?;
    ticked(&client, &id, paused.ticked + 1).await?;
    story += match skipped.reason {
        SkipReason::Pause => "it continues, and the missed ticks are recorded as skipped: Pause\n",
        _ => "something else\n",
    };

    schedules.remove(&id).await?;
    client.close().await;
    for node in nodes {
        node.stop().await;
    }
    Ok(story)
}

/// Waits until the schedule has made this number of ticks.
async fn ticked(client: &Client, id: &ScheduleId, ticks: u64) -> Result<ScheduleRecordView, Box<dyn Error>> {
    tokio::time::timeout(SOON, async {
        loop {
            let record = client.schedules().get(id).await?.record?;
            if record.ticked >= ticks {
                return Ok(record);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await?
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let story = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("schedules"))).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}
