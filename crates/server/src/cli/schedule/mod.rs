//! `bellwether schedule`.

mod add;
mod show;
mod ticks;

use bellwether::client::{ScheduleChange, ScheduleError, ScheduleState, ScheduleView};
use bellwether::schedule::instant;
use bellwether::{Client, ScheduleId};
use clap::{ArgGroup, Args, Subcommand};
use serde_json::json;

use super::exit::{Failure, Kind, LibraryError};
use super::output::{Format, Output};
use super::{Global, pages};
use bellwether_documents::{
    NextTicksDocument, PageQuery, ScheduleDocument, ScheduleTicksDocument, SubmittedDocument, TickQuery,
    json_fields,
};

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// Add a schedule: when it ticks, and the job that each tick submits.
    ///
    /// Adding the same schedule again changes nothing. A schedule with the same id and another spec is a conflict,
    /// unless --replace is given. JSON as for `schedule show`, with added: created, unchanged or replaced.
    #[command(after_long_help = json_fields::<ScheduleDocument>())]
    Add(Box<add::Add>),
    /// Change when a schedule ticks, or how it handles missed and overlapping ticks. Omitted options do not change.
    ///
    /// The next tick is the first one after now, and a pause continues. To change the job, add the schedule again with --replace.
    #[command(after_long_help = json_fields::<ScheduleDocument>())]
    Change(Box<Change>),
    /// List the schedules by id.
    ///
    /// JSON: an array of objects as for `schedule show`; their payloads are null.
    #[command(after_long_help = json_fields::<ScheduleDocument>())]
    List(PageQuery),
    /// Show schedules with their next and last ticks, and the payload of their jobs.
    #[command(after_long_help = json_fields::<ScheduleDocument>())]
    Show(Names),
    /// Pause schedules. Jobs that they have submitted continue.
    #[command(after_long_help = json_fields::<ScheduleDocument>())]
    Pause(Names),
    /// Resume schedules with the first tick after now. Ticks during the pause get no jobs.
    #[command(after_long_help = json_fields::<ScheduleDocument>())]
    Resume(Names),
    /// Submit the job of a schedule now, in addition to its ticks.
    ///
    /// JSON: an object about the job.
    #[command(after_long_help = json_fields::<SubmittedDocument>())]
    Trigger(Name),
    /// Show the next ticks of a rule, before a schedule is added. Needs no ZooKeeper.
    ///
    /// JSON: an object.
    #[command(after_long_help = json_fields::<NextTicksDocument>(), group(ArgGroup::new("rule").args(["cron", "every", "at"]).required(true)))]
    Preview(ticks::Preview),
    /// Show the next and the last ticks of a schedule, with the jobs of the last ones.
    ///
    /// JSON: an object.
    #[command(after_long_help = json_fields::<ScheduleTicksDocument>())]
    Ticks(Ticks),
    /// Remove schedules. Their jobs are kept.
    ///
    /// JSON: an array of objects with id and removed.
    Remove(Names),
}

#[derive(Debug, Args)]
pub(crate) struct Change {
    /// Id of the schedule.
    schedule: ScheduleId,
    #[command(flatten)]
    change: ScheduleChange,
}

#[derive(Debug, Args)]
pub(crate) struct Names {
    /// Ids of the schedules.
    #[arg(required = true, value_name = "SCHEDULE")]
    schedules: Vec<ScheduleId>,
}

#[derive(Debug, Args)]
pub(crate) struct Ticks {
    /// Id of the schedule.
    schedule: ScheduleId,
    #[command(flatten)]
    query: TickQuery,
}

#[derive(Debug, Args)]
pub(crate) struct Name {
    /// Id of the schedule.
    #[arg(value_name = "SCHEDULE")]
    schedule: ScheduleId,
}

pub(crate) async fn run(global: &Global, output: Output, command: ScheduleCommand) -> Result<(), Failure> {
    match command {
        ScheduleCommand::Add(add) => add::run(global, output, *add).await,
        ScheduleCommand::Preview(preview) => ticks::preview(output, &preview),
        ScheduleCommand::Ticks(Ticks { schedule, query }) => {
            ticks::list(global, output, &schedule, query).await
        }
        ScheduleCommand::List(query) => {
            let limit = query.limit.0;
            let client = global.reader().await?;
            let schedules = client.schedules();
            let page = async |after: Option<_>, size| schedules.list(after.as_ref(), size).await;
            let (views, more) = pages::first(limit, page).await?;
            client.close().await;
            match output.format {
                Format::Json => output.json(&ScheduleDocument::list(&views))?,
                Format::Table => table(output, &views)?,
            }
            if more {
                pages::tell_more(global, "schedules", limit);
            }
            Ok(())
        }
        ScheduleCommand::Change(change) => {
            let Change { schedule, change } = *change;
            change.check().map_err(|error| Failure::usage(error.to_string()))?;
            let ids = [schedule];
            changed(global, output, &ids, async |client, id| client.schedules().change(id, &change).await)
                .await
        }
        ScheduleCommand::Show(names) => show::run(global, output, &names).await,
        ScheduleCommand::Pause(Names { schedules }) => {
            changed(global, output, &schedules, async |client, id| client.schedules().pause(id).await).await
        }
        ScheduleCommand::Resume(Names { schedules }) => {
            changed(global, output, &schedules, async |client, id| client.schedules().resume(id).await).await
        }
        ScheduleCommand::Trigger(Name { schedule }) => {
            let client = global.reader().await?;
            let job = client.schedules().trigger(&schedule).await?;
            client.close().await;
            match output.format {
                Format::Json => output.json(&SubmittedDocument::from(&job)),
                Format::Table => output.text(job.id().as_str()),
            }
        }
        ScheduleCommand::Remove(Names { schedules }) => remove(global, output, &schedules).await,
    }
}

