//! `schedule add`.

use std::time::{Duration, SystemTime};

use bellwether::{DurationText, Schedule, ScheduleId};
use clap::Args;
use serde_json::json;

use super::super::exit::Failure;
use super::super::job_flags::JobFlags;
use super::super::output::{Format, Output};
use super::super::{Global, input};
use super::rule::MisfireName;
use bellwether_documents::{InstantText, OverlapName, Rule, ScheduleDocument};

/// When the schedule ticks. Exactly one of these is required.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct When {
    /// Tick at the times of a cron expression with 5 fields, or with 6 fields of which the first is the second.
    #[arg(long, value_name = "EXPRESSION")]
    pub(super) cron: Option<String>,
    /// Tick at this interval, 1s to 366d.
    #[arg(long, value_parser = input::duration, value_name = "DURATION")]
    pub(super) every: Option<Duration>,
    /// Tick once, at this instant.
    #[arg(long, value_parser = input::instant, value_name = "INSTANT")]
    pub(super) at: Option<SystemTime>,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Name of the schedule.
    schedule: ScheduleId,
    /// Kind of its jobs; it selects the handler.
    kind: String,
    /// Payload for the handler: JSON text, @FILE, or - for stdin.
    #[arg(default_value = "null", allow_hyphen_values = true)]
    payload: String,
    #[command(flatten)]
    when: When,
    /// IANA zone of the cron expression, such as Europe/Berlin [default: UTC].
    #[arg(long, requires = "cron")]
    zone: Option<String>,
    /// Instant at which the interval starts [default: 1970-01-01T00:00:00Z].
    #[arg(long, value_parser = input::instant, value_name = "INSTANT", requires = "every")]
    anchor: Option<SystemTime>,
    /// What to do with ticks that were missed because there was no leader.
    #[arg(long, value_enum, default_value_t)]
    misfire: MisfireName,
    /// With --misfire catch-up: maximum number of missed ticks to catch up with, 1 to 100.
    #[arg(long, default_value_t = 10, value_name = "N")]
    catch_up: u32,
    /// With --misfire catch-up: maximum age of missed ticks to catch up with, 1s to 366d.
    #[arg(long, default_value = "1d", value_parser = input::duration, value_name = "DURATION")]
    catch_up_within: Duration,
    /// How late a tick may be without being missed, 1s to 7d.
    #[arg(long, default_value = "60s", value_parser = input::duration, value_name = "DURATION")]
    grace: Duration,
    /// What to do with a tick while the job of the last tick has not ended.
    #[arg(long, value_enum, default_value_t)]
    overlap: OverlapName,
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
    let rule = Rule {
        cron: add.when.cron.clone(),
        zone: add.zone.clone(),
        every: add.when.every.map(DurationText),
        anchor: add.anchor.map(InstantText),
        at: add.when.at.map(InstantText),
    };
    let when = rule.when().map_err(Failure::usage)?;
    let when = when.ok_or_else(|| Failure::usage("give one of --cron, --every and --at"))?;
    let mut schedule = Schedule::new(add.schedule.as_str(), when, job);
    if let Some(after) = add.expires_after {
        schedule = schedule.expires_after(after);
    }
    if let Some(job) = &add.job_id {
        schedule = schedule.job_id(job);
    }
    if add.replace {
        schedule = schedule.replace();
    }
    let misfire = add.misfire.with(add.catch_up, add.catch_up_within);
    let schedule = schedule.misfire(misfire).overlap(add.overlap.into()).grace(add.grace);
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
