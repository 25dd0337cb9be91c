//! `schedule add`.

use std::time::Duration;
#[cfg(any(test, fuzzing))]
use std::time::SystemTime;

use bellwether::{Schedule, ScheduleId};
use clap::{ArgGroup, Args};
use serde_json::json;

use super::super::exit::Failure;
use super::super::job_flags::JobFlags;
use super::super::output::{Format, Output};
use super::super::{Global, input};
use super::rule::{Handling, Times};
use bellwether_documents::ScheduleDocument;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("time").args(["cron", "every", "at"]).required(true)))]
pub(crate) struct Add {
    /// Name of the schedule.
    schedule: ScheduleId,
    /// Kind of its jobs; it selects the handler.
    kind: String,
    /// Payload for the handler: JSON text, @FILE, or - for stdin.
    #[arg(default_value = "null", allow_hyphen_values = true)]
    payload: String,
    #[command(flatten)]
    times: Times,
    #[command(flatten)]
    handling: Handling,
    /// Time after its tick until which a job may start, 1s to 366d [default: unlimited].
    #[arg(long, value_parser = input::duration, value_name = "DURATION")]
    expires_after: Option<Duration>,
    /// Id of the job of every tick: a tick opens the job again once it has ended, and is skipped while it is open
    /// [default: each tick has its own job].
    #[arg(long, value_name = "JOB")]
    job_id: Option<String>,
    /// Replace a schedule that has this name and another spec.
    #[arg(long)]
    replace: bool,
    /// Content type of the payload. A payload that is not JSON is passed on unchanged.
    #[arg(long, default_value = "application/json", value_name = "TYPE")]
    content_type: String,
    #[command(flatten)]
    options: JobFlags,
}

pub(super) async fn run(global: &Global, output: Output, add: Add) -> Result<(), Failure> {
    let schedule = schedule(&add)?;
    global.zookeeper()?;
    let client = global.writer().await?;
    let added = client.schedules().add(&schedule).await?.as_str();
    let view = client.schedules().get(&add.schedule).await;
    client.close().await;
    match output.format {
        Format::Json => {
            // The schedule is added, even if it cannot be read afterwards.
            let mut document = match view {
                Ok(view) => serde_json::to_value(ScheduleDocument::from(&view)).unwrap_or_default(),
                Err(_) => json!({ "id": add.schedule.as_str() }),
            };
            document["added"] = json!(added);
            output.json(&document)
        }
        Format::Table => output.text(&format!("{} {added}", add.schedule)),
    }
}

fn schedule(add: &Add) -> Result<Schedule, Failure> {
    let job = input::job(&add.kind, &add.payload, &add.content_type)?.options(add.options.0.clone());
    let when = add.times.when()?;
    let when = when.ok_or_else(|| Failure::usage("give one of --cron, --every and --at"))?;
    let mut schedule = Schedule::new(add.schedule.as_str(), when, job).replace(add.replace);
    if let Some(after) = add.expires_after {
        schedule = schedule.expires_after(after);
    }
    if let Some(job) = &add.job_id {
        schedule = schedule.job_id(job);
    }
    if let Some(misfire) = add.handling.misfire() {
        schedule = schedule.misfire(misfire);
    }
    if let Some(grace) = add.handling.grace {
        schedule = schedule.grace(grace);
    }
    if let Some(overlap) = add.handling.overlap {
        schedule = schedule.overlap(overlap);
    }
    schedule.check().map_err(|error| Failure::usage(error.to_string()))?;
    Ok(schedule)
}

/// An accepted schedule can be added. Reads no file.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzzed(add: Add) {
    if add.payload != "-"
        && !add.payload.starts_with('@')
        && let Ok(schedule) = schedule(&add)
    {
        let ticks = schedule.preview(SystemTime::UNIX_EPOCH, 3).expect("an accepted schedule can be added");
        assert!(ticks.is_sorted());
    }
}
