//! `job list`.

use bellwether::JobView;
use bellwether::client::{Filter, Listing};
use clap::Args;

use super::super::exit::Failure;
use super::super::output::{Output, without_payloads};
use super::super::{Global, pages};
use super::{is_json, table};
use bellwether_documents::{JobDocument, JobPageQuery};

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    page: JobPageQuery,
}

pub(super) async fn run(
    global: &Global,
    output: Output,
    List { filter, page: query }: List,
) -> Result<(), Failure> {
    let client = global.reader().await?;
    let limit = query.limit.0;
    let mut listing = client.list(filter);
    let printed = if is_json(output) {
        print_json(output, &mut listing, limit, query.payloads).await
    } else {
        print_table(output, &mut listing, limit).await
    };
    let more = match printed {
        Ok(()) if limit > 0 => listing.next().await?.is_some(),
        Ok(()) => false,
        Err(failure) => return Err(failure),
    };
    client.close().await;
    if more {
        pages::tell_more(global, "jobs", limit);
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
async fn print_json(
    output: Output,
    listing: &mut Listing,
    limit: usize,
    payloads: bool,
) -> Result<(), Failure> {
    let mut printed = 0;
    while printed < limit
        && let Some(mut view) = listing.next().await?
    {
        if !payloads {
            without_payloads(&mut view);
        }
        output.text(if printed == 0 { "[" } else { "," })?;
        output.json(&JobDocument::from(&view))?;
        printed += 1;
    }
    output.text(if printed == 0 { "[]" } else { "]" })
}
