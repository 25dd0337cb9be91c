//! Chaos on the real thing: `cargo run --release -p bellwether-chaos -- --minutes 10 --seed 1 --server ensemble`.
//!
//! Real node processes, a real ensemble of three ZooKeeper servers (or one keeper), a frame-aware proxy per process and
//! server, and every fault of `docs/invariants.md` that one machine can bring about, mixed by a seed. Clients, nodes and
//! handlers record what they saw; the servers' own logs of transactions are the truth; a checker decides.
//!
//! ```text
//!  clients ─┐              ┌─ proxies ── servers ── their logs of transactions ─┐
//!           ├─ records     │                                                    ├─ history ── checker ── scorecard
//!  nodes ───┘   └──────────┴── what was sent (witness) ──────────────────────────┘
//! ```
//!
//! | file | concern |
//! | --- | --- |
//! | `fault`, `inject` | which faults there are, and how each is begun and ended |
//! | `run` | the order of a run, and what is gathered at its end |
//! | `stage`, `process`, `servers`, `links` | what runs, and what can be done to it |
//! | `node`, `client`, `keeper` | the processes |
//! | `work`, `groups`, `roster` | what jobs do, and which groups there are |
//! | `record` | one clock, one file per recorder |
//! | `zklog`, `keeper`, `txn`, `witness` | the truth: committed transactions, and what was refused |
//! | `score`, `joins` | the verdict and its figures |
//!
//! **Limits.** A seed fixes which faults are dealt in which order, what clients ask and how long things last; it does not
//! fix the machine's scheduling, so that a run cannot be repeated exactly. What a run leaves behind decides by itself:
//! its history is kept, and `bellwether-chaos check` reads it again.

mod client;
mod failure;
mod fault;
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

use bellwether_sim::history::Checker;
use clap::{Parser, Subcommand, ValueEnum};

use crate::failure::Failure;
use crate::run::Plan;
use crate::score::Score;

/// Runs a cluster of real processes under faults, and checks what it did.
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
    /// How long faults are dealt.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// What decides on faults and calls [default: a fresh one, which is printed].
    #[arg(long)]
    seed: Option<u64>,
    /// What nodes and clients meet in.
    #[arg(long, value_enum, default_value = "ensemble")]
    server: servers::Kind,
    /// Calls that each of the three clients makes in a second.
    #[arg(long, default_value_t = 12)]
    rate: u32,
    /// Where to leave records, logs and the history [default: a fresh directory, which is printed].
    #[arg(long)]
    keep: Option<PathBuf>,
    /// How to print the scorecard.
    #[arg(long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
}

#[derive(Debug, Subcommand)]
enum Process {
    /// Check a history that a run left behind.
    Check {
        /// Its `history.jsonl`.
        history: PathBuf,
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
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let level = if process.is_some() { "info" } else { "error" };
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| level.into()))
        .with_writer(std::io::stderr)
        .init();
    let done = match process {
        None => chaos(run).await,
        Some(Process::Check { history }) => check(&history),
        Some(Process::Node(node)) => node::run(node).await,
        Some(Process::Client(client)) => client::process(client).await.map(|()| ExitCode::SUCCESS),
        Some(Process::Keeper(keeper)) => keeper::run(keeper).await.map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|failure| {
        eprintln!("bellwether-chaos: {failure}");
        ExitCode::from(2)
    })
}

fn check(history: &Path) -> Result<ExitCode, Failure> {
    let events = record::read(history)?;
    let mut checker = Checker::new(score::BOUNDS);
    let mut violations: Vec<_> = events.iter().flat_map(|event| checker.observe(event)).collect();
    violations.extend(checker.finish(events.last().map_or(0, |event| event.at)));
    for violation in &violations {
        writeln!(std::io::stdout(), "{violation}")?;
    }
    Ok(if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn chaos(arguments: Run) -> Result<ExitCode, Failure> {
    let Run { minutes, seed, server, rate, keep, output } = arguments;
    let seed = seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let dir = match keep {
        Some(dir) => std::path::absolute(dir)?,
        None => tempfile::Builder::new().prefix("bellwether-chaos-").tempdir()?.keep(),
    };
    let lasts = Duration::try_from_secs_f64(minutes * 60.0)?;
    let plan = Plan { kind: server, seed, lasts, rate, dir };
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
