//! A cluster on this machine that loses its leader and a worker while it works, and what became of the jobs.
//!
//! ```text
//! keeper, or a    ─┬─ node-1 ┐
//! ZooKeeper that   ├─ node-2 ├ processes, each candidate and worker; two are killed, the first comes back
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

/// Sessions of 1 s and more: the keeper sees that a node is dead within the nodes' timeout and one tick.
const TICK_MS: u32 = 500;

/// Longer than any backoff or recovery here, for each thousand jobs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Fewer are over before anybody can be killed.
const FEWEST: u64 = 30;

/// How many jobs.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// How many jobs to submit.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(FEWEST..=1_000_000))]
    jobs: u64,
    /// Meet in this ZooKeeper instead of a keeper: HOST:PORT[,HOST:PORT…][/CHROOT]. The demonstration makes a
    /// namespace of its own there, which stays.
    #[arg(long, value_name = "ADDRESSES")]
    server: Option<String>,
}

/// Plays until the end, or until it is interrupted: nodes and keeper end with what this future owns.
pub(crate) async fn run(global: &Global, output: Output, demo: &Demo) -> Result<(), Failure> {
    let mut term = signal(SignalKind::terminate()).map_err(|error| failed("no signals", &error))?;
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
        client.submit_many(jobs(total)?, |acknowledged| bar.set_position(acknowledged as u64)).await;
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

/// What the nodes meet in.
struct Stage {
    /// Dropped before its directory.
    keeper: Option<Keeper>,
    _data: Option<tempfile::TempDir>,
    namespace: String,
}

impl Stage {
    async fn set(server: Option<&str>) -> Result<Self, Failure> {
        // Not the environment's: nobody wants this in a production's ZooKeeper by accident.
        if let Some(given) = server {
            // Jobs of an earlier demonstration have the same names.
            let namespace = format!("{}/demo-{}", given.trim_end_matches('/'), uuid::Uuid::now_v7());
            return Ok(Self { keeper: None, _data: None, namespace });
        }
        let data = tempfile::Builder::new().prefix("bellwether-demo-").tempdir();
        let data = data.map_err(|error| failed("no directory for the keeper", &error))?;
        let keeper = Keeper::builder()
            .tick_ms(TICK_MS)
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

/// What is told while it happens. Programs read the report alone.
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

/// One half adds, the other runs a program.
fn jobs(total: usize) -> Result<Vec<Job>, Failure> {
    let job = |n: usize| match n % 2 {
        0 => Job::new("sum", &json!({ "first": n, "second": 1 })),
        _ => Job::new("exec", &json!({ "argv": [node::PROGRAM, n.to_string(), "+", "1"] })),
    };
    let named = (0..total).map(|n| job(n).map(|job| job.id(format!("demo-{n}"))));
    named.collect::<Result<_, _>>().map_err(|error| failed("not a job", &error))
}

/// What is known of each, also of those that are not over.
fn jobs_of(answers: Vec<Result<JobView, WaitError>>) -> Vec<JobView> {
    let views = answers.into_iter().filter_map(|answer| match answer {
        Ok(view) => Some(view),
        Err(WaitError::TimedOut { last, .. }) => last.map(|view| *view),
        Err(WaitError::Client(_)) => None,
    });
    views.collect()
}

fn bar(global: &Global, total: u64) -> ProgressBar {
    if global.quiet {
        return ProgressBar::hidden();
    }
    // Hidden by itself when stderr is no terminal.
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("{msg:10} {wide_bar} {human_pos}/{human_len} {per_sec} {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn failed(what: &str, error: &dyn std::error::Error) -> Failure {
    Failure::failed(format!("{what}: {}", super::exit::chain(error)))
}

/// Runs a program that dies with this one, where the system has a way to say so.
fn bound(program: &std::path::Path) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|dir| dir.join("setpriv").is_file()) {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program);
        return command;
    }
    Command::new(program)
}
