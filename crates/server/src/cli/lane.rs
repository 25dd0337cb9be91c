//! `bellwether lane`.

use bellwether::client::LaneView;
use clap::Subcommand;

use super::exit::Failure;
use super::output::{Format, Output};
use super::{Global, pages};
use bellwether_documents::{LaneDocument, PageQuery, json_fields};

#[derive(Debug, Subcommand)]
pub(crate) enum LaneCommand {
    /// List the lanes that have open jobs, in no particular order.
    ///
    /// The first job of a lane runs, or runs next; it is not shown if the lanes have many jobs. JSON: an array.
    #[command(after_long_help = json_fields::<LaneDocument>())]
    List(PageQuery),
}

pub(crate) async fn run(global: &Global, output: Output, command: LaneCommand) -> Result<(), Failure> {
    let LaneCommand::List(query) = command;
    let limit = query.limit.0;
    let client = global.reader().await?;
    let page = async |after: Option<_>, size| client.list_lanes(after.as_ref(), size).await;
    let (lanes, more) = pages::first(limit, page).await?;
    client.close().await;
    match output.format {
        Format::Json => output.json(&lanes.iter().map(LaneDocument::from).collect::<Vec<_>>())?,
        Format::Table => {
            let row = |lane: &LaneView| {
                let first = lane.first.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
                [lane.lane.to_string(), lane.jobs.to_string(), first]
            };
            output.rows(["LANE", "JOBS", "FIRST JOB"], lanes.iter().map(row).collect())?;
        }
    }
    if more {
        pages::tell_more(global, "lanes", limit);
    }
    Ok(())
}
