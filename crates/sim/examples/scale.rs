//! Runs the model of `docs/scale.md` and prints its tables.
//!
//! ```sh
//! cargo run --release -p bellwether-sim --example scale -- --seed 1
//! ```
#![expect(clippy::print_stdout, reason = "the report of a command is its output")]

use bellwether_sim::scale::{Outcome, Setup, Share, Wait, run};
use clap::{Parser, ValueEnum};

/// Simulates a namespace in several partitions, with a billion waiting jobs.
#[derive(Parser)]
struct Args {
    /// Seed of all random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Numbers of ensembles.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16])]
    partitions: Vec<u16>,
    /// How the workers share their slots.
    #[arg(long, value_enum, default_value_t = Rule::FairByPriority)]
    share: Rule,
    /// Format of the output.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Rule {
    /// In proportion to the demands.
    Proportional,
    /// Equally, at most the demand.
    Fair,
    /// Equally, urgent jobs first.
    FairByPriority,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    /// Tables of Markdown.
    Table,
    /// One JSON object per line and run.
    Json,
}

fn main() {
    let args = Args::parse();
    let share = match args.share {
        Rule::Proportional => Share::Proportional,
        Rule::Fair => Share::Fair,
        Rule::FairByPriority => Share::FairByPriority,
    };
    let setups =
        args.partitions.iter().flat_map(|count| Setup::all(usize::from(*count).max(1), share, args.seed));
    let mut outcomes = setups.map(run).collect::<Vec<_>>();
    match args.output {
        Output::Json => {
            for outcome in outcomes {
                println!("{}", serde_json::to_string(&outcome).expect("an outcome has no maps"));
            }
        }
        Output::Table => {
            // Stable: the loads keep their order within one number of partitions.
            outcomes.sort_by_key(|outcome| {
                Setup::all(1, share, 0).iter().position(|setup| setup.load == outcome.load)
            });
            print_tables(args.seed, &outcomes);
        }
    }
}

fn print_tables(seed: u64, outcomes: &[Outcome]) {
    println!("seed {seed}\n");
    println!("| load | ensembles | jobs/s | idle slots | longest idle | single jobs | lanes | groups |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for outcome in outcomes {
        println!(
            "| {} | {} | {:.0} | {:.2} % | {} | {} | {} | {} |",
            outcome.load,
            outcome.partitions,
            outcome.jobs_per_second,
            outcome.idle_share * 100.0,
            seconds(Some(outcome.longest_idle_ms)),
            range(&outcome.single),
            range(&outcome.laned),
            range(&outcome.members),
        );
    }
    println!(
        "\n| ensembles | server | leader | takeover | burst: first start | all started | loss: others | all | resumed after |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for even in outcomes.iter().filter(|outcome| outcome.load == "even") {
        let same = || outcomes.iter().filter(|other| other.partitions == even.partitions);
        let burst = same().find(|outcome| outcome.load == "burst").expect("each load runs");
        let loss = same().find_map(|outcome| outcome.loss.as_ref()).expect("each load runs");
        println!(
            "| {} | {:.1} GB | {:.0} MB | {} | {} | {} | {} | {:.2} | {} |",
            even.partitions,
            even.server_bytes as f64 / 1e9,
            even.leader_bytes as f64 / 1e6,
            seconds(Some(even.takeover_ms)),
            seconds(burst.burst_first_ms),
            seconds(burst.burst_all_ms),
            loss.others.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}")),
            loss.all,
            seconds(loss.resumed_ms),
        );
    }
}

/// Median and 99th percentile of the waits in the partition with the longest ones.
fn range(waits: &[Option<Wait>]) -> String {
    Outcome::worst(waits).map_or_else(
        || "–".to_owned(),
        |wait| format!("{} / {}", seconds(Some(wait.p50_ms)), seconds(Some(wait.p99_ms))),
    )
}

fn seconds(ms: Option<u64>) -> String {
    ms.map_or_else(|| "–".to_owned(), |ms| format!("{:.2} s", ms as f64 / 1_000.0))
}
