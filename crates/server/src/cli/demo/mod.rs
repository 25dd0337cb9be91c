//! A cluster on this machine that loses its leader and a worker while it runs jobs, and a report on the jobs.
//!
//! ```text
//! keeper, or a    ─┬─ node-1 ┐
//! ZooKeeper that   ├─ node-2 ├ processes, each candidate and worker; two are killed, the first is restarted
//! --server names   ├─ node-3 ┘
//!                  └─ this process: submits, counts, kills, reports
//! ```

mod cluster;
mod node;
mod report;

use std::process::Command;
use std::time::{Duration, Instant};

use bellwether::client::WaitError;
use bellwether::{Client, Job, JobView};
use bellwether_keeper::server::{Keeper, Storage};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::Global;
use super::exit::Failure;
use super::output::{Format, Output};
use cluster::Cluster;
use report::Report;

/// Tick of the keeper. It detects a dead node within the node's session timeout (1 s or more) and one tick.
const TICK: Duration = Duration::from_millis(500);

/// Limit for each thousand jobs, longer than any backoff or recovery in the demo.
const PATIENCE: Duration = Duration::from_secs(60);

/// With fewer jobs, all have ended before a node can be killed.
const FEWEST: u64 = 30;

/// Options of `bellwether demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// How many jobs to submit.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(FEWEST..=1_000_000))]
    jobs: u64,
    /// Use this ZooKeeper instead of a keeper: HOST:PORT[,HOST:PORT…][/CHROOT]. The demo creates its own namespace
    /// there and does not delete it.
    #[arg(long, value_name = "ADDRESSES")]
    server: Option<String>,
}

/// Runs the demo until its end or an interruption. Nodes and keeper stop when this future is dropped.
pub(crate) async fn run(global: &Global, output: Output, demo: &Demo) -> Result<(), Failure> {
    let mut term =
        signal(SignalKind::terminate()).map_err(|error| failed("cannot listen for signals", &error))?;
    tokio::select! {
        played = play(global, output, demo) => played,
        _ = tokio::signal::ctrl_c() => Err(Failure::failed("interrupted")),
        _ = term.recv() => Err(Failure::failed("terminated")),
    }
}

async fn play(global: &Global, output: Output, demo: &Demo) -> Result<(), Failure> {
    global.access.none("demo")?;
    let stage = Stage::set(demo.server.as_deref()).await?;
    let client = Client::connect(&stage.namespace).await?;
    let stories = Stories { quiet: output.format == Format::Json || global.quiet };
    let mut cluster = Cluster::start(&stage.namespace, client.clone(), stories).await?;
    stories.tell(&format!("{:<9}  {}", stage.server(), stage.namespace));
    for node in cluster.nodes() {
        stories.tell(&node.to_string());
    }

    let total = usize::try_from(demo.jobs).map_err(|error| failed("too many jobs", &error))?;
    let began = Instant::now();
    let (progress, done) = watch::channel(0);
    let bar = bar(global, demo.jobs);
    bar.set_message("submitting");
    let submitted =
        client.submit_many(jobs(total), |acknowledged| bar.set_position(acknowledged as u64)).await;
    let submitted = submitted.into_iter().map(|answer| answer.map(|job| job.id().clone()));
    let ids = submitted.collect::<Result<Vec<_>, _>>()?;
    let submitting = began.elapsed();

    bar.set_message("running");
    let patience = PATIENCE * u32::try_from(total / 1_000 + 1).unwrap_or(u32::MAX);
    let waiting = client.wait_many(&ids, patience, |over| {
        bar.set_position(over as u64);
        progress.send_replace(over);
    });
    let (answers, killed) = tokio::join!(waiting, cluster.lose_two(done, total, &bar));
    bar.finish_and_clear();
    killed?;
    let took = began.elapsed();
    let report = Report::of(total, &jobs_of(answers), &cluster, submitting, took);
    client.close().await;
    match output.format {
        Format::Table => output.text(&report.to_string())?,
        Format::Json => output.json(&report)?,
    }
    report.verdict()
}

/// The server that the nodes use.
struct Stage {
    /// Declared before its directory, because fields are dropped in order.
    keeper: Option<Keeper>,
    _data: Option<tempfile::TempDir>,
    namespace: String,
}

impl Stage {
    async fn set(server: Option<&str>) -> Result<Self, Failure> {
        // The environment's address is not used, so that the demo does not run on a production ZooKeeper by accident.
        if let Some(given) = server {
            // Jobs of an earlier demo have the same ids.
            let namespace = format!("{}/demo-{}", given.trim_end_matches('/'), uuid::Uuid::now_v7());
            return Ok(Self { keeper: None, _data: None, namespace });
        }
        let data = tempfile::Builder::new().prefix("bellwether-demo-").tempdir();
        let data = data.map_err(|error| failed("cannot create a directory for the keeper", &error))?;
        let keeper = Keeper::builder()
            .tick_time(TICK)
            .store(Storage::Directory(data.path().join("keeper")))
            .start()
            .await
            .map_err(|error| failed("the keeper did not start", &error))?;
        let namespace = format!("{}/demo", keeper.connect_string());
        Ok(Self { keeper: Some(keeper), _data: Some(data), namespace })
    }

    fn server(&self) -> &'static str {
        if self.keeper.is_some() { "keeper" } else { "ZooKeeper" }
    }
}

/// Prints events to stderr as they happen. With JSON output, only the report is printed.
#[derive(Debug, Clone, Copy)]
struct Stories {
    quiet: bool,
}

impl Stories {
    fn tell(self, line: &str) {
        if !self.quiet {
            eprintln!("{line}");
        }
    }
}

/// Half of the jobs add numbers, the other half run a program.
fn jobs(total: usize) -> impl Iterator<Item = Job> {
    let job = move |n: usize| match n % 2 {
        0 => Job::new("sum", &json!({ "first": n, "second": 1 })),
        _ => Job::new("exec", &json!({ "argv": [node::PROGRAM, n.to_string(), "+", "1"] })),
    };
    (0..total).map(move |n| job(n).id(format!("demo-{n}")))
}

/// Returns the last known view of each job, also of jobs that have not ended.
fn jobs_of(answers: Vec<Result<JobView, WaitError>>) -> Vec<JobView> {
    let views = answers.into_iter().filter_map(|answer| match answer {
        Ok(view) => Some(view),
        Err(WaitError::TimedOut { last, .. }) => last.map(|view| *view),
        Err(_) => None,
    });
    views.collect()
}

fn bar(global: &Global, total: u64) -> ProgressBar {
    if global.quiet {
        return ProgressBar::hidden();
    }
    // indicatif hides the bar when stderr is not a terminal.
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("{msg:10} {wide_bar} {human_pos}/{human_len} {per_sec} {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn failed(what: &str, error: &dyn std::error::Error) -> Failure {
    Failure::failed(format!("{what}: {}", super::exit::chain(error)))
}

/// Returns a command for a program that is killed when this process ends, if the system has `setpriv`.
fn bound(program: &std::path::Path) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|dir| dir.join("setpriv").is_file()) {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program);
        return command;
    }
    Command::new(program)
}
