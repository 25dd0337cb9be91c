//! How much room a worker has.
//!
//! The truth is the number of jobs in its inbox. It is listed when it may have changed, and what was assigned
//! after the list was asked for is added: requests of one session are served in order, so a list shows all
//! batches that were sent before it and none that were sent after. That errs to the safe side: a job counts
//! from when it is planned until a list that was asked for later no longer shows it.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::name::{JobId, Kind, Tag};
use crate::time::Millis;
use crate::worker::WorkerInfo;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Capacity {
    registration: Option<(WorkerInfo, i32)>,
    listing: Listing,
    /// Jobs in the inbox by the last list; `None` before the first.
    held: Option<usize>,
    /// Planned before the list that is in flight was asked for.
    before: BTreeSet<JobId>,
    /// Planned since.
    since: BTreeSet<JobId>,
    /// Since when it is taken for hung, and how it was registered then.
    hangs: Option<(Millis, i32)>,
}

/// For how long a worker that hangs gets nothing, unless it registers anew: it may hang still, and every job that it gets
/// then is late by a lease. By the next sweep after that it is tried again.
pub const SHUNNED: Duration = Duration::from_secs(60);

/// Whether the last list is still true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Listing {
    Fresh,
    Stale,
    InFlight { stale: bool },
}

impl Capacity {
    pub(super) fn unknown() -> Self {
        Self {
            registration: None,
            listing: Listing::Stale,
            held: None,
            before: BTreeSet::new(),
            since: BTreeSet::new(),
            hangs: None,
        }
    }

    pub(super) fn register(&mut self, info: WorkerInfo, version: i32) {
        // What writes its registration anew does not hang.
        self.hangs = self.hangs.filter(|(_, then)| *then == version);
        self.registration = Some((info, version));
    }

    pub(super) fn hangs(&mut self, now: Millis) {
        self.hangs = Some((now, self.version()));
    }

    /// Tries a worker again that has got nothing for long.
    pub(super) fn forgive(&mut self, now: Millis) {
        self.hangs = self.hangs.filter(|(since, _)| now.since(*since) < SHUNNED);
    }

    /// Takes the worker out until it registers anew.
    pub(super) fn close(&mut self) {
        self.registration = None;
    }

    pub(super) fn version(&self) -> i32 {
        self.registration.as_ref().map_or(-1, |(_, version)| *version)
    }

    /// The lease of a kind that has one of its own.
    pub(super) fn lease(&self, kind: &Kind) -> Option<Duration> {
        self.registration.as_ref()?.0.leases.get(kind).copied()
    }

    pub(super) fn slots(&self) -> usize {
        self.registration.as_ref().map_or(0, |(info, _)| info.slots as usize)
    }

    pub(super) fn used(&self) -> usize {
        self.held.unwrap_or(0) + self.before.len() + self.since.len()
    }

    pub(super) fn can_take(&self, kind: &Kind, tags: &[Tag]) -> bool {
        let able = self.registration.as_ref().is_some_and(|(info, _)| {
            !info.draining
                && info.kinds.binary_search(kind).is_ok()
                && tags.iter().all(|tag| info.tags.binary_search(tag).is_ok())
        });
        able && self.hangs.is_none() && self.held.is_some() && self.used() < self.slots()
    }

    /// Whether it is registered, and nobody knows yet how much room it has.
    pub(super) fn is_new(&self) -> bool {
        self.registration.is_some() && self.held.is_none()
    }

    /// Orders by the share of slots taken: `used/slots`, compared without division.
    pub(super) fn load_cmp(&self, other: &Self) -> Ordering {
        (self.used() * other.slots()).cmp(&(other.used() * self.slots()))
    }

    pub(super) fn take(&mut self, job: JobId) {
        self.since.insert(job);
    }

    pub(super) fn give_back(&mut self, job: &JobId) {
        if !self.since.remove(job) {
            self.before.remove(job);
        }
    }

    pub(super) fn changed(&mut self) {
        self.listing = match self.listing {
            Listing::Fresh | Listing::Stale => Listing::Stale,
            Listing::InFlight { .. } => Listing::InFlight { stale: true },
        };
    }

    /// Whether to list now. Unless `idle`, a worker with much room is not worth a list: what was planned counts
    /// until then.
    pub(super) fn wants_list(&mut self, idle: bool) -> bool {
        let worth = idle || self.held.is_none() || self.used() * 2 >= self.slots();
        let due = self.listing == Listing::Stale && worth;
        if due {
            self.listing = Listing::InFlight { stale: false };
            self.before.append(&mut self.since);
        }
        due
    }

    pub(super) fn listed(&mut self, held: Option<usize>) {
        let stale = matches!(self.listing, Listing::InFlight { stale: true }) || held.is_none();
        if let Some(held) = held {
            self.held = Some(held);
            self.before.clear();
        }
        self.listing = if stale { Listing::Stale } else { Listing::Fresh };
    }
}
