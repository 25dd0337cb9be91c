//! `job purge`.

use bellwether::client::Purged;
use bellwether_documents::{NewPurge, PurgedJobs};
use serde_json::json;

use super::super::Global;
use super::super::exit::Failure;
use super::super::output::{Format, Output};

pub(super) async fn run(global: &Global, output: Output, purge: NewPurge) -> Result<(), Failure> {
    let dry_run = !purge.remove;
    let jobs = purge.jobs()?;
    let client = global.reader().await?;
    let bar = global.progress("buckets", Purged::BUCKETS);
    let progress = |done: Purged| bar.set_position(done.buckets as u64);
    let done = match (&jobs, dry_run) {
        (PurgedJobs::Selected(purge), false) => client.purge(purge, progress).await,
        (PurgedJobs::Selected(purge), true) => client.would_purge(purge, progress).await,
        (PurgedJobs::Given(jobs), false) => client.purge_jobs(jobs, progress).await,
        (PurgedJobs::Given(jobs), true) => client.would_purge_jobs(jobs, progress).await,
    };
    bar.finish_and_clear();
    let done = done?;
    client.close().await;
    match output.format {
        Format::Json => output.json(&json!({
            "matched": done.matched, "removed": done.removed, "too_recent": done.too_recent, "dry_run": dry_run,
        }))?,
        Format::Table => {
            let cells = [done.matched, done.removed, done.too_recent].map(|count| count.to_string());
            output.rows(["MATCHED", "REMOVED", "TOO RECENT"], vec![cells])?;
        }
    }
    if dry_run && done.matched > 0 && !global.quiet {
        eprintln!("bellwether: nothing was removed: use --remove to remove {} records", done.matched);
    }
    Ok(())
}
