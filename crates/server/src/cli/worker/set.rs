//! `bellwether worker set`.

use bellwether::Client;
use bellwether::client::{Setting, WorkerChange, WorkerSettings, WorkerView};
use clap::Args;

use super::choose::{choose, node};
use crate::cli::Global;
use crate::cli::exit::{self, Failure};
use crate::cli::output::{Format, Output};
use bellwether_documents::ChangedWorkerDocument;

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Ids of workers, or names of their nodes.
    #[arg(required = true, value_name = "WORKER")]
    workers: Vec<String>,
    #[command(flatten)]
    change: WorkerChange,
}

pub(super) async fn run(global: &Global, output: Output, set: &Set) -> Result<(), Failure> {
    let client = global.reader().await?;
    let done = changed(&client, set).await;
    client.close().await;
    let (changed, failed) = done?;
    // The outcomes are printed even if a later worker failed.
    match output.format {
        Format::Json => output.json(&changed.iter().map(document).collect::<Vec<_>>())?,
        Format::Table if changed.is_empty() => {}
        Format::Table => {
            let header = ["ID", "NODE", "SLOTS", "TAGS", "PAUSED KINDS"];
            output.rows(header, changed.iter().map(row).collect())?;
        }
    }
    failed
}

type Changed = Vec<(WorkerView, Setting<WorkerSettings>)>;

async fn changed(client: &Client, set: &Set) -> Result<(Changed, Result<(), Failure>), Failure> {
    let chosen = choose(&client.workers().await?, &set.workers)?;
    let mut changed = Changed::new();
    for worker in chosen {
        match client.change_worker(worker.id, &set.change).await {
            Ok(Some(settings)) => changed.push((worker, settings)),
            Ok(None) => {
                let said = format!("worker {} has left", worker.id);
                return Ok((changed, Err(Failure::new(exit::Kind::NotFound, said))));
            }
            Err(error) => return Ok((changed, Err(error.into()))),
        }
    }
    Ok((changed, Ok(())))
}

fn document((worker, settings): &(WorkerView, Setting<WorkerSettings>)) -> ChangedWorkerDocument {
    ChangedWorkerDocument { id: worker.id.to_string(), settings: settings.into(), node: node(worker) }
}

fn row((worker, set): &(WorkerView, Setting<WorkerSettings>)) -> [String; 5] {
    let settings = &set.value;
    let usual = "as configured".to_owned();
    let join = |names: Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(" ") };
    [
        worker.id.to_string(),
        node(worker).unwrap_or_default(),
        settings.slots.map_or_else(|| usual.clone(), |slots| slots.to_string()),
        settings.tags.as_ref().map_or(usual, |tags| join(tags.iter().map(ToString::to_string).collect())),
        join(settings.paused_kinds.iter().map(ToString::to_string).collect()),
    ]
}
