//! `job list`.

use std::time::SystemTime;

use bellwether::client::{Filter, Listing};
use bellwether::{GroupId, JobView, Kind, Lane, State};
use clap::Args;

use super::super::exit::Failure;
use super::super::output::Output;
use super::super::{Global, input, pages};
use super::{is_json, table};
use bellwether_documents::{JobDocument, word};

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only jobs in this state.
    #[arg(long, value_parser = word::<State>())]
    state: Option<State>,
    /// Only jobs of this kind.
    #[arg(long)]
    kind: Option<Kind>,
    /// Only jobs of this lane.
    #[arg(long)]
    lane: Option<Lane>,
    /// Only jobs of this group: its members, its join and its finished job.
    #[arg(long)]
    group: Option<GroupId>,
    /// Only jobs that were submitted at or after this instant.
    #[arg(long, value_parser = input::instant, value_name = "INSTANT")]
    submitted_after: Option<SystemTime>,
    /// Only jobs that were submitted before this instant.
    #[arg(long, value_parser = input::instant, value_name = "INSTANT")]
    submitted_before: Option<SystemTime>,
    /// Only jobs that ended at or after this instant.
    #[arg(long, value_parser = input::instant, value_name = "INSTANT")]
    finished_after: Option<SystemTime>,
    /// Only jobs that ended before this instant.
    #[arg(long, value_parser = input::instant, value_name = "INSTANT")]
    finished_before: Option<SystemTime>,
    /// Maximum number of jobs to print.
    #[arg(long, default_value_t = 100)]
    limit: usize,
}

pub(super) async fn run(global: &Global, output: Output, list: List) -> Result<(), Failure> {
    let client = global.reader().await?;
    let filter = Filter::default()
        .state(list.state)
        .kind(list.kind)
        .lane(list.lane)
        .group(list.group)
        .submitted_after(list.submitted_after)
        .submitted_before(list.submitted_before)
        .finished_after(list.finished_after)
        .finished_before(list.finished_before);
    let mut listing = client.list(filter);
    let printed = if is_json(output) {
        print_json(output, &mut listing, list.limit).await
    } else {
        print_table(output, &mut listing, list.limit).await
    };
    let more = match printed {
        Ok(()) if list.limit > 0 => listing.next().await?.is_some(),
        Ok(()) => false,
        Err(failure) => return Err(failure),
    };
    client.close().await;
    if more {
        pages::tell_more(global, "jobs", list.limit);
    }
    Ok(())
}

/// Prints the newest job first, because all of them are read anyway.
async fn print_table(output: Output, listing: &mut Listing, limit: usize) -> Result<(), Failure> {
    let mut views: Vec<JobView> = Vec::new();
    while views.len() < limit
        && let Some(view) = listing.next().await?
    {
        views.push(view);
    }
    views.sort_by_key(|view| std::cmp::Reverse(view.submitted_at));
    table(output, &views)
}

/// Prints each job immediately, so that a long list needs no memory.
async fn print_json(output: Output, listing: &mut Listing, limit: usize) -> Result<(), Failure> {
    let mut printed = 0;
    while printed < limit
        && let Some(view) = listing.next().await?
    {
        output.text(if printed == 0 { "[" } else { "," })?;
        output.json(&JobDocument::from(&view))?;
        printed += 1;
    }
    output.text(if printed == 0 { "[]" } else { "]" })
}
