//! `bellwether worker`.

mod choose;
mod drain;
mod set;

use bellwether::client::WorkerView;
use clap::Subcommand;

use crate::cli::Global;
use crate::cli::exit::Failure;
use crate::cli::output::{Format, Output};
use bellwether_documents::{ChangedWorkerDocument, WorkerDocument, WorkerOutcomeDocument, json_fields};

#[derive(Debug, Subcommand)]
pub(crate) enum Worker {
    /// List the live workers.
    ///
    /// JSON: an array; settings is what `worker set` has changed.
    #[command(after_long_help = json_fields::<WorkerDocument>())]
    List,
    /// Drain workers: they take no new jobs, finish running jobs, hand back the rest, and leave.
    ///
    /// Running jobs have the drain grace of their node to finish. The nodes keep running without their workers until
    /// they are restarted. JSON: an array.
    #[command(after_long_help = json_fields::<WorkerOutcomeDocument>())]
    Drain(drain::Drain),
    /// Change slots and tags of running workers, and pause or resume kinds on them.
    ///
    /// Assignments follow immediately; running jobs continue. Jobs of a paused kind that the worker has not started are handed
    /// back. The changes end with the worker's process: a restarted node begins with its configuration. JSON: an array;
    /// slots and tags of settings are null if they are as configured.
    #[command(after_long_help = json_fields::<ChangedWorkerDocument>())]
    Set(set::Set),
}

pub(crate) async fn run(global: &Global, output: Output, command: Worker) -> Result<(), Failure> {
    match command {
        Worker::List => list(global, output).await,
        Worker::Set(command) => set::run(global, output, &command).await,
        Worker::Drain(command) => drain::run(global, output, &command).await,
    }
}

async fn list(global: &Global, output: Output) -> Result<(), Failure> {
    let client = global.reader().await?;
    let workers = client.workers().await?;
    client.close().await;
    match output.format {
        Format::Json => output.json(&workers.iter().map(WorkerDocument::from).collect::<Vec<_>>()),
        Format::Table => {
            let header = ["ID", "NODE", "STATE", "ASSIGNED", "TAGS", "KINDS"];
            output.rows(header, workers.iter().map(row).collect())
        }
    }
}

fn row(worker: &WorkerView) -> [String; 6] {
    let (id, assigned) = (worker.id.to_string(), worker.assigned);
    match &worker.info {
        Ok(info) => {
            let state = match (info.draining, worker.shunned_until) {
                (true, _) => "draining",
                (false, Some(_)) => "shunned",
                (false, None) => "ready",
            };
            let tags = info.tags.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let kind = |kind| match info.settings.value.paused_kinds.contains(kind) {
                true => format!("{kind}(paused)"),
                false => kind.to_string(),
            };
            let kinds = info.kinds.iter().map(kind).collect::<Vec<_>>().join(" ");
            let slots = format!("{assigned}/{}", info.slots);
            [id, info.node.to_string(), state.to_owned(), slots, tags, kinds]
        }
        Err(error) => {
            let state = format!("unreadable: {error}");
            [id, String::new(), state, assigned.to_string(), String::new(), String::new()]
        }
    }
}
