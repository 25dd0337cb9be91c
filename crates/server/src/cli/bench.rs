//! `bellwether bench`.

use std::time::Duration;

use bellwether::client::{ConnectError, Unavailable};
use bellwether::{Client, ConnectString, DurationText};
use bellwether_bench::http::{self, HttpConfig};
use bellwether_bench::scenario::{self, Scenario, ScenarioConfig};
use bellwether_bench::sustained::{self, SustainedConfig};
use bellwether_bench::{BenchConfig, BenchError, Progress};
use clap::{Args, ValueEnum};
use serde::Serialize;

mod table;

use table::{http_rows, part, rows, sustained_rows, takeover};

use super::Global;
use super::exit::{Failure, Kind};
use super::input;
use super::output::{Format, Output};

/// Measure jobs per second and latency, compared with the bare ZooKeeper requests that each job needs.
///
/// The benchmark leaves hundreds of thousands of znodes under the chroot: use a disposable ZooKeeper server.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// What to measure.
    #[arg(value_enum, default_value_t)]
    pub(crate) scenario: What,
    /// Size of the scenario: number of waiting jobs, group members, lanes, schedules or event streams. The default
    /// depends on the scenario.
    #[arg(long, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub(crate) size: Option<u32>,
    /// Number of jobs under load.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pub(crate) jobs: u32,
    /// Number of concurrent callers, for HTTP and for the native client.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=128))]
    pub(crate) callers: u32,
    /// Number of jobs that are submitted one at a time.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub(crate) idle_jobs: u32,
    /// Number of workers, each with its own session.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) workers: u32,
    /// Slots per worker.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=i64::from(bellwether::node::MAX_SLOTS)))]
    pub(crate) slots: u32,
    /// Number of waiting jobs while the memory of a node is measured; 0 skips the measurement.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) pending: u32,
    /// Duration of the steady load of `sustained`, from 10s to 1d.
    #[arg(long, default_value = "5m", value_parser = steady, value_name = "DURATION")]
    pub(crate) duration: Duration,
}

/// Bounds of the steady load: it has ten parts, and a part has several rounds of jobs.
fn steady(text: &str) -> Result<Duration, String> {
    let given = input::duration(text)?;
    let (least, most) = (Duration::from_secs(10), Duration::from_secs(86_400));
    DurationText(given).within(least, most).map_err(|bounds| format!("the duration must be {bounds}"))?;
    Ok(given)
}

/// The scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum What {
    /// Throughput under load and latency of single jobs, compared with the bare ZooKeeper requests that each job needs.
    #[default]
    Load,
    /// Steady load for minutes, with results that are read and records that are removed, compared with a short run.
    Sustained,
    /// A backlog of 100,000 waiting jobs of all priorities, compared with 1,000, and the time in which the next leader starts a job.
    Backlog,
    /// 10,000 lanes.
    Lanes,
    /// One group of 100,000 members with its join.
    Group,
    /// 10,000 schedules that tick every ten seconds.
    Schedules,
    /// 1,000,000 jobs that start in a month and other jobs that run at the same time, before and after a change of
    /// leader.
    Later,
    /// 50,000 jobs of each of several loads: plain, 5 % fail, with ids, with lanes, 20 kinds and 10 priorities, large payloads, one at a
    /// time.
    Mixed,
    /// Submissions over HTTP compared with the native client, remote workers compared with workers in the process, and
    /// 10,000 connected event streams.
    Http,
}

impl What {
    fn scenario(self) -> Option<Scenario> {
        match self {
            Self::Load | Self::Sustained | Self::Http => None,
            Self::Backlog => Some(Scenario::Backlog),
            Self::Lanes => Some(Scenario::Lanes),
            Self::Group => Some(Scenario::Group),
            Self::Schedules => Some(Scenario::Schedules),
            Self::Later => Some(Scenario::Later),
            Self::Mixed => Some(Scenario::Mixed),
        }
    }
}

