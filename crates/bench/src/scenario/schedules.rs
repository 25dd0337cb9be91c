//! Many schedules, each with a tick every ten seconds, spread evenly over them.

use std::time::{Duration, SystemTime};

use futures::stream::{self, StreamExt, TryStreamExt};
use uuid::Uuid;

use super::super::count;
use super::super::load::Counts;
use super::setup::Setup;
use super::{Part, Progress, ScenarioConfig};
use crate::cluster::job;
use bellwether::client::Schedule;
use bellwether::error::chain;

/// Interval of a schedule.
const EVERY: Duration = Duration::from_secs(10);

/// Ticks of each schedule that are measured.
const TICKS: usize = 3;

/// Schedules that are added concurrently.
const AT_ONCE: usize = 64;

pub(super) async fn measure(
    config: &ScenarioConfig,
    run: Uuid,
    counts: &Counts,
    progress: &mut impl FnMut(Progress),
) -> Result<(Vec<Part>, Option<f64>), String> {
    let mut setup = Setup::open(config, run, "schedules", counts).await?;
    setup.work(config).await?;
    let schedules = setup.client.schedules();
    // The first ticks are after the last schedule is added.
    let begin = SystemTime::now() + Duration::from_secs(5 + config.size as u64 / 500);
    let made = (0..config.size).map(|n| {
        let schedules = schedules.clone();
        async move {
            let offset = EVERY.mul_f64(count(n % 1_000) / 1_000.0);
            let schedule = Schedule::every(format!("bench-{n}"), EVERY, job(n)).anchor(begin + offset);
            schedules.add(&schedule).await.map(|_| ()).map_err(|error| chain(&error))
        }
    });
    let mut made = stream::iter(made).buffer_unordered(AT_ONCE);
    let mut done = 0;
    while let Some(()) = made.try_next().await? {
        done += 1;
        progress(Progress { what: "making schedules".into(), of: config.size, done });
    }
    let (before, jobs) = (setup.runs(), TICKS * config.size);
    setup.ran(before + 1).await?;
    let clock = setup.start().await?;
    while setup.runs() < before + jobs {
        setup.ran(setup.runs() + 1).await?;
        progress(Progress { what: "ticks".into(), of: jobs, done: setup.runs() - before });
    }
    let name = format!("{} schedules, a tick each {} s", config.size, EVERY.as_secs());
    let measured = setup.stop(name, &clock).await?;
    setup.take_down().await;
    // Below 1 the leader falls behind.
    let due = count(config.size) / EVERY.as_secs_f64();
    let ratio = measured.jobs_per_second / due;
    Ok((vec![measured], Some(ratio)))
}
