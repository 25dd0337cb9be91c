//! `bellwether lane`.

use bellwether::client::{LaneView, MAX_PAGE};
use clap::{Args, Subcommand};

use super::Global;
use super::exit::Failure;
use super::output::{Format, Output};
use bellwether_documents::LaneDocument;

#[derive(Debug, Subcommand)]
pub(crate) enum LaneCommand {
    /// List the lanes that have open jobs, in no particular order.
    ///
    /// The first job of a lane runs, or runs next; it is not shown if the lanes have many jobs. JSON: an array of objects with
    /// lane, jobs, first.
    List(List),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Maximum number of lanes to print.
    #[arg(long, default_value_t = 100)]
    limit: usize,
}

pub(crate) async fn run(global: &Global, output: Output, command: LaneCommand) -> Result<(), Failure> {
    let LaneCommand::List(List { limit }) = command;
    let client = global.reader().await?;
    let (mut lanes, mut after): (Vec<LaneView>, _) = (Vec::new(), None);
    // One more than is printed shows whether there are more.
    while lanes.len() <= limit {
        let size = (limit - lanes.len()).saturating_add(1).min(MAX_PAGE);
        let page = client.list_lanes(after.as_ref(), size).await?;
        lanes.extend(page.lanes);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    client.close().await;
    let more = lanes.len() > limit;
    lanes.truncate(limit);
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
    if more && !global.quiet {
        eprintln!("bellwether: there are further lanes: --limit {} shows more", limit.saturating_mul(10));
    }
    Ok(())
}
