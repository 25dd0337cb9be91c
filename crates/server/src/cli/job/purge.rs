//! `job purge`.

use bellwether::client::{Purge, Purged};
use bellwether_documents::PurgedDocument;

use super::super::Global;
use super::super::exit::Failure;
use super::super::output::{Format, Output};

pub(super) async fn run(global: &Global, output: Output, purge: Purge) -> Result<(), Failure> {
    let client = global.reader().await?;
    let bar = global.progress("buckets", Purged::BUCKETS);
    let progress = |done: Purged| bar.set_position(done.buckets as u64);
    let done = client.purge(&purge, progress).await;
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
    if !purge.removes() && done.matched > 0 && !global.quiet {
        eprintln!("bellwether: nothing was removed: use --remove to remove {} records", done.matched);
    }
    Ok(())
}
