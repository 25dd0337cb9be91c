//! Scenarios: the cost of features at scale.
//!
//! The leader runs in its own process, so that its memory and its requests can be measured. Workers and client run in
//! this process. Requests are counted over all of them.

mod backlog;
mod group;
mod lanes;
mod later;
mod mixed;
mod schedules;
mod setup;

use std::time::Duration;

use bellwether::ConnectString;
use serde::Serialize;

use super::{BenchError, Progress, failed, load};

/// A scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scenario {
    /// Waiting jobs of all priorities, with submissions at the rate of completion: few, many, and few again. In each part a kill
    /// of the leader follows.
    Backlog,
    /// Lanes with five jobs each.
    Lanes,
    /// One group with its join.
    Group,
    /// Schedules that tick every ten seconds.
    Schedules,
    /// Jobs that start in a month and other jobs that run at the same time, before and after a change of leader.
    Later,
    /// Loads of different jobs, one after the other, with results that are read.
    Mixed,
}

/// The configuration of a run.
#[derive(Debug, Clone)]
pub struct ScenarioConfig {
    /// The servers, and a chroot under which a namespace per part is created.
    pub zookeeper: ConnectString,
    /// The scenario.
    pub scenario: Scenario,
    /// Size of the scenario: waiting jobs, lanes, members or schedules.
    pub size: usize,
    /// Number of workers, each a node with its own session.
    pub workers: usize,
    /// Slots of each worker.
    pub slots: u32,
}

impl Scenario {
    /// Returns the default size.
    #[must_use]
    pub fn usual(self) -> usize {
        match self {
            Self::Backlog | Self::Group => 100_000,
            Self::Lanes | Self::Schedules => 10_000,
            Self::Later => 1_000_000,
            Self::Mixed => 50_000,
        }
    }
}

/// The results of a run.
#[derive(Debug, Clone, Serialize)]
pub struct ScenarioReport {
    /// The scenario.
    pub scenario: Scenario,
    /// Its size.
    pub size: usize,
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// For a backlog, jobs per second with many waiting jobs divided by that with few; for schedules, ticks per second
    /// divided by the scheduled rate.
    pub ratio: Option<f64>,
}

/// A part of a scenario.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// Name of the part.
    pub name: String,
    /// Jobs that ran during the measurement.
    pub jobs: usize,
    /// Duration of the measurement.
    pub seconds: f64,
    /// Jobs per second.
    pub jobs_per_second: f64,
    /// Requests to ZooKeeper per job, of all processes together.
    pub requests_per_job: f64,
    /// Znode operations per job, reads and writes, of all processes together.
    pub operations_per_job: f64,
    /// Resident bytes of the leader before there were any jobs.
    pub leader_bytes_before: u64,
    /// Resident bytes of the leader when it knew all waiting jobs; for a group, when its join ran; for delayed jobs,
    /// when the other jobs had run.
    pub leader_bytes: u64,
    /// For a backlog: how the next leader took over after a kill, while the jobs waited.
    pub takeover: Option<Takeover>,
}

/// The start of a leader whose predecessor was killed.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Takeover {
    /// Time from its claim to the start of the first job.
    pub first_run_ms: f64,
    /// Its resident bytes after that.
    pub leader_bytes: u64,
}

/// Longer than any useful run.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// Runs a scenario. It creates namespaces under the chroot and does not delete them: use a disposable server.
///
/// Installs this process's metrics recorder to count requests, so a process can run only one benchmark.
///
/// # Errors
/// If ZooKeeper cannot be reached, or a job is refused.
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
        Scenario::Mixed => mixed::measure(config, run, &counts, &mut progress).await,
    }
    .map_err(failed("measuring the scenario"))?;
    Ok(ScenarioReport { scenario: config.scenario, size: config.size, parts, ratio })
}
