//! The number of records per sub-bucket.
//!
//! The limit protects third-party tools (Java clients fail at about five times as many children). So it need not be
//! exact, but it must hold for many concurrent clients. Therefore the counts are read, not kept: all 4,096 in eight
//! batched reads. The more capacity is left, the older the counts may be.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bellwether_core::budget::{MAX_BUCKET_ENTRIES, MAX_STAT_BATCH};
use bellwether_core::name::JobId;
use bellwether_core::path::SubBucket;
use bellwether_core::time::Millis;
use bellwether_zk::ReadResult;
use futures::future::try_join_all;

use super::super::runtime::Zk;

/// The first age is short for 10 million jobs, which would fill the other half of all sub-buckets; the second one for
/// 2 million.
const AGES: Ages = Ages { roomy: Duration::from_secs(60), tight: Duration::from_secs(5) };

/// How old counts may be while more capacity is left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ages {
    /// Up to half of the capacity.
    pub(super) roomy: Duration,
    /// Above that.
    pub(super) tight: Duration,
}

/// From this size on, the counts are read before every batch.
const FULL_SOON: usize = MAX_BUCKET_ENTRIES - MAX_BUCKET_ENTRIES / 10;

#[derive(Debug, Default)]
pub(super) struct Occupancy(Mutex<Option<Counts>>);

#[derive(Debug)]
struct Counts {
    read: Millis,
    /// Indexed by sub-bucket: as read, plus those that were created here since.
    entries: Vec<usize>,
}

impl Counts {
    fn serve(&self, now: Millis, buckets: impl Iterator<Item = SubBucket>) -> bool {
        let fullest = buckets.map(|bucket| self.entries[bucket.index()]).max().unwrap_or(0);
        AGES.allow(fullest, now.since(self.read))
    }
}

impl Ages {
    /// Whether a count of this size is recent enough at this age.
    pub(super) fn allow(self, entries: usize, age: Duration) -> bool {
        entries < FULL_SOON && (age <= self.tight || (age <= self.roomy && entries < MAX_BUCKET_ENTRIES / 2))
    }
}

impl Occupancy {
    /// Reads the counts, unless the known ones are recent enough for these jobs.
    pub(super) async fn refresh(
        &self,
        zk: &Zk,
        now: Millis,
        jobs: impl Iterator<Item = &JobId>,
    ) -> ReadResult<()> {
        if self
            .with(|counts| counts.as_ref().is_some_and(|counts| counts.serve(now, jobs.map(SubBucket::of))))
        {
            return Ok(());
        }
        let paths = SubBucket::all().map(SubBucket::path).collect::<Vec<_>>();
        let nodes =
            try_join_all(paths.chunks(MAX_STAT_BATCH).map(|paths| zk.get_many(paths.to_vec()))).await?;
        // A sub-bucket that an operator deleted counts as empty: the write is rejected with the reason.
        let entries = nodes.into_iter().flatten().map(|node| node.map_or(0, |node| node.children));
        let entries = entries.collect::<Vec<_>>();
        self.with(|counts| *counts = Some(Counts { read: now, entries }));
        Ok(())
    }

    /// Takes a place in the job's sub-bucket, or returns how many entries it has.
    pub(super) fn take(&self, job: &JobId) -> Result<(), usize> {
        self.with(|counts| {
            let Some(counts) = counts else { return Ok(()) };
            let entries = &mut counts.entries[SubBucket::of(job).index()];
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
