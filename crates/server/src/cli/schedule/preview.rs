//! `schedule preview`.

use std::time::SystemTime;

use bellwether::ScheduleId;
use clap::Args;

use super::super::Global;
use super::super::exit::{Failure, Kind};
use super::super::output::Output;
use super::instants;
use bellwether_documents::PreviewedRule;

#[derive(Debug, Args)]
pub(crate) struct Preview {
    /// Name of an existing schedule, instead of a rule.
    #[arg(conflicts_with_all = ["cron", "zone", "every", "anchor", "at"], required_unless_present_any = ["cron", "every", "at"])]
    schedule: Option<ScheduleId>,
    #[command(flatten)]
    rule: PreviewedRule,
}

pub(super) async fn run(
    global: &Global,
    output: Output,
    Preview { schedule, rule }: Preview,
) -> Result<(), Failure> {
    let Some(schedule) = schedule else {
        return instants(output, rule.ticks(SystemTime::now())?);
    };
    let count = rule.count()?;
    let client = global.reader().await?;
    let view = client.schedules().get(&schedule).await?;
    client.close().await;
    let record = view.record.map_err(|error| Failure::new(Kind::Failed, error.to_string()))?;
    let ticks = record.when.ticks_after(rule.after().unwrap_or(record.cursor), count);
    instants(output, ticks.map_err(|error| Failure::usage(error.to_string()))?)
}

/// An accepted rule has a calendar.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzzed(Preview { rule, .. }: Preview) {
    if let Ok(Some(when)) = rule.when() {
        let after = rule.after().unwrap_or(SystemTime::UNIX_EPOCH);
        let ticks = when.ticks_after(after, 3).expect("an accepted rule has a calendar");
        assert!(ticks.is_sorted());
    }
}
