//! `job purge`.

use bellwether::client::Purged;
use bellwether_documents::{NewPurge, PurgedDocument};

use super::super::Global;
use super::super::exit::Failure;
use super::super::output::{Format, Output};

pub(super) async fn run(global: &Global, output: Output, purge: NewPurge) -> Result<(), Failure> {
    let remove = purge.remove;
    let jobs = purge.jobs()?;
    let client = global.reader().await?;
    let bar = global.progress("buckets", Purged::BUCKETS);
    let progress = |done: Purged| bar.set_position(done.buckets as u64);
    let done = jobs.run(&client, remove, progress).await;
    bar.finish_and_clear();
    let done = done?;
    client.close().await;
    match output.format {
        Format::Json => output.json(&PurgedDocument::new(&done, true))?,
        Format::Table => {
            let cells = [done.matched, done.removed, done.too_recent].map(|count| count.to_string());
            output.rows(["MATCHED", "REMOVED", "TOO RECENT"], vec![cells])?;
        }
    }
    if !remove && done.matched > 0 && !global.quiet {
        eprintln!("bellwether: nothing was removed: use --remove to remove {} records", done.matched);
    }
    Ok(())
}