/// Applies an operation to each schedule and prints its state afterwards.
async fn changed(
    global: &Global,
    output: Output,
    ids: &[ScheduleId],
    act: impl AsyncFn(&Client, &ScheduleId) -> Result<ScheduleView, ScheduleError>,
) -> Result<(), Failure> {
    let (views, wrong) = each(global, ids, act).await?;
    match output.format {
        Format::Json => documents(output, ids.len() == 1, &views)?,
        Format::Table if views.is_empty() => {}
        Format::Table => table(output, &views)?,
    }
    Failure::all(wrong)
}

/// Prints an object if one schedule was named, and an array otherwise; nothing if no schedule was found.
fn documents(output: Output, one: bool, views: &[ScheduleView]) -> Result<(), Failure> {
    match views {
        [] => Ok(()),
        [view] if one => output.json(&ScheduleDocument::from(view)),
        views => output.json(&views.iter().map(ScheduleDocument::from).collect::<Vec<_>>()),
    }
}

/// Applies an operation to each schedule. A failure does not stop the others. Returns the schedules and the failures.
async fn each(
    global: &Global,
    ids: &[ScheduleId],
    act: impl AsyncFn(&Client, &ScheduleId) -> Result<ScheduleView, ScheduleError>,
) -> Result<(Vec<ScheduleView>, Vec<(Kind, String)>), Failure> {
    let client = global.reader().await?;
    let (mut views, mut wrong) = (Vec::new(), Vec::new());
    for id in ids {
        match act(&client, id).await {
            Ok(view) => views.push(view),
            Err(error) => wrong.push(error.report()),
        }
    }
    client.close().await;
    Ok((views, wrong))
}

async fn remove(global: &Global, output: Output, ids: &[ScheduleId]) -> Result<(), Failure> {
    let client = global.reader().await?;
    let (mut removed, mut wrong) = (Vec::new(), Vec::new());
    for id in ids {
        match client.schedules().remove(id).await {
            Ok(true) => removed.push((id, true)),
            Ok(false) => {
                removed.push((id, false));
                wrong.push(ScheduleError::NotFound(id.clone()).report());
            }
            Err(error) => wrong.push(error.report()),
        }
    }
    client.close().await;
    if output.format == Format::Json {
        let document = removed.iter().map(|(id, was)| json!({ "id": id.as_str(), "removed": was }));
        output.json(&document.collect::<Vec<_>>())?;
    }
    Failure::all(wrong)
}

/// Returns the word of the state for a table.
fn state(view: &ScheduleView) -> &'static str {
    view.state().map_or("unreadable", ScheduleState::as_str)
}

fn table(output: Output, views: &[ScheduleView]) -> Result<(), Failure> {
    let rows = views.iter().map(|view| {
        let (when, last, counts) = match &view.record {
            Ok(record) => (
                record.when.to_string(),
                record.last_tick.map(instant).unwrap_or_default(),
                format!("{} / {}", record.ticked, record.skipped),
            ),
            Err(error) => (format!("unreadable: {error}"), String::new(), String::new()),
        };
        let next = view.next().map(instant).unwrap_or_default();
        [view.id.to_string(), state(view).to_owned(), when, next, last, counts]
    });
    output.rows(["ID", "STATE", "WHEN", "NEXT", "LAST", "TICKED / SKIPPED"], rows.collect())
}

#[cfg(any(test, fuzzing))]
pub(super) fn fuzzed(command: ScheduleCommand) {
    match command {
        ScheduleCommand::Add(add) => add::fuzzed(*add),
        ScheduleCommand::Preview(rule) => ticks::fuzzed(&rule),
        ScheduleCommand::Change(change) => drop(change.change.check()),
        ScheduleCommand::List(_)
        | ScheduleCommand::Ticks(_)
        | ScheduleCommand::Show(_)
        | ScheduleCommand::Pause(_)
        | ScheduleCommand::Resume(_)
        | ScheduleCommand::Trigger(_)
        | ScheduleCommand::Remove(_) => {}
    }
}
