//! `bellwether retention`.

use bellwether::client::{RetentionChange, Setting};
use bellwether::{DurationText, Retention as Kept};
use clap::Subcommand;

use super::Global;
use super::exit::Failure;
use super::output::{Format, Output};
use bellwether_documents::{RetentionDocument, sentence};

#[derive(Debug, Subcommand)]
pub(crate) enum Retention {
    /// Show how long records are kept.
    ///
    /// JSON: an object with succeeded, cancelled, dead, records and changed (who set it last); or null if no retention is
    /// set, so that nothing is removed.
    Show,
    /// Set how long records are kept: 1m to 3650d after the job's end. Values that are not given do not change.
    ///
    /// Applies to the whole namespace within seconds. JSON as for `retention show`.
    Set(RetentionChange),
}

pub(crate) async fn run(global: &Global, output: Output, command: Retention) -> Result<(), Failure> {
    let client = global.reader().await?;
    let setting = match command {
        Retention::Show => client.retention().await?,
        Retention::Set(change) => Some(client.change_retention(&change).await?),
    };
    client.close().await;
    match output.format {
        Format::Json => output.json(&setting.as_ref().map(RetentionDocument::from)),
        Format::Table => {
            let header = ["JOBS", "KEPT FOR"];
            output.rows(header, setting.as_ref().map_or_else(unset, rows))
        }
    }
}

fn rows(setting: &Setting<Kept>) -> Vec<[String; 2]> {
    let kept = &setting.value;
    let mut rows = vec![
        ["succeeded".to_owned(), DurationText(kept.succeeded).to_string()],
        ["cancelled".to_owned(), DurationText(kept.cancelled).to_string()],
        ["dead".to_owned(), DurationText(kept.dead).to_string()],
        ["all, at most".to_owned(), format!("{} records", kept.records)],
    ];
    rows.extend(setting.changed.as_ref().map(|changed| ["last change".to_owned(), sentence(changed)]));
    rows
}

fn unset() -> Vec<[String; 2]> {
    vec![["all".to_owned(), "no limit (no retention is set)".to_owned()]]
}
