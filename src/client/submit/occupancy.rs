//! How full the buckets of records are.
//!
//! The bound protects other people's tools (Java clients die at about five times as many children), so it need
//! not be exact to the job, but it must hold for many clients at once. So the counts are read, not kept: all 256
//! in three batched reads. They may be as old as the room that is left allows.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bellwether_core::budget::{BUCKETS, MAX_BUCKET_ENTRIES, MAX_READ_BATCH};
use bellwether_core::name::JobId;
use bellwether_core::path::Bucket;
use bellwether_core::time::Millis;
use bellwether_zk::ReadResult;
use futures::future::try_join_all;

use super::super::runtime::Zk;

/// How old counts may be while a bucket is less than half full: it would take 1,000 clients' full speed to
/// fill the other half meanwhile.
const ROOMY_FOR: Duration = Duration::from_secs(10);

/// How old they may be above that.
const TIGHT_FOR: Duration = Duration::from_secs(1);

/// Above this every batch reads the counts first.
const FULL_SOON: usize = MAX_BUCKET_ENTRIES - MAX_BUCKET_ENTRIES / 10;

#[derive(Debug, Default)]
pub(super) struct Occupancy(Mutex<Option<Counts>>);

#[derive(Debug)]
struct Counts {
    read: Millis,
    /// Indexed by bucket: as read, and what was made here since.
    entries: Vec<usize>,
}

impl Counts {
    fn serve(&self, now: Millis, buckets: impl Iterator<Item = Bucket>) -> bool {
        let fullest = buckets.map(|bucket| self.entries[bucket.index()]).max().unwrap_or(0);
        is_fresh(fullest, now.since(self.read))
    }
}

/// Whether a count is good enough to go by, at its age.
pub(super) fn is_fresh(entries: usize, age: Duration) -> bool {
    entries < FULL_SOON && (age <= TIGHT_FOR || (age <= ROOMY_FOR && entries < MAX_BUCKET_ENTRIES / 2))
}

impl Occupancy {
    /// Reads the counts anew unless those at hand are good enough for these jobs.
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
        // A bucket that an operator deleted has no room: the write tells why.
        let entries = nodes.into_iter().flatten().map(|node| node.map_or(0, |node| node.children));
        let entries = entries.collect::<Vec<_>>();
        debug_assert_eq!(entries.len(), usize::from(BUCKETS));
        self.with(|counts| *counts = Some(Counts { read: now, entries }));
        Ok(())
    }

    /// Takes a place in the job's bucket, or says how full it is.
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
mod tests {
    use super::*;

    const NOW: Millis = Millis(60_000);

    fn counts(entries: usize, age: u64) -> Counts {
        Counts { read: Millis(NOW.0 - age), entries: vec![entries; usize::from(BUCKETS)] }
    }

    #[test]
    fn counts_may_be_as_old_as_the_room_left_allows() {
        let serve = |entries, age| counts(entries, age).serve(NOW, Bucket::all());
        assert!(serve(10, 5_000), "half empty: seconds do not matter");
        assert!(!serve(10, 11_000));
        assert!(serve(3_000, 500));
        assert!(!serve(3_000, 1_500));
        assert!(!serve(4_500, 0), "nearly full: read before every batch");
    }

    #[test]
    fn a_full_bucket_has_no_place_and_says_how_full_it_is() {
        let occupancy = Occupancy(Mutex::new(Some(counts(MAX_BUCKET_ENTRIES - 1, 0))));
        let job = JobId::new("a").unwrap();
        assert_eq!(occupancy.take(&job), Ok(()));
        assert_eq!(occupancy.take(&job), Err(MAX_BUCKET_ENTRIES));
    }
}
