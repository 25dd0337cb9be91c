//! `bellwether worker drain`.

use std::time::Duration;

use bellwether::Client;
use clap::Args;
use tokio::time::{Instant, sleep};

use super::choose::{choose, node};
use crate::cli::Global;
use crate::cli::exit::{Failure, Kind};
use crate::cli::output::{Format, Output, spaced};
use bellwether_documents::{WorkerOutcome, WorkerOutcomeDocument};

/// Interval between two checks whether the workers have left.
const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct Drain {
    /// Ids of workers, or names of their nodes.
    #[arg(required = true, value_name = "WORKER")]
    workers: Vec<String>,
    /// Wait until the workers have left, up to --deadline.
    #[arg(long)]
    wait: bool,
}

pub(super) async fn run(global: &Global, output: Output, drain: &Drain) -> Result<(), Failure> {
    let client = global.reader().await?;
    let done = drained(global, &client, drain).await;
    client.close().await;
    let (drained, failed) = done?;
    // The outcomes are printed even if a later worker failed.
    match output.format {
        Format::Json => output.json(&drained)?,
        Format::Table if drained.is_empty() => {}
        Format::Table => {
            let row =
                |done: WorkerOutcomeDocument| [done.id, done.node.unwrap_or_default(), spaced(done.outcome)];
            output.rows(["ID", "NODE", "OUTCOME"], drained.into_iter().map(row).collect())?;
        }
    }
    failed
}

type Drained = Vec<WorkerOutcomeDocument>;

async fn drained(
    global: &Global,
    client: &Client,
    drain: &Drain,
) -> Result<(Drained, Result<(), Failure>), Failure> {
    let by = Instant::now() + global.deadline;
    let chosen = choose(&client.workers().await?, &drain.workers)?;
    let mut drained = Drained::new();
    for worker in chosen {
        match client.drain_worker(worker.id).await {
            Ok(outcome) => {
                let node = node(&worker);
                drained.push(WorkerOutcomeDocument {
                    node,
                    ..WorkerOutcomeDocument::drained(worker.id, outcome)
                });
            }
            Err(error) => return Ok((drained, Err(error.into()))),
        }
    }
    if drain.wait { left(global, client, drained, by).await } else { Ok((drained, Ok(()))) }
}

/// Waits until the workers have left.
async fn left(
    global: &Global,
    client: &Client,
    mut drained: Drained,
    by: Instant,
) -> Result<(Drained, Result<(), Failure>), Failure> {
    loop {
        let live = client.workers().await?;
        let live = live.iter().map(|worker| worker.id.to_string()).collect::<Vec<_>>();
        let waiting = drained.iter().filter(|done| live.contains(&done.id)).count();
        if waiting == 0 {
            drained.iter_mut().for_each(|done| done.outcome = WorkerOutcome::Left);
            return Ok((drained, Ok(())));
        }
        if Instant::now() >= by {
            let within = global.deadline;
            let said =
                format!("{waiting} workers have not left within {within:?}: wait longer with --deadline");
            return Ok((drained, Err(Failure::new(Kind::TimedOut, said))));
        }
        sleep(LOOK).await;
    }
}
