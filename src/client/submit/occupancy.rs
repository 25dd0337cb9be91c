//! The number of records per bucket.
//!
//! The limit protects third-party tools (Java clients fail at about five times as many children). So it need not be
//! exact, but it must hold for many concurrent clients. Therefore the counts are read, not kept: all 256 in three
//! batched reads. The more capacity is left, the older the counts may be.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bellwether_core::budget::{BUCKETS, MAX_BUCKET_ENTRIES, MAX_READ_BATCH};
use bellwether_core::name::JobId;
use bellwether_core::path::Bucket;
use bellwether_core::time::Millis;
use bellwether_zk::ReadResult;
use futures::future::try_join_all;

use super::super::runtime::Zk;

/// Maximum age of the counts while a bucket is less than half full: 1,000 clients at full speed could not fill the
/// other half in this time.
const ROOMY_FOR: Duration = Duration::from_secs(10);

/// Maximum age of the counts above that.
const TIGHT_FOR: Duration = Duration::from_secs(1);

/// From this size on, the counts are read before every batch.
const FULL_SOON: usize = MAX_BUCKET_ENTRIES - MAX_BUCKET_ENTRIES / 10;

#[derive(Debug, Default)]
pub(super) struct Occupancy(Mutex<Option<Counts>>);

#[derive(Debug)]
struct Counts {
    read: Millis,
    /// Indexed by bucket: as read, plus those that were created here since.
    entries: Vec<usize>,
}

impl Counts {
    fn serve(&self, now: Millis, buckets: impl Iterator<Item = Bucket>) -> bool {
        let fullest = buckets.map(|bucket| self.entries[bucket.index()]).max().unwrap_or(0);
        is_fresh(fullest, now.since(self.read))
    }
}

/// Whether a count of this size is recent enough at this age.
pub(super) fn is_fresh(entries: usize, age: Duration) -> bool {
    entries < FULL_SOON && (age <= TIGHT_FOR || (age <= ROOMY_FOR && entries < MAX_BUCKET_ENTRIES / 2))
}

impl Occupancy {
    /// Reads the counts, unless the known ones are recent enough for these jobs.
    pub(super) async fn refresh(
        &self,
        zk: &Zk,
        now: Millis,
        jobs: impl Iterator<Item = &JobId>,
    ) -> ReadResult<()> {
        if self.with(|counts| counts.as_ref().is_some_and(|counts| counts.serve(now, jobs.map(Bucket::of)))) {
            return Ok(());
        }
        let paths = Bucket::all().map(Bucket::jobs).collect::<Vec<_>>();
        let nodes =
            try_join_all(paths.chunks(MAX_READ_BATCH).map(|paths| zk.get_many(paths.to_vec()))).await?;
        // A bucket that an operator deleted counts as empty: the write is rejected with the reason.
        let entries = nodes.into_iter().flatten().map(|node| node.map_or(0, |node| node.children));
        let entries = entries.collect::<Vec<_>>();
        debug_assert_eq!(entries.len(), usize::from(BUCKETS));
        self.with(|counts| *counts = Some(Counts { read: now, entries }));
        Ok(())
    }

    /// Takes a place in the job's bucket, or returns how many entries it has.
    pub(super) fn take(&self, job: &JobId) -> Result<(), usize> {
        self.with(|counts| {
            let Some(counts) = counts else { return Ok(()) };
            let entries = &mut counts.entries[Bucket::of(job).index()];
            if *entries >= MAX_BUCKET_ENTRIES {
                return Err(*entries);
            }
            *entries += 1;
            Ok(())
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut Option<Counts>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
