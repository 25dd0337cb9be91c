//! Runs one simulation per seed, until one breaks an invariant.
#![expect(clippy::print_stdout, reason = "the report of a command is its output")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bellwether_sim::plan::{Plan, Servers, Size};
use bellwether_sim::{Report, Stats, Trace, minimise, simulate};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

/// Simulates Bellwether and checks its invariants after every step.
#[derive(Parser)]
struct Args {
    /// Number of seeds to run.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// First seed.
    #[arg(long, default_value_t = 0, value_name = "SEED")]
    from: u64,
    /// Maximum number of nodes per simulation.
    #[arg(long, default_value_t = Size::default().nodes)]
    nodes: usize,
    /// Maximum number of clients per simulation.
    #[arg(long, default_value_t = Size::default().clients)]
    clients: usize,
    /// Maximum number of jobs per simulation.
    #[arg(long, default_value_t = Size::default().jobs)]
    jobs: usize,
    /// ZooKeeper servers: one, an ensemble of three, or drawn per seed.
    #[arg(long, value_enum, default_value_t = Ensemble::Drawn)]
    ensemble: Ensemble,
    /// Run all seeds and list every violation, instead of stopping at the first one.
    #[arg(long)]
    list: bool,
    /// Print the trace hash of each seed. Two builds that print the same hashes behave the same.
    #[arg(long)]
    hashes: bool,
}

/// Which plans have an ensemble.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Ensemble {
    /// None: each has one server.
    Never,
    /// All.
    Always,
    /// Half of them.
    Drawn,
}

/// Maximum number of printed trace lines of a failure. A minimised trace is rarely longer.
const LINES: usize = 250;

fn main() -> ExitCode {
    let args = Args::parse();
    // A panic inside a simulation is caught and reported as a violation, so it is not printed here.
    std::panic::set_hook(Box::new(|_| {}));
    let servers = match args.ensemble {
        Ensemble::Never => Servers::One,
        Ensemble::Always => Servers::Three,
        Ensemble::Drawn => Servers::Drawn,
    };
    let size = Size { nodes: args.nodes, clients: args.clients, jobs: args.jobs, servers };
    let began = Instant::now();
    let bar = ProgressBar::new(args.seeds);
    bar.set_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} seeds, {per_sec}, {eta} left")
            .expect("the template is valid"),
    );
    bar.enable_steady_tick(Duration::from_millis(500));
    let (next, stop) = (AtomicU64::new(args.from), AtomicBool::new(false));
    let end = args.from.saturating_add(args.seeds);
    let (total, failed) = (Mutex::new((0, Stats::default())), Mutex::new(BTreeMap::new()));
    let hashes = Mutex::new(BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let report = simulate(&Plan::generate(seed, size), Trace::hashed());
                    bar.inc(1);
                    if args.hashes {
                        let hash = report.trace.hash();
                        hashes.lock().expect("the lock is not poisoned").insert(seed, hash);
                    }
                    let mut total = total.lock().expect("the lock is not poisoned");
                    total.0 += 1;
                    total.1.add(&report.stats);
                    if !report.violations.is_empty() {
                        stop.store(!args.list, Ordering::Relaxed);
                        failed.lock().expect("the lock is not poisoned").insert(seed, report.violations);
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    for (seed, hash) in hashes.into_inner().expect("the lock is not poisoned") {
        println!("{seed} {hash}");
    }
    let (seeds, stats) = total.into_inner().expect("the lock is not poisoned");
    let failed = failed.into_inner().expect("the lock is not poisoned");
    print_stats(seeds, &stats, began.elapsed());
    let Some((seed, violations)) = failed.first_key_value() else {
        println!("violations 0");
        return ExitCode::SUCCESS;
    };
    if args.list {
        for (seed, violations) in &failed {
            println!("seed {seed}: {}", violations[0]);
        }
        println!("violations {}", failed.len());
        return ExitCode::FAILURE;
    }
    println!("violations in seed {seed}:");
    for violation in violations {
        println!("  {violation}");
    }
    println!("\nminimising …");
    let least = minimise(&Plan::generate(*seed, size), violations[0].id);
    print_failure(&least, &simulate(&least, Trace::told()));
    ExitCode::FAILURE
}

fn print_stats(seeds: u64, stats: &Stats, took: Duration) {
    let hours = stats.virtual_us / 3_600_000_000;
    println!(
        "{seeds} seeds in {:.1} s: {} steps, {hours} hours of virtual time",
        took.as_secs_f64(),
        stats.steps
    );
    println!(
        "{} transactions, {} rejected; {} groups, {} stage changes; {} drain requests; {} runs; {} moves; {} terms; {} sessions, {} expired, {} reconnections; {} replies lost",
        stats.transactions,
        stats.refused,
        stats.groups,
        stats.stages,
        stats.drains,
        stats.runs,
        stats.moves,
        stats.terms,
        stats.sessions,
        stats.expirations,
        stats.reconnections,
        stats.lost_replies
    );
    let faults: Vec<_> = stats.faults.iter().map(|(name, count)| format!("{name} {count}")).collect();
    println!("faults: {}", faults.join(", "));
}

fn print_failure(least: &Plan, report: &Report) {
    println!("the smallest plan that breaks the same invariant:\n{least}");
    let lines = report.trace.lines();
    println!("the last {} of its {} steps:", lines.len().min(LINES), lines.len());
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        println!("{line}");
    }
    for violation in &report.violations {
        println!("VIOLATION {violation}");
    }
}
