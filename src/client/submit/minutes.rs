//! The number of delayed jobs per minute.
//!
//! A minute is one list of znodes, like a bucket, and has the same limit
//! ([`Occupancy`](super::occupancy::Occupancy)). Only minutes of recent submissions are known. The number of minutes
//! has its own limit. Jobs in a backoff count in both numbers, but are never refused.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bellwether_core::budget::{MAX_BUCKET_ENTRIES, MAX_MINUTES};
use bellwether_core::path;
use bellwether_core::time::Millis;
use bellwether_zk::ReadResult;
use futures::future::try_join;

use super::super::runtime::Zk;
use super::occupancy::Ages;

/// 1,000 clients at full speed could not fill the other half of a minute in the first age.
const AGES: Ages = Ages { roomy: Duration::from_secs(10), tight: Duration::from_secs(1) };

/// Limit of remembered minutes. A forgotten minute costs a read.
const REMEMBERED: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Minutes(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    minutes: BTreeMap<u64, Count>,
    /// The number of minutes: as read, plus those that were created here since.
    all: usize,
}

/// The reason why there is no capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// The minute has this many entries.
    Minute(usize),
    /// There are this many minutes, and the job's minute is not among them.
    Minutes(usize),
}

#[derive(Debug)]
struct Count {
    read: Millis,
    /// As read, plus those that were created here since.
    entries: usize,
    /// Whether the minute's znode exists.
    there: bool,
}

impl Minutes {
    /// Reads the counts that are too old. At most as many minutes as one batched read takes.
    pub(super) async fn refresh(&self, zk: &Zk, now: Millis, mut minutes: Vec<u64>) -> ReadResult<()> {
        minutes.sort_unstable();
        minutes.dedup();
        self.with(|known| {
            minutes.retain(|minute| {
                known
                    .minutes
                    .get(minute)
                    .is_none_or(|count| !AGES.allow(count.entries, now.since(count.read)))
            });
        });
        if minutes.is_empty() {
            return Ok(());
        }
        let paths = minutes.iter().map(|minute| path::delayed_minute(*minute)).collect();
        let (nodes, delayed) = try_join(zk.get_many(paths), zk.get(path::DELAYED.to_owned())).await?;
        let all = delayed.map_or(0, |node| node.children);
        self.with(|known| {
            known.all = all;
            if known.minutes.len() + minutes.len() > REMEMBERED {
                known.minutes.clear();
            }
            for (minute, node) in minutes.into_iter().zip(nodes) {
                let (entries, there) = node.map_or((0, false), |node| (node.children, true));
                known.minutes.insert(minute, Count { read: now, entries, there });
            }
        });
        Ok(())
    }

    /// Takes a place in a minute, or returns why it cannot.
    pub(super) fn take(&self, minute: u64) -> Result<(), Full> {
        self.with(|known| {
            let Some(Count { entries, there, .. }) = known.minutes.get_mut(&minute) else { return Ok(()) };
            if *entries >= MAX_BUCKET_ENTRIES {
                return Err(Full::Minute(*entries));
            }
            if !*there && known.all >= MAX_MINUTES {
                return Err(Full::Minutes(known.all));
            }
            known.all += usize::from(!*there);
            (*entries, *there) = (*entries + 1, true);
            Ok(())
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut Known) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
