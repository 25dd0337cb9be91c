//! `schedule preview` and `schedule ticks`.

use std::time::SystemTime;

use bellwether::ScheduleId;
use bellwether::client::Rule;
use bellwether::schedule::instant;
use clap::Args;

use super::super::Global;
use super::super::exit::Failure;
use super::super::output::{Format, Output};
use bellwether_documents::{NextTicksDocument, PreviewQuery, ScheduleTicksDocument, TickQuery};

#[derive(Debug, Args)]
pub(crate) struct Preview {
    #[command(flatten)]
    rule: Rule,
    #[command(flatten)]
    query: PreviewQuery,
}

pub(super) fn preview(output: Output, Preview { rule, query }: &Preview) -> Result<(), Failure> {
    let ticks = query.ticks(rule, SystemTime::now())?;
    match output.format {
        Format::Json => output.json(&NextTicksDocument::new(&ticks)),
        Format::Table if ticks.is_empty() => Ok(()),
        Format::Table => output.text(&ticks.into_iter().map(instant).collect::<Vec<_>>().join("\n")),
    }
}

pub(super) async fn list(
    global: &Global,
    output: Output,
    schedule: &ScheduleId,
    query: TickQuery,
) -> Result<(), Failure> {
    let limit = query.limit.checked()?;
    let client = global.reader().await?;
    let ticks = client.schedules().ticks(schedule, limit).await?;
    client.close().await;
    match output.format {
        Format::Json => output.json(&ScheduleTicksDocument::from(&ticks)),
        Format::Table => {
            // In the order of time.
            let last = ticks.last.iter().rev().map(|tick| {
                let job = tick.job.as_ref();
                let state = job.map_or_else(|| "-".to_owned(), |job| job.state.to_string());
                [instant(tick.at), job.map_or_else(|| "-".to_owned(), |job| job.id.to_string()), state]
            });
            let next = ticks.next.iter().map(|at| [instant(*at), String::new(), "next".to_owned()]);
            output.rows(["TICK", "JOB", "STATE"], last.chain(next).collect())
        }
    }
}

/// An accepted rule has a calendar.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzzed(Preview { rule, .. }: &Preview) {
    if let Ok(when) = rule.when() {
        let ticks = when.ticks_after(SystemTime::UNIX_EPOCH, 3).expect("an accepted rule has a calendar");
        assert!(ticks.is_sorted());
    }
}
