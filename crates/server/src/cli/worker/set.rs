//! `bellwether worker set`.

use std::str::FromStr;

use bellwether::client::{Setting, WorkerSettings, WorkerView};
use bellwether::{Client, Kind, NameError, Tag};
use clap::Args;
use serde_json::{Value, json};

use super::choose::{choose, node};
use crate::cli::Global;
use crate::cli::exit::{self, Failure};
use crate::cli::output::{Format, Output};
use bellwether_documents::WorkerSettingsDocument;

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Ids of workers, or names of their nodes.
    #[arg(required = true, value_name = "WORKER")]
    workers: Vec<String>,
    #[command(flatten)]
    change: Change,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Change {
    /// Number of jobs that run at the same time; 0 takes no jobs.
    #[arg(long)]
    slots: Option<u32>,
    /// Replace the tags by these, separated by commas; an empty value removes all.
    #[arg(long, value_name = "TAG,…")]
    tags: Option<Tags>,
    /// Pause this kind on the worker. Can be repeated.
    #[arg(long, value_name = "KIND")]
    pause_kind: Vec<Kind>,
    /// Kind of which the worker starts jobs again. Can be repeated.
    #[arg(long, value_name = "KIND")]
    resume_kind: Vec<Kind>,
    /// Return to the configuration of the node first.
    #[arg(long)]
    reset: bool,
}

#[derive(Debug, Clone)]
struct Tags(Vec<Tag>);

impl FromStr for Tags {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let names = text.split(',').filter(|_| !text.is_empty());
        names.map(Tag::new).collect::<Result<_, _>>().map(Self)
    }
}

impl Change {
    fn apply(&self, present: WorkerSettings) -> WorkerSettings {
        let mut settings = if self.reset { WorkerSettings::default() } else { present };
        settings.slots = self.slots.or(settings.slots);
        settings.tags = self.tags.clone().map(|Tags(tags)| tags).or(settings.tags);
        settings.paused.retain(|kind| !self.resume_kind.contains(kind));
        settings.paused.extend(self.pause_kind.iter().cloned());
        settings
    }
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
        match client.update_worker(worker.id, |present| set.change.apply(present)).await {
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

fn document((worker, settings): &(WorkerView, Setting<WorkerSettings>)) -> Value {
    json!({ "id": worker.id, "node": node(worker), "settings": WorkerSettingsDocument::from(settings) })
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
        join(settings.paused.iter().map(ToString::to_string).collect()),
    ]
}
