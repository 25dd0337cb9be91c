//! `job purge`.

use std::time::Duration;

use bellwether::client::{Ended, Purge as Which, Purged};
use bellwether::{JobId, Kind};
use bellwether_documents::word;
use clap::Args;
use serde_json::json;

use super::super::exit::Failure;
use super::super::output::{Format, Output};
use super::super::{Global, input};

#[derive(Debug, Args)]
pub(crate) struct Purge {
    /// Only these jobs, in any final state. Without them, the jobs are selected by state, kind and age.
    #[arg(conflicts_with_all = ["state", "kind", "older_than"])]
    jobs: Vec<JobId>,
    /// Final state of the jobs.
    #[arg(long, value_parser = word::<Ended>(), default_value = "dead")]
    state: Ended,
    /// Only jobs of this kind.
    #[arg(long)]
    kind: Option<Kind>,
    /// Only jobs that ended at least this long ago.
    #[arg(long, default_value = "0s", value_parser = input::duration, value_name = "DURATION")]
    older_than: Duration,
    /// Remove the records. Without this option they are only counted.
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(global: &Global, output: Output, purge: Purge) -> Result<(), Failure> {
    let client = global.reader().await?;
    let which = Which::of(purge.state).kind(purge.kind).older_than(purge.older_than);
    let bar = global.progress("buckets", Purged::BUCKETS);
    let progress = |done: Purged| bar.set_position(done.buckets as u64);
    let done = match (&purge.jobs[..], purge.yes) {
        ([], true) => client.purge(&which, progress).await,
        ([], false) => client.would_purge(&which, progress).await,
        (jobs, true) => client.purge_jobs(jobs, progress).await,
        (jobs, false) => client.would_purge_jobs(jobs, progress).await,
    };
    bar.finish_and_clear();
    let done = done?;
    client.close().await;
    let dry_run = !purge.yes;
    match output.format {
        Format::Json => output.json(&json!({
            "matched": done.matched, "removed": done.removed, "young": done.young, "dry_run": dry_run,
        }))?,
        Format::Table => {
            let cells = [done.matched, done.removed, done.young].map(|count| count.to_string());
            output.rows(["MATCHED", "REMOVED", "TOO YOUNG"], vec![cells])?;
        }
    }
    if dry_run && done.matched > 0 && !global.quiet {
        eprintln!("bellwether: nothing was removed: use --yes to remove {} records", done.matched);
    }
    Ok(())
}