pub(crate) async fn run(global: &Global, output: Output, bench: Bench) -> Result<(), Failure> {
    global.access.none("bench")?;
    let zookeeper = global.zookeeper()?;
    let zookeeper = zookeeper.parse::<ConnectString>().map_err(|error| Failure::usage(error.to_string()))?;
    // Reports a wrong address before the measurement starts.
    reach(&zookeeper, global.deadline).await?;
    if let Some(scenario) = bench.scenario.scenario() {
        let size = bench.size.map_or(scenario.usual(), |size| size as usize);
        let (workers, slots) = (bench.workers as usize, bench.slots);
        let config = ScenarioConfig { zookeeper, scenario, size, workers, slots };
        return measure(global, output, &config).await;
    }
    if bench.scenario == What::Http {
        let config = HttpConfig {
            zookeeper,
            jobs: bench.jobs as usize,
            callers: bench.callers as usize,
            streams: bench.size.map_or(http::USUAL_STREAMS, |size| size as usize),
        };
        let report = measured(global, config.jobs, |show| http::run(&config, show)).await?;
        return figures(output, &report, http_rows);
    }
    if bench.scenario == What::Sustained {
        let (workers, slots) = (bench.workers as usize, bench.slots);
        let jobs = bench.jobs as usize;
        let config = SustainedConfig { zookeeper, jobs, workers, slots, duration: bench.duration };
        let report = measured(global, config.jobs, |show| sustained::run(&config, show)).await?;
        return figures(output, &report, sustained_rows);
    }
    let config = BenchConfig {
        zookeeper,
        jobs: bench.jobs as usize,
        idle_jobs: bench.idle_jobs as usize,
        workers: bench.workers as usize,
        slots: bench.slots,
        pending: bench.pending as usize,
    };
    let report = measured(global, config.jobs, |show| bellwether_bench::run(&config, show)).await?;
    figures(output, &report, rows)
}

/// Runs a benchmark with a progress bar. `items` is the number of items until the run says another one.
async fn measured<R, F: Future<Output = Result<R, BenchError>>>(
    global: &Global,
    items: usize,
    run: impl FnOnce(Box<dyn FnMut(Progress) + Send>) -> F,
) -> Result<R, Failure> {
    let bar = global.progress("starting", items);
    let shown = bar.clone();
    let report = run(Box::new(move |now: Progress| {
        shown.set_message(now.what);
        shown.set_length(now.of as u64);
        shown.set_position(now.done as u64);
    }));
    let report = report.await;
    bar.finish_and_clear();
    report.map_err(|error| Failure::new(Kind::Failed, error.to_string()))
}

/// Prints a report, as a table with a row for each figure or as JSON.
fn figures<R: Serialize>(
    output: Output,
    report: &R,
    rows: impl FnOnce(&R) -> Vec<[String; 3]>,
) -> Result<(), Failure> {
    match output.format {
        Format::Json => output.json(report),
        Format::Table => output.rows(["MEASURED", "VALUE", "DESCRIPTION"], rows(report)),
    }
}

/// Fails when no server answers. The namespaces of the benchmark are created below this one, which need not exist.
async fn reach(zookeeper: &ConnectString, within: Duration) -> Result<(), Failure> {
    let client = Client::builder(zookeeper.to_string()).create_namespace(false).deadline(within);
    match client.connect().await {
        Ok(client) => client.close().await,
        Err(ConnectError::Unavailable(Unavailable::Refused(_))) => {}
        Err(error) => return Err(Failure::new(Kind::Unreachable, error.to_string())),
    }
    Ok(())
}

async fn measure(global: &Global, output: Output, config: &ScenarioConfig) -> Result<(), Failure> {
    let report = measured(global, config.size, |show| scenario::run(config, show)).await?;
    match output.format {
        Format::Json => output.json(&report),
        Format::Table => {
            let header =
                ["PART", "JOBS/S", "JOBS", "OPERATIONS PER JOB", "REQUESTS PER JOB", "LEADER MEMORY"];
            output.rows(header, report.parts.iter().map(part).collect())?;
            let takeovers = report.parts.iter().filter_map(takeover);
            let ratio = report.ratio.map(|ratio| format!("ratio: {ratio:.2}"));
            ratio.into_iter().chain(takeovers).try_for_each(|line| output.text(&line))
        }
    }
}
