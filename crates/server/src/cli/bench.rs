//! `bellwether bench`.

use std::time::Duration;

use crate::bench::http::{self, HttpConfig, HttpReport, RemoteShape};
use crate::bench::scenario::{self, Part, Scenario, ScenarioConfig};
use crate::bench::{BenchConfig, BenchReport, Progress, Step};
use bellwether::client::{ConnectError, Unavailable};
use bellwether::{Client, ConnectString};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;

use super::Global;
use super::exit::{Failure, Kind};
use super::output::{Format, Output};

/// Measure jobs per second and latency, compared with the bare ZooKeeper writes that each job needs.
///
/// The benchmark leaves hundreds of thousands of znodes under the chroot: use a disposable ZooKeeper server.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// What to measure.
    #[arg(value_enum, default_value_t)]
    pub(crate) scenario: What,
    /// Size of the scenario: number of waiting jobs, group members, lanes, schedules or event streams. The default
    /// depends on the scenario.
    #[arg(long, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
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
}

/// The scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum What {
    /// Throughput under load and latency of single jobs, compared with the bare ZooKeeper writes that each job needs.
    #[default]
    Load,
    /// A backlog of 100,000 waiting jobs of all priorities, compared with 1,000.
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
    /// Submissions over HTTP compared with the native client, remote workers compared with workers in the process, and
    /// 10,000 connected event streams.
    Http,
}

impl What {
    fn scenario(self) -> Option<Scenario> {
        match self {
            Self::Load | Self::Http => None,
            Self::Backlog => Some(Scenario::Backlog),
            Self::Lanes => Some(Scenario::Lanes),
            Self::Group => Some(Scenario::Group),
            Self::Schedules => Some(Scenario::Schedules),
            Self::Later => Some(Scenario::Later),
        }
    }
}

pub(crate) async fn run(global: &Global, output: Output, bench: Bench) -> Result<(), Failure> {
    global.access.none("bench")?;
    let zookeeper = global.zookeeper()?;
    let zookeeper = zookeeper.parse::<ConnectString>().map_err(|error| Failure::usage(error.to_string()))?;
    // Reports a wrong address before the measurement starts.
    reach(&zookeeper, global.timeout).await?;
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
        return over_http(global, output, &config).await;
    }
    let config = BenchConfig {
        zookeeper,
        jobs: bench.jobs as usize,
        idle_jobs: bench.idle_jobs as usize,
        workers: bench.workers as usize,
        slots: bench.slots,
        pending: bench.pending as usize,
    };
    let bar = global.progress("bare writes", config.jobs);
    let report = crate::bench::run(&config, |step| show(&bar, &config, step)).await;
    bar.finish_and_clear();
    let report = report.map_err(|error| Failure::new(Kind::Failed, error.to_string()))?;
    match output.format {
        Format::Json => output.json(&report),
        Format::Table => output.rows(["MEASURED", "VALUE", "DESCRIPTION"], rows(&report)),
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
    let bar = global.progress("starting", config.size);
    let report = scenario::run(config, |now| step(&bar, now)).await;
    bar.finish_and_clear();
    let report = report.map_err(|error| Failure::new(Kind::Failed, error.to_string()))?;
    match output.format {
        Format::Json => output.json(&report),
        Format::Table => {
            let header =
                ["PART", "JOBS/S", "JOBS", "OPERATIONS PER JOB", "REQUESTS PER JOB", "LEADER MEMORY"];
            output.rows(header, report.parts.iter().map(part).collect())?;
            match report.ratio {
                Some(ratio) => output.text(&format!("ratio: {ratio:.2}")),
                None => Ok(()),
            }
        }
    }
}

async fn over_http(global: &Global, output: Output, config: &HttpConfig) -> Result<(), Failure> {
    let bar = global.progress("starting", config.jobs);
    let report = http::run(config, |now| step(&bar, now)).await;
    bar.finish_and_clear();
    let report = report.map_err(|error| Failure::new(Kind::Failed, error.to_string()))?;
    match output.format {
        Format::Json => output.json(&report),
        Format::Table => output.rows(["MEASURED", "VALUE", "DESCRIPTION"], http_rows(&report)),
    }
}

