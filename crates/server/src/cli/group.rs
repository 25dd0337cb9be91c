//! `bellwether group`.

mod list;
mod members;

use bellwether::client::{GroupError, GroupView};
use bellwether::{Group, GroupId};
use clap::{Args, Subcommand};
use futures::stream::{self, StreamExt as _};

use super::exit::{Failure, LibraryError};
use super::output::{Format, Output};
use super::{Global, input};
use bellwether_documents::{GroupDocument, GroupQuery, GroupSummaryDocument, MemberDocument, json_fields};

#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// List groups, in no particular order.
    ///
    /// Members are not counted: use `group show`. The stage is open, joining, finishing, done, or unreadable. JSON: an
    /// array.
    #[command(after_long_help = json_fields::<GroupSummaryDocument>())]
    List(GroupQuery),
    /// Create a group, or set its total.
    ///
    /// Creating the same group again changes nothing. A group with this id and other properties is a conflict. Submit its members
    /// with `job submit --group`. JSON as for `group show`.
    #[command(after_long_help = json_fields::<GroupDocument>())]
    Create(Group),
    /// Show groups: how many members have ended and how, and what the group waits for.
    ///
    /// The stage is open, joining, finishing or done. JSON: an object for one id, an array for several.
    #[command(after_long_help = json_fields::<GroupDocument>())]
    Show(Ids),
    /// List the members of a group with their jobs, in the order of their numbers.
    ///
    /// Members that were never submitted are left out. JSON: an array; job is as for `job show`, and null if its record was
    /// removed.
    #[command(after_long_help = json_fields::<MemberDocument>())]
    Members(members::Members),
    /// Wait until groups are done, up to --deadline: their members, joins and finished handlers have ended.
    ///
    /// Exit code 5 if a group is not done in time. The outcome of the members does not matter. JSON as for `group
    /// show`.
    #[command(after_long_help = json_fields::<GroupDocument>())]
    Wait(Ids),
    /// Abandon groups: they accept no more members, and are done without a join when their members have ended.
    ///
    /// Use this when the client died before it submitted all members or set the total. The members continue as ordinary jobs:
    /// cancel them with `job cancel`. The leader abandons a group after one to two days without a new member. JSON as for `group
    /// show`.
    #[command(after_long_help = json_fields::<GroupDocument>())]
    Abandon(Ids),
}

/// What the command does with each group.
#[derive(Clone, Copy)]
enum Act {
    Show,
    Wait,
    Abandon,
}

#[derive(Debug, Args)]
pub(crate) struct Ids {
    /// Ids of the groups. `job show` prints the groups of a job's sub-jobs.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<GroupId>,
}

pub(crate) async fn run(global: &Global, output: Output, command: GroupCommand) -> Result<(), Failure> {
    let (ids, act) = match command {
        GroupCommand::List(command) => return list::run(global, output, command).await,
        GroupCommand::Members(command) => return members::run(global, output, command).await,
        GroupCommand::Create(new) => return create(global, output, new).await,
        GroupCommand::Show(Ids { ids }) => (ids, Act::Show),
        GroupCommand::Wait(Ids { ids }) => (ids, Act::Wait),
        GroupCommand::Abandon(Ids { ids }) => (ids, Act::Abandon),
    };
    let client = global.reader().await?;
    let (mut views, mut wrong) = (Vec::new(), Vec::new());
    let one = async |id| match act {
        Act::Show => client.get_group(id).await.map_err(|error| error.report()),
        Act::Wait => client.wait_group(id, global.deadline).await.map(Some).map_err(|error| error.report()),
        Act::Abandon => client.abandon_group(id).await.map(Some).map_err(|error| error.report()),
    };
    let width = if let Act::Wait = act { ids.len() } else { 1 };
    let seen = stream::iter(&ids).map(one).buffered(width).collect::<Vec<_>>().await;
    for (id, seen) in ids.iter().zip(seen) {
        let absent = || GroupError::NotFound { group: id.clone() }.report();
        match seen {
            Ok(Some(view)) => views.push(view),
            Ok(None) => wrong.push(absent()),
            Err(told) => wrong.push(told),
        }
    }
    client.close().await;
    match (output.format, &views[..]) {
        (Format::Json, [view]) if ids.len() == 1 => output.json(&GroupDocument::from(view))?,
        (Format::Json, []) if ids.len() == 1 => {}
        (Format::Json, views) => output.json(&views.iter().map(GroupDocument::from).collect::<Vec<_>>())?,
        (Format::Table, []) => {}
        (Format::Table, views) => table(output, views)?,
    }
    Failure::all(wrong)
}

async fn create(global: &Global, output: Output, group: Group) -> Result<(), Failure> {
    let group = group.traceparent(input::traceparent());
    group.check().map_err(|error| Failure::usage(error.to_string()))?;
    global.zookeeper()?;
    let client = global.writer().await?;
    let view = client.group(group).await?.view().await?;
    client.close().await;
    match output.format {
        Format::Json => output.json(&GroupDocument::from(&view)),
        Format::Table => table(output, &[view]),
    }
}

fn table(output: Output, views: &[GroupView]) -> Result<(), Failure> {
    let header = ["ID", "KIND", "STAGE", "TOTAL", "OPEN", "SUCCEEDED", "CANCELLED", "DEAD", "WAITS FOR"];
    output.rows(header, views.iter().map(row).collect())
}

fn row(view: &GroupView) -> [String; 9] {
    let status = view.status();
    let waits =
        status.split_once(": ").map(|(_, why)| why.strip_prefix("waits for ").unwrap_or(why).to_owned());
    [
        view.id.to_string(),
        view.kind.to_string(),
        view.stage.to_string(),
        view.total.map_or_else(|| "?".to_owned(), |total| total.to_string()),
        view.open.to_string(),
        view.succeeded.to_string(),
        view.cancelled.to_string(),
        view.dead.to_string(),
        waits.or_else(|| view.stopped.clone()).unwrap_or_default(),
    ]
}
