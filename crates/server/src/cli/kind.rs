//! `bellwether kind`.

use bellwether::Kind;
use bellwether::client::{KindView, rfc3339};
use clap::{Args, Subcommand};

use super::Global;
use super::exit::Failure;
use super::output::{Format, Output, spaced};
use bellwether_documents::{KindDocument, KindOutcomeDocument, NewPause, json_fields};

#[derive(Debug, Subcommand)]
pub(crate) enum KindCommand {
    /// List the kinds that live workers serve, and the kinds that are paused.
    ///
    /// JSON: an array; paused is an object with by, note and since, or null.
    #[command(after_long_help = json_fields::<KindDocument>())]
    List,
    /// Pause kinds: their jobs are not assigned until the kinds are resumed. Running jobs continue; jobs can be
    /// submitted.
    ///
    /// JSON: an array.
    #[command(after_long_help = json_fields::<KindOutcomeDocument>())]
    Pause(Pause),
    /// Resume kinds: their jobs are assigned again.
    ///
    /// JSON: an array.
    #[command(after_long_help = json_fields::<KindOutcomeDocument>())]
    Resume(Kinds),
}

#[derive(Debug, Args)]
pub(crate) struct Kinds {
    /// Names of the kinds.
    #[arg(required = true, value_name = "KIND")]
    kinds: Vec<Kind>,
}

#[derive(Debug, Args)]
pub(crate) struct Pause {
    #[command(flatten)]
    kinds: Kinds,
    #[command(flatten)]
    pause: NewPause,
}

pub(crate) async fn run(global: &Global, output: Output, command: KindCommand) -> Result<(), Failure> {
    match command {
        KindCommand::List => list(global, output).await,
        KindCommand::Pause(Pause { kinds: Kinds { kinds }, pause: NewPause { note } }) => {
            let note = note.unwrap_or_default();
            change(global, output, &kinds, async |client, kind| {
                Ok(KindOutcomeDocument::paused(kind, client.pause_kind(kind, &note).await?))
            })
            .await
        }
        KindCommand::Resume(Kinds { kinds }) => {
            change(global, output, &kinds, async |client, kind| {
                Ok(KindOutcomeDocument::resumed(kind, client.resume_kind(kind).await?))
            })
            .await
        }
    }
}

/// Changes the kinds up to the first error.
async fn change(
    global: &Global,
    output: Output,
    kinds: &[Kind],
    change: impl AsyncFn(&bellwether::Client, &Kind) -> Result<KindOutcomeDocument, bellwether::client::Error>,
) -> Result<(), Failure> {
    let client = global.reader().await?;
    let mut changed = Vec::new();
    let mut failed = Ok(());
    for kind in kinds {
        match change(&client, kind).await {
            Ok(outcome) => changed.push(outcome),
            Err(error) => {
                failed = Err(error.into());
                break;
            }
        }
    }
    client.close().await;
    // Changes before an error are printed, too.
    match output.format {
        Format::Json => output.json(&changed)?,
        Format::Table if changed.is_empty() => {}
        Format::Table => {
            let rows = changed.into_iter().map(|done| [done.kind, spaced(done.outcome)]);
            output.rows(["KIND", "OUTCOME"], rows.collect())?;
        }
    }
    failed
}

async fn list(global: &Global, output: Output) -> Result<(), Failure> {
    let client = global.reader().await?;
    let kinds = client.kinds().await?;
    client.close().await;
    match output.format {
        Format::Json => output.json(&kinds.iter().map(KindDocument::from).collect::<Vec<_>>()),
        Format::Table => {
            let header = ["KIND", "WORKERS", "ASSIGNED", "PAUSED"];
            output.rows(header, kinds.iter().map(row).collect())
        }
    }
}

fn row(kind: &KindView) -> [String; 4] {
    let KindView { slots, assigned, .. } = kind;
    let paused = kind.paused.as_ref().map_or_else(String::new, |pause| {
        let since = pause.since.map(|since| format!("since {}", rfc3339(since)));
        let by = pause.by.as_ref().map(|by| format!("by {by}"));
        let told = since.into_iter().chain(by).collect::<Vec<_>>().join(" ");
        let told = if told.is_empty() { "yes".to_owned() } else { told };
        pause.note.as_ref().map_or_else(|| told.clone(), |note| format!("{told}: {note}"))
    });
    [kind.kind.to_string(), kind.workers.len().to_string(), format!("{assigned}/{slots}"), paused]
}
