//! How full the minutes of delayed jobs are.
//!
//! A minute is one list, as a bucket is, and is bounded as one ([`Occupancy`](super::occupancy::Occupancy)). Only those are
//! known that jobs were submitted to of late. Jobs that wait out a backoff are among the entries and are not refused.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use bellwether_core::budget::MAX_BUCKET_ENTRIES;
use bellwether_core::path;
use bellwether_zk::{ReadResult, Zk};

use super::occupancy::is_fresh;

/// Minutes that are remembered: a forgotten one costs a read.
const MAX_MINUTES: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Minutes(Mutex<BTreeMap<u64, Count>>);

#[derive(Debug)]
struct Count {
    read: Instant,
    /// As read, and what was made here since.
    entries: usize,
}

impl Minutes {
    /// Reads anew the counts that are not good enough. At most as many minutes as one batched read takes.
    pub(super) async fn refresh(&self, zk: &Zk, mut minutes: Vec<u64>) -> ReadResult<()> {
        minutes.sort_unstable();
        minutes.dedup();
        self.with(|known| {
            minutes
                .retain(|minute| known.get(minute).is_none_or(|count| !is_fresh(count.entries, count.read)));
        });
        if minutes.is_empty() {
            return Ok(());
        }
        let read = Instant::now();
        let nodes = zk.get_many(minutes.iter().map(|minute| path::delayed_minute(*minute)).collect()).await?;
        self.with(|known| {
            if known.len() + minutes.len() > MAX_MINUTES {
                known.clear();
            }
            for (minute, node) in minutes.into_iter().zip(nodes) {
                let entries = node.map_or(0, |node| node.children);
                known.insert(minute, Count { read, entries });
            }
        });
        Ok(())
    }

    /// Takes a place in a minute, or says how full it is.
    pub(super) fn take(&self, minute: u64) -> Result<(), usize> {
        self.with(|known| {
            let Some(Count { entries, .. }) = known.get_mut(&minute) else { return Ok(()) };
            if *entries >= MAX_BUCKET_ENTRIES {
                return Err(*entries);
            }
            *entries += 1;
            Ok(())
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<u64, Count>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_minute_has_no_place_and_says_how_full_it_is() {
        let count = Count { read: Instant::now(), entries: MAX_BUCKET_ENTRIES - 1 };
        let minutes = Minutes(Mutex::new(BTreeMap::from([(7, count)])));
        assert_eq!(minutes.take(7), Ok(()));
        assert_eq!(minutes.take(7), Err(MAX_BUCKET_ENTRIES));
        assert_eq!(minutes.take(8), Ok(()), "not known, so there is room");
    }
}
