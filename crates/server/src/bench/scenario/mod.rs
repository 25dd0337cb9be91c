//! Scenarios: what the features of jobs cost when there is much of something.
//!
//! The leader is a process of its own, so that its memory and its requests are its alone. Workers and client are in this
//! process. What is counted is what all of them sent to ZooKeeper.

mod backlog;
mod group;
mod lanes;
mod later;
mod rig;
mod schedules;

use std::time::Duration;

use bellwether::ConnectString;
use serde::Serialize;

use super::{BenchError, failed, load};

/// What there is much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scenario {
    /// Jobs that wait, of all priorities, while as many are submitted as are run: few wait, many, and few again.
    Backlog,
    /// Lanes with five jobs each.
    Lanes,
    /// One group, with its join.
    Group,
    /// Schedules that tick every ten seconds.
    Schedules,
    /// Jobs that are due in a month, and others that run beside them, before and after a change of leader.
    Later,
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct ScenarioConfig {
    /// The servers, and a chroot under which a namespace per part is made.
    pub zookeeper: ConnectString,
    /// Of what.
    pub scenario: Scenario,
    /// How many of what it is about.
    pub size: usize,
    /// Workers, each a node of its own session.
    pub workers: usize,
    /// Slots of each.
    pub slots: u32,
}

impl Scenario {
    /// How many of what it is about, unless said otherwise.
    #[must_use]
    pub fn usual(self) -> usize {
        match self {
            Self::Backlog | Self::Group => 100_000,
            Self::Lanes | Self::Schedules => 10_000,
            Self::Later => 1_000_000,
        }
    }
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct ScenarioReport {
    /// Of what.
    pub scenario: Scenario,
    /// How many of it.
    pub size: usize,
    /// One after the other.
    pub parts: Vec<Part>,
    /// Of a backlog, jobs per second with many over that with few; of schedules, ticks per second over those that were due.
    pub ratio: Option<f64>,
}

/// A part of a scenario.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// What it is.
    pub name: String,
    /// Jobs that were run while it was measured.
    pub jobs: usize,
    /// How long that took.
    pub seconds: f64,
    /// Jobs per second.
    pub jobs_per_second: f64,
    /// Requests to ZooKeeper per job, of all parties together.
    pub requests_per_job: f64,
    /// Znode operations per job, reads and writes, of all parties together.
    pub operations_per_job: f64,
    /// Resident bytes of the leader before there were any jobs.
    pub leader_bytes_before: u64,
    /// Resident bytes of the leader when it knew of all that wait; of a group, when its join ran; of jobs that are due later,
    /// when the others had run.
    pub leader_bytes: u64,
}

/// What the scenario does now, for a progress bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What is done.
    pub what: String,
    /// How much of it there is.
    pub of: usize,
    /// How much is done.
    pub done: usize,
}

/// Longer than any run that is of use.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// Measures. Makes namespaces under the chroot and leaves them there: give it a throw-away server.
///
/// Installs this process's metrics recorder, to count requests; a process runs one benchmark.
///
/// # Errors
/// When ZooKeeper cannot be reached, or a job is refused.
pub async fn run(
    config: &ScenarioConfig,
    mut progress: impl FnMut(Progress),
) -> Result<ScenarioReport, BenchError> {
    let counts = load::Counts::install().map_err(failed("installing the recorder"))?;
    let run = uuid::Uuid::now_v7();
    let (parts, ratio) = match config.scenario {
        Scenario::Backlog => backlog::measure(config, run, &counts, &mut progress).await,
        Scenario::Lanes => lanes::measure(config, run, &counts, &mut progress).await,
        Scenario::Group => group::measure(config, run, &counts, &mut progress).await,
        Scenario::Schedules => schedules::measure(config, run, &counts, &mut progress).await,
        Scenario::Later => later::measure(config, run, &counts, &mut progress).await,
    }
    .map_err(failed("measuring the scenario"))?;
    Ok(ScenarioReport { scenario: config.scenario, size: config.size, parts, ratio })
}