fn http_rows(report: &HttpReport) -> Vec<[String; 3]> {
    let row = |name: &str, value: String, what: &str| [name.to_owned(), value, what.to_owned()];
    let HttpReport { jobs, callers, native, http, ratio, remote, streams } = report;
    let what = format!("{jobs} jobs each from {callers} callers, one at a time per caller");
    let (connected, before) = (streams.streams, streams.bytes_before / (1024 * 1024));
    let connected = format!("resident, for each of {connected} event streams; {before} MiB without streams");
    let mut rows = vec![
        row("native", format!("{:.0} jobs/s", native.jobs_per_second), &what),
        row("native p50, p99", format!("{:.2} ms, {:.2} ms", native.p50_ms, native.p99_ms), ""),
        row("HTTP", format!("{:.0} jobs/s", http.jobs_per_second), "the same over HTTP with keep-alive"),
        row("HTTP p50, p99", format!("{:.2} ms, {:.2} ms", http.p50_ms, http.p99_ms), ""),
        row("ratio", format!("{ratio:.2}"), "HTTP / native"),
        row("stream", format!("{:.0} bytes", streams.bytes_per_stream), &connected),
        row("stream after an event", format!("{:.0} bytes", streams.bytes_per_stream_after_events), ""),
        row("last event", format!("{:.0} ms", streams.last_event_ms), "from submission to the last stream"),
    ];
    rows.extend(remote.shapes.iter().flat_map(|shape| remote_rows(remote.jobs, shape)));
    rows
}

fn remote_rows(jobs: usize, shape: &RemoteShape) -> [[String; 3]; 3] {
    let RemoteShape { workers, slots, in_process, remote, ratio } = shape;
    let row =
        |name: &str, value: String, what: String| [format!("{name}, {workers} × {slots} slots"), value, what];
    let cpu = in_process.cpu_us_per_job;
    let (all, gateway) = (remote.cpu_us_per_job, remote.gateway_cpu_us_per_job);
    [
        row(
            "workers",
            format!("{:.0} jobs/s", in_process.jobs_per_second),
            format!(
                "{jobs} jobs, workers in this process; {cpu:.0} µs of processor time per job without the server"
            ),
        ),
        row(
            "remote workers",
            format!("{:.0} jobs/s", remote.jobs_per_second),
            format!(
                "the same through one gateway; {all:.0} µs per job, {gateway:.0} µs of them the gateway's"
            ),
        ),
        row("ratio", format!("{ratio:.2}"), "remote / in this process".to_owned()),
    ]
}

fn part(part: &Part) -> [String; 6] {
    const MIB: u64 = 1024 * 1024;
    let (bytes, before) = (part.leader_bytes / MIB, part.leader_bytes_before / MIB);
    [
        part.name.clone(),
        format!("{:.0}", part.jobs_per_second),
        part.jobs.to_string(),
        format!("{:.1}", part.operations_per_job),
        format!("{:.3}", part.requests_per_job),
        format!("{bytes} MiB, {before} before"),
    ]
}

fn step(bar: &ProgressBar, now: Progress) {
    bar.set_message(now.what);
    bar.set_length(now.of as u64);
    bar.set_position(now.done as u64);
}

fn show(bar: &ProgressBar, config: &BenchConfig, step: Step) {
    let (what, length, position) = match step {
        Step::Baseline => ("bare writes", config.jobs, 0),
        Step::Load(over) => ("jobs under load", config.jobs, over),
        Step::Idle(over) => ("jobs one at a time", config.idle_jobs, over),
        Step::Memory => ("memory of waiting jobs", config.pending, 0),
    };
    bar.set_message(what);
    bar.set_length(length as u64);
    bar.set_position(position as u64);
}

fn rows(report: &BenchReport) -> Vec<[String; 3]> {
    let row = |name: &str, value: String, what: &str| [name.to_owned(), value, what.to_owned()];
    let jobs = format!("{} jobs, {} workers of {} slots", report.jobs, report.workers, report.slots);
    let mut rows = vec![
        row(
            "baseline",
            format!("{:.0} jobs/s", report.baseline_jobs_per_second),
            "bare ZooKeeper transactions",
        ),
        row("bellwether", format!("{:.0} jobs/s", report.jobs_per_second), &jobs),
        row("ratio", format!("{:.2}", report.ratio), "bellwether / baseline"),
        row("transactions", format!("{:.3} per job", report.transactions_per_job), "multis of all processes"),
        row(
            "requests",
            format!("{:.3} per job", report.requests_per_job),
            "reads and writes of all processes",
        ),
        row(
            "operations",
            format!("{:.1} per job", report.operations_per_job),
            "znode reads and writes in these requests",
        ),
        row(
            "idle p50",
            format!("{:.2} ms", report.idle_p50_ms),
            "submit until result is read, one at a time",
        ),
        row("idle p99", format!("{:.2} ms", report.idle_p99_ms), ""),
        row("three writes p50", format!("{:.2} ms", report.three_writes_p50_ms), "bare writes, in sequence"),
        row("idle ratio", format!("{:.2}", report.idle_ratio), "idle p50 / three writes p50"),
    ];
    if let Some(memory) = report.pending_memory {
        let what = format!("resident, leader and worker, {} waiting jobs", memory.jobs);
        rows.push(row("memory", format!("{:.0} bytes per job", memory.bytes_per_job), &what));
    }
    rows
}
