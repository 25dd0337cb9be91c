//! `schedule preview`.

use std::time::{Duration, SystemTime};

use bellwether::ScheduleId;
use bellwether::schedule::When;
use clap::Args;

use super::super::exit::{Failure, Kind};
use super::super::output::Output;
use super::super::{Global, input};
use super::instants;

#[derive(Debug, Args)]
pub(crate) struct Preview {
    /// Cron expression in quotes, which needs no ZooKeeper; or the name of an existing schedule.
    #[arg(value_name = "EXPRESSION|SCHEDULE", required_unless_present = "every")]
    what: Option<String>,
    /// IANA zone of the expression [default: UTC].
    #[arg(long)]
    zone: Option<String>,
    /// Interval, instead of an expression.
    #[arg(long, value_parser = input::duration, value_name = "DURATION", conflicts_with_all = ["what", "zone"])]
    every: Option<Duration>,
    /// Number of ticks.
    #[arg(short = 'n', long = "count", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000), value_name = "N")]
    count: u32,
    /// Show ticks after this instant [default: now, or the schedule's cursor].
    #[arg(long, value_parser = input::instant, value_name = "INSTANT")]
    after: Option<SystemTime>,
}

pub(super) async fn run(global: &Global, output: Output, preview: Preview) -> Result<(), Failure> {
    let count = preview.count as usize;
    let (when, after) = match offline(&preview)? {
        Ok(when) => (when, preview.after.unwrap_or_else(SystemTime::now)),
        Err(schedule) => {
            let client = global.reader().await?;
            let view = client.schedules().get(&schedule).await?;
            client.close().await;
            let record = view.record.map_err(|error| Failure::new(Kind::Failed, error.to_string()))?;
            (record.when, preview.after.unwrap_or(record.cursor))
        }
    };
    instants(output, when.ticks_after(after, count).map_err(|error| Failure::usage(error.to_string()))?)
}

/// Returns what needs no namespace, or else the name of the schedule. An expression contains spaces, and a name none.
fn offline(preview: &Preview) -> Result<Result<When, ScheduleId>, Failure> {
    let usage = |error: bellwether::schedule::SpecError| Failure::usage(error.to_string());
    if let Some(interval) = preview.every {
        return Ok(Ok(When::every(interval).map_err(usage)?));
    }
    let what = preview.what.as_deref().unwrap_or_default();
    if what.trim().contains(char::is_whitespace) || what.is_empty() {
        let zone = preview.zone.as_deref().unwrap_or("UTC");
        return Ok(Ok(When::cron(what, zone).map_err(usage)?));
    }
    if preview.zone.is_some() {
        return Err(Failure::usage(format!(
            "--zone needs a cron expression, but {what:?} is the name of a schedule"
        )));
    }
    Ok(Err(ScheduleId::new(what).map_err(|error| Failure::usage(error.to_string()))?))
}

/// An accepted expression has a calendar.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzzed(preview: Preview) {
    if let Ok(Ok(when)) = offline(&preview) {
        let after = preview.after.unwrap_or(SystemTime::UNIX_EPOCH);
        let ticks = when.ticks_after(after, 3).expect("an accepted expression has a calendar");
        assert!(ticks.is_sorted());
    }
}
