//! `schedule add`.

#[cfg(any(test, fuzzing))]
use std::time::SystemTime;

use bellwether::{Schedule, ScheduleId};
use clap::{ArgGroup, Args};

use super::super::exit::{Failure, chain};
use super::super::output::{Format, Output};
use super::super::{Global, input};
use bellwether_documents::AddedScheduleDocument;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("rule").args(["cron", "every", "at"]).required(true)))]
pub(crate) struct Add {
    #[command(flatten)]
    schedule: Schedule,
    /// Payload for the handler: JSON text, @FILE, or - for stdin.
    #[arg(default_value = "null", allow_hyphen_values = true)]
    payload: String,
}

pub(super) async fn run(global: &Global, output: Output, add: Add) -> Result<(), Failure> {
    let schedule = schedule(add)?;
    let id = ScheduleId::new(schedule.id()).map_err(|error| Failure::usage(error.to_string()))?;
    global.zookeeper()?;
    let client = global.writer().await?;
    let added = client.schedules().add(&schedule).await?;
    let view = client.schedules().get(&id).await;
    client.close().await;
    match output.format {
        // The schedule is added, even if it cannot be read afterwards.
        Format::Json => {
            output.json(&AddedScheduleDocument::new(&id, added, view.as_ref().map_err(|error| chain(error))))
        }
        Format::Table => output.text(&format!("{id} {}", added.as_str())),
    }
}

fn schedule(Add { mut schedule, payload }: Add) -> Result<Schedule, Failure> {
    schedule.job = schedule.job.payload(input::payload(&payload)?);
    schedule.check().map_err(|error| Failure::usage(error.to_string()))?;
    Ok(schedule)
}

/// An accepted schedule can be added. Reads no file.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzzed(add: Add) {
    if add.payload != "-"
        && !add.payload.starts_with('@')
        && let Ok(schedule) = schedule(add)
    {
        let ticks = schedule.preview(SystemTime::UNIX_EPOCH, 3).expect("an accepted schedule can be added");
        assert!(ticks.is_sorted());
    }
}
