//! A cluster on this machine that loses its leader and a worker while it works, and a report of what became of the jobs.
//!
//! ```text
//! throw-away ZooKeeper ─┬─ node-1 ┐
//!                       ├─ node-2 ├ processes, each candidate and worker; two are killed, the first comes back
//!                       ├─ node-3 ┘
//!                       └─ this process: submits, counts, kills, reports
//! ```

mod kills;
mod node;
mod report;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use bellwether::client::WaitError;
use bellwether::{Client, Job, JobView};
use bellwether_testkit::{StartError, ZooKeeperServer};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cargo;
use crate::failure::Failure;
use kills::Cluster;
use report::{Report, say};

/// Sessions of 1 s and more: ZooKeeper sees that a node is dead within the nodes' timeout and one tick.
const TICK_MS: u32 = 500;

/// Longer than any backoff or recovery here, for each thousand jobs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Fewer are over before anybody can be killed.
const FEWEST: u64 = 30;

/// How much, and how fast.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// How many jobs to submit.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(FEWEST..=1_000_000))]
    jobs: u64,
    /// Run the optimized build, which takes minutes to make the first time.
    #[arg(long)]
    release: bool,
}

/// Builds the command, then plays.
pub(crate) fn run(demo: &Demo) -> Result<(), Failure> {
    let binary = build(demo.release)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(&"no runtime", &error))?;
    // On this thread, and dropped when it is interrupted: the nodes and ZooKeeper end with what it owns.
    runtime.block_on(async {
        let mut term = signal(SignalKind::terminate()).map_err(|error| failed(&"no signals", &error))?;
        tokio::select! {
            played = play(demo, binary) => played,
            _ = tokio::signal::ctrl_c() => Err(Failure::Demo("interrupted".to_owned())),
            _ = term.recv() => Err(Failure::Demo("terminated".to_owned())),
        }
    })
}

fn build(release: bool) -> Result<PathBuf, Failure> {
    let mut build = cargo::cargo();
    // With this package, though not for it: what both depend on is then built with the features that it was built
    // with for this program, and not once more.
    build.args(["build", "--package", "bellwether", "--package", "xtask", "--bin", "bellwether"]);
    if release {
        build.arg("--release");
    }
    cargo::run(&mut build)?;
    // This program stands in the directory of its own profile, beside the other's.
    let here = std::env::current_exe().map_err(|error| failed(&"where am I", &error))?;
    let profiles = here
        .parent()
        .and_then(|dir| dir.parent())
        .ok_or_else(|| Failure::Demo("no target directory".to_owned()))?;
    Ok(profiles.join(if release { "release" } else { "debug" }).join("bellwether"))
}

async fn play(demo: &Demo, binary: PathBuf) -> Result<(), Failure> {
    let zookeeper = ZooKeeperServer::builder().tick_ms(TICK_MS).try_start().map_err(|error| match error {
        StartError::Missing(missing) => Failure::Missing(missing),
        error @ (StartError::Io(_) | StartError::Exited { .. } | StartError::NotReady { .. }) => {
            Failure::Start(error)
        }
    })?;
    let namespace = format!("{}/demo", zookeeper.connect_string());
    let client = Client::connect(&namespace).await.map_err(|error| failed(&"no client", &error))?;
    let mut cluster = Cluster::start(binary, &namespace, client.clone()).await?;
    say(&format!("ZooKeeper  {namespace}"));
    for node in cluster.nodes() {
        say(&format!("{node}"));
    }

    let total = usize::try_from(demo.jobs).map_err(|error| failed(&"too many jobs", &error))?;
    let began = Instant::now();
    let (progress, done) = watch::channel(0);
    let bar = bar(demo.jobs);
    bar.set_message("submitting");
    let submitted =
        client.submit_many(jobs(total)?, |acknowledged| bar.set_position(acknowledged as u64)).await;
    let submitted = submitted.into_iter().map(|answer| answer.map(|job| job.id().clone()));
    let ids = submitted
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| failed(&"a job was not accepted", &error))?;
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
    let report = Report { ids: &ids, jobs: jobs_of(answers), cluster: &cluster, submitting, took };
    let verdict = report.tell();
    client.close().await;
    verdict
}

/// One half adds, the other runs a program.
fn jobs(total: usize) -> Result<Vec<Job>, Failure> {
    let job = |n: usize| match n % 2 {
        0 => Job::new("sum", &json!({ "first": n, "second": 1 })),
        _ => Job::new("exec", &json!({ "argv": [node::PROGRAM, n.to_string(), "+", "1"] })),
    };
    let named = (0..total).map(|n| job(n).map(|job| job.id(format!("demo-{n}"))));
    named.collect::<Result<_, _>>().map_err(|error| failed(&"not a job", &error))
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

fn bar(total: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total);
    match ProgressStyle::with_template("{msg:10} {wide_bar} {human_pos}/{human_len} {per_sec} {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A failure of the demonstration, with its cause.
fn failed(what: &dyn std::fmt::Display, error: &dyn std::fmt::Display) -> Failure {
    Failure::Demo(format!("{what}: {error}"))
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
