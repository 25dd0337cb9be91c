//! `schedule add`.

use std::time::{Duration, SystemTime};

use bellwether::client::Added;
use bellwether::schedule::{Misfire, Overlap};
use bellwether::{Job, Schedule, ScheduleId};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::super::exit::Failure;
use super::super::output::{Format, Output};
use super::super::{Global, input};

/// When it ticks: one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct When {
    /// At the times of a cron expression of 5 fields, or 6 with the second first.
    #[arg(long, value_name = "EXPRESSION")]
    pub(super) cron: Option<String>,
    /// Every so often, from 1s to 366d.
    #[arg(long, value_parser = input::duration, value_name = "DURATION")]
    pub(super) every: Option<Duration>,
    /// Once, at this instant.
    #[arg(long, value_parser = input::instant, value_name = "INSTANT")]
    pub(super) at: Option<SystemTime>,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// What it is called.
    schedule: ScheduleId,
    /// Which handler runs its jobs.
    kind: String,
    /// What the handler gets: JSON text, @FILE, or - for stdin.
    #[arg(default_value = "null", allow_hyphen_values = true)]
    payload: String,
    #[command(flatten)]
    when: When,
    /// The IANA zone of a cron expression, such as Europe/Berlin [default: UTC].
    #[arg(long, requires = "cron")]
    zone: Option<String>,
    /// Where an interval begins [default: 1970-01-01T00:00:00Z].
    #[arg(long, value_parser = input::instant, value_name = "INSTANT", requires = "every")]
    anchor: Option<SystemTime>,
    /// What becomes of ticks that nobody was there for.
    #[arg(long, value_enum, default_value_t)]
    misfire: MisfireName,
    /// How many to catch up with at most.
    #[arg(long, default_value_t = 10, value_name = "N")]
    catch_up: u32,
    /// How old ticks may be that are caught up with.
    #[arg(long, default_value = "1d", value_parser = input::duration, value_name = "DURATION")]
    catch_up_within: Duration,
    /// How late a tick may be and still be on time.
    #[arg(long, default_value = "60s", value_parser = input::duration, value_name = "DURATION")]
    grace: Duration,
    /// What becomes of a tick while the last one's job is not over.
    #[arg(long, value_enum, default_value_t)]
    overlap: OverlapName,
    /// How long after its tick a job may be started [default: for ever].
    #[arg(long, value_parser = input::duration, value_name = "DURATION")]
    expires_after: Option<Duration>,
    /// Take the place of a schedule of this name with another spec.
    #[arg(long)]
    replace: bool,
    /// What the payload is; anything but JSON is passed on as it is.
    #[arg(long, default_value = "application/json", value_name = "TYPE")]
    content_type: String,
    /// How many attempts of a job may fail before it is dead.
    #[arg(long, default_value_t = 5)]
    max_attempts: u32,
    /// How many workers may be lost under a job before it is dead.
    #[arg(long, default_value_t = 3)]
    max_losses: u32,
    /// How long one attempt may run [default: no bound].
    #[arg(long, value_parser = input::duration, value_name = "DURATION")]
    job_timeout: Option<Duration>,
    /// How urgent its jobs are: 0 to 9, 9 goes first.
    #[arg(long, default_value_t = 5)]
    priority: u8,
    /// What the worker must offer. May be given again.
    #[arg(long)]
    tag: Vec<String>,
    /// Jobs of one key prefer one worker, under the strategy rendezvous.
    #[arg(long, value_name = "KEY")]
    affinity: Option<String>,
    /// Jobs of one lane run one at a time.
    #[arg(long, value_name = "NAME")]
    lane: Option<String>,
}

/// As the library's.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum MisfireName {
    /// Nothing.
    Skip,
    /// The last one is made up for all of them.
    #[default]
    Once,
    /// The last ones are made up, by --catch-up and --catch-up-within.
    CatchUp,
}

/// As the library's.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum OverlapName {
    /// It gets its job.
    #[default]
    Allow,
    /// It is passed over.
    Forbid,
    /// It gets its job, which waits for the others in a lane.
    Queue,
}

pub(super) async fn run(global: &Global, output: Output, add: Add) -> Result<(), Failure> {
    let schedule = schedule(&add)?;
    global.zookeeper()?;
    let client = global.writer().await?;
    let added = client.schedules().add(&schedule).await?;
    let view = client.schedules().get(&add.schedule).await;
    client.close().await;
    let added = match added {
        Added::Made => "made",
        Added::Same => "same",
        Added::Replaced => "replaced",
    };
    match output.format {
        Format::Json => {
            // It is added all the same, if it cannot be read just now.
            let mut document = match view {
                Ok(view) => serde_json::to_value(view).unwrap_or_default(),
                Err(_) => json!({ "id": add.schedule.as_str() }),
            };
            document["added"] = json!(added);
            output.json(&document)
        }
        Format::Table => output.text(&format!("{} {added}", add.schedule)),
    }
}

fn schedule(add: &Add) -> Result<Schedule, Failure> {
    let mut job = input::job(&add.kind, &add.payload, &add.content_type)?
        .max_attempts(add.max_attempts)
        .max_losses(add.max_losses)
        .priority(add.priority);
    if let Some(timeout) = add.job_timeout {
        job = job.timeout(timeout);
    }
    if let Some(key) = &add.affinity {
        job = job.affinity(key);
    }
    if let Some(lane) = &add.lane {
        job = job.lane(lane);
    }
    let job = add.tag.iter().fold(job, Job::tag);
    let id = add.schedule.as_str();
    let mut schedule = match (&add.when.cron, add.when.every, add.when.at) {
        (Some(expression), _, _) => Schedule::cron(id, expression, job),
        (None, Some(interval), _) => Schedule::every(id, interval, job),
        (None, None, Some(at)) => Schedule::once(id, at, job),
        (None, None, None) => return Err(Failure::usage("give one of --cron, --every and --at")),
    };
    if let Some(zone) = &add.zone {
        schedule = schedule.zone(zone);
    }
    if let Some(anchor) = add.anchor {
        schedule = schedule.anchor(anchor);
    }
    if let Some(after) = add.expires_after {
        schedule = schedule.expires_after(after);
    }
    if add.replace {
        schedule = schedule.replace();
    }
    let misfire = match add.misfire {
        MisfireName::Skip => Misfire::Skip,
        MisfireName::Once => Misfire::Once,
        MisfireName::CatchUp => Misfire::CatchUp { at_most: add.catch_up, within: add.catch_up_within },
    };
    let overlap = match add.overlap {
        OverlapName::Allow => Overlap::Allow,
        OverlapName::Forbid => Overlap::Forbid,
        OverlapName::Queue => Overlap::Queue,
    };
    let schedule = schedule.misfire(misfire).overlap(overlap).grace(add.grace);
    schedule.check().map_err(|error| Failure::usage(error.to_string()))?;
    Ok(schedule)
}

/// What is accepted can be added. No file is read.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzzed(add: Add) {
    if add.payload != "-"
        && !add.payload.starts_with('@')
        && let Ok(schedule) = schedule(&add)
    {
        let ticks = schedule.preview(SystemTime::UNIX_EPOCH, 3).expect("what is accepted can be added");
        assert!(ticks.is_sorted());
    }
}
