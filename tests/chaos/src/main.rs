//! Chaos tests with real processes: `bellwether-chaos --minutes 10 --seed 1 --server ensemble`.
//!
//! The run uses real node processes, an ensemble of three ZooKeeper servers (or one keeper), a frame-aware proxy per
//! process and server, and every fault of `docs/invariants.md` that can be injected on one machine, mixed by a seed.
//! Clients, nodes and handlers record events. The servers' transaction logs are the truth. A checker compares both.
//!
//! ```text
//!  clients ─┐              ┌─ proxies ── servers ── their logs of transactions ─┐
//!           ├─ records     │                                                    ├─ history ── checker ── scorecard
//!  nodes ───┘   └──────────┴── what was sent (witness) ──────────────────────────┘
//! ```
//!
//! | file | content |
//! | --- | --- |
//! | `fault`, `inject` | the faults, and how each starts and ends |
//! | `run` | the phases of a run, and the collection of its results |
//! | `stage`, `process`, `servers`, `links` | the running processes, and the actions on them |
//! | `node`, `client`, `keeper` | the processes |
//! | `work`, `groups`, `roster` | the jobs and groups |
//! | `record`, `gather` | one clock, one file per recorder, and their history |
//! | `zklog`, `keeper`, `txn`, `witness` | the truth: committed and rejected transactions |
//! | `score`, `joins` | the verdict and its figures |
//!
//! **Limits.** A seed fixes the order of the faults, the calls of the clients and the durations. It does not fix the
//! machine's scheduling, so a run cannot be repeated exactly. The run keeps its history, which `bellwether-chaos check`
//! checks again.

mod client;
mod failure;
mod fault;
mod gather;
mod groups;
mod inject;
mod joins;
mod jute;
mod keeper;
mod links;
mod node;
mod process;
mod record;
mod roster;
mod run;
mod score;
mod servers;
mod stage;
mod step;
mod txn;
mod wait;
mod witness;
mod work;
mod zklog;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bellwether_core::duration::DurationText;
use bellwether_sim::history::Checker;
use clap::{Parser, Subcommand, ValueEnum};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use crate::failure::Failure;
use crate::fault::Fault;
use crate::run::Plan;
use crate::score::Score;

/// Runs a cluster of real processes under faults, and checks the invariants.
#[derive(Debug, Parser)]
#[command(name = "bellwether-chaos", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    process: Option<Process>,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, clap::Args)]
struct Run {
    /// For how many minutes faults are injected.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Seed of faults and calls [default: a fresh seed, which is printed].
    #[arg(long)]
    seed: Option<u64>,
    /// The server or servers that nodes and clients use.
    #[arg(long, value_enum, default_value = "ensemble")]
    server: servers::Kind,
    /// Inject only the faults whose name in the scorecard contains this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Session timeout of nodes, such as 1500ms, or 10s like the default of a node. Faults that are measured in session
    /// timeouts last accordingly longer.
    #[arg(long, value_name = "DURATION", default_value_t = DurationText(fault::SESSION))]
    session_timeout: DurationText,
    /// Let candidates wait for the end of the leader's session, and not for its beats.
    #[arg(long)]
    without_beats: bool,
    /// Calls per second of each of the three clients.
    #[arg(long, default_value_t = 12)]
    rate: u32,
    /// Directory for records, logs and the history [default: a fresh directory, which is printed].
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Format of the scorecard.
    #[arg(long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Markdown tables.
    Table,
    /// JSON.
    Json,
}

#[derive(Debug, Subcommand)]
enum Process {
    /// Check the history of an earlier run.
    Check {
        /// Path of its `history.jsonl`.
        history: PathBuf,
        /// Session timeout of its nodes.
        #[arg(long, value_name = "DURATION", default_value_t = DurationText(fault::SESSION))]
        session_timeout: DurationText,
    },
    #[command(hide = true)]
    Node(node::Arguments),
    #[command(hide = true)]
    Client(client::Arguments),
    #[command(hide = true)]
    Keeper(keeper::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { process, run } = Arguments::parse();
    let filter = std::env::var("RUST_LOG").ok().and_then(|filter| filter.parse::<Targets>().ok());
    let level = if process.is_some() { LevelFilter::INFO } else { LevelFilter::ERROR };
    let filter = filter.unwrap_or_else(|| Targets::new().with_default(level));
    tracing_subscriber::registry().with(fmt::layer().with_writer(std::io::stderr).with_filter(filter)).init();
    let done = match process {
        None => chaos(run).await,
        Some(Process::Check { history, session_timeout }) => check(&history, session_timeout.into()),
        Some(Process::Node(node)) => node::run(node).await,
        Some(Process::Client(client)) => client::process(client).await.map(|()| ExitCode::SUCCESS),
        Some(Process::Keeper(keeper)) => keeper::run(keeper).await.map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|failure| {
        eprintln!("bellwether-chaos: {failure}");
        ExitCode::from(2)
    })
}

fn check(history: &Path, session: Duration) -> Result<ExitCode, Failure> {
    let events = record::read(history)?;
    let mut checker = Checker::new(score::bounds(session));
    let mut violations: Vec<_> = events.iter().flat_map(|event| checker.observe(event)).collect();
    violations.extend(checker.finish(events.last().map_or(0, |event| event.at)));
    for violation in &violations {
        writeln!(std::io::stdout(), "{violation}")?;
    }
    Ok(if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn faults(kind: servers::Kind, only: Option<&str>) -> Result<Vec<Fault>, Failure> {
    let all = Fault::all(kind);
    let Some(text) = only else { return Ok(all) };
    let names: Vec<_> = all.iter().map(|fault| format!("  {fault}")).collect();
    let chosen: Vec<_> = all.into_iter().filter(|fault| fault.to_string().contains(text)).collect();
    if chosen.is_empty() {
        let names = names.join("\n");
        return Err(Failure::new(format!(
            "no fault has {text:?} in its name; the faults of these servers are\n{names}"
        )));
    }
    Ok(chosen)
}

async fn chaos(arguments: Run) -> Result<ExitCode, Failure> {
    let Run { minutes, seed, server, only, session_timeout, without_beats, rate, keep, output } = arguments;
    let seed = seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let dir = match keep {
        Some(dir) => std::path::absolute(dir)?,
        None => tempfile::Builder::new().prefix("bellwether-chaos-").tempdir()?.keep(),
    };
    let lasts = Duration::try_from_secs_f64(minutes * 60.0)?;
    let faults = faults(server, only.as_deref())?;
    let (session, beats) = (session_timeout.into(), !without_beats);
    let plan = Plan { kind: server, session, beats, seed, lasts, rate, faults, dir };
    eprintln!("seed {seed}; records in {}", plan.dir.display());
    let outcome = run::run(&plan).await?;
    let mut file = std::io::BufWriter::new(std::fs::File::create(plan.dir.join("history.jsonl"))?);
    for event in &outcome.history {
        writeln!(file, "{}", event.to_line())?;
    }
    file.flush()?;
    let score = Score::of(&plan, &outcome);
    let json = serde_json::to_string_pretty(&score)?;
    std::fs::write(plan.dir.join("scorecard.json"), &json)?;
    let text = match output {
        Output::Table => score.table(),
        Output::Json => json,
    };
    writeln!(std::io::stdout(), "{text}")?;
    for violation in &score.violations {
        eprintln!("VIOLATION {violation}");
    }
    eprintln!("seed {seed}; records in {}", plan.dir.display());
    Ok(if score.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
