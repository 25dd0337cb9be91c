//! What waits, by class, the most urgent first.
//!
//! A job's *rank* is when it began to wait, less [`AGEING`] for each step of its priority; the lowest rank goes first, and
//! of equal ones the one that this leader learnt of first. The rank never changes, so nothing is sorted again while jobs
//! age: one that has waited for [`AGEING`] longer than another goes where one of the next priority would. So nothing
//! starves: whatever is submitted more than nine steps later comes after it.
//!
//! The time is that of the client's wall clock. One that is ahead is taken for this leader's, or its jobs might wait for
//! ever; one that is behind gives its jobs a start of as much.
//!
//! Jobs of one kind and one set of required tags can go to the same workers, so they form a class: when
//! nobody takes its first job, nobody takes the others, and the other classes are not held up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::by_hash::ByHash;
use crate::budget::AGEING;
use crate::job::{Placement, Priority, QueueEntry, Turn};
use crate::name::{AffinityKey, JobId, Kind, Tag};
use crate::time::{Millis, WallMillis, as_millis};
use crate::trace::TraceContext;

/// A rank, then the order in which this leader learnt of the jobs.
type Place = (i64, u64);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Class {
    kind: Kind,
    tags: Vec<Tag>,
}

impl Class {
    pub(super) fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(super) fn tags(&self) -> &[Tag] {
        &self.tags
    }
}

/// A waiting job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Waiting {
    pub(super) kind: Kind,
    pub(super) tags: Vec<Tag>,
    pub(super) attempt: u32,
    pub(super) affinity: Option<AffinityKey>,
    /// Boxed, so that the many without one pay a word.
    pub(super) turn: Option<Box<Turn>>,
    pub(super) priority: Priority,
    pub(super) submitted_at: WallMillis,
    pub(super) expires_at: Option<WallMillis>,
    pub(super) lease: Option<Duration>,
    pub(super) since: Millis,
    /// Boxed as the turn is.
    pub(super) trace: Option<Box<TraceContext>>,
    place: Place,
}

impl Waiting {
    /// The entry that it was made of.
    pub(super) fn into_entry(self) -> QueueEntry {
        let (lane, generation) = match self.turn.map(|turn| *turn) {
            Some(Turn { lane, generation }) => (Some(lane), generation),
            // Of no use to a job without a lane.
            None => (None, 0),
        };
        let placement = Placement { tags: self.tags, affinity: self.affinity, lane };
        QueueEntry {
            kind: self.kind,
            attempt: self.attempt,
            generation,
            placement,
            not_before: WallMillis::default(),
            priority: self.priority,
            submitted_at: self.submitted_at,
            expires_at: self.expires_at,
            lease: self.lease,
            trace: self.trace.map(|trace| *trace),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Pending {
    classes: BTreeMap<Class, BTreeMap<Place, JobId>>,
    jobs: BTreeMap<ByHash, Waiting>,
    places: u64,
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn insert(&mut self, id: JobId, entry: QueueEntry, now: Millis, wall: WallMillis) {
        self.places += 1;
        let waiting = Waiting {
            turn: entry.turn().map(Box::new),
            kind: entry.kind,
            tags: entry.placement.tags,
            attempt: entry.attempt,
            affinity: entry.placement.affinity,
            priority: entry.priority,
            submitted_at: entry.submitted_at,
            expires_at: entry.expires_at,
            lease: entry.lease,
            since: now,
            trace: entry.trace.map(Box::new),
            place: (rank(entry.priority, entry.submitted_at.min(wall)), self.places),
        };
        self.put_back(id, waiting);
    }

    /// Returns a job to its old place.
    pub(super) fn put_back(&mut self, id: JobId, waiting: Waiting) {
        self.remove(&id);
        let class = Class { kind: waiting.kind.clone(), tags: waiting.tags.clone() };
        self.classes.entry(class).or_default().insert(waiting.place, id.clone());
        self.jobs.insert(ByHash::of(&id), waiting);
    }

    pub(super) fn remove(&mut self, id: &JobId) -> Option<Waiting> {
        let waiting = self.jobs.remove(&ByHash::of(id))?;
        let class = Class { kind: waiting.kind.clone(), tags: waiting.tags.clone() };
        if let Some(places) = self.classes.get_mut(&class) {
            places.remove(&waiting.place);
            if places.is_empty() {
                self.classes.remove(&class);
            }
        }
        Some(waiting)
    }

    /// The first job outside the closed classes and the paused kinds.
    pub(super) fn next(
        &self,
        closed: &BTreeSet<Class>,
        paused: &BTreeSet<Kind>,
    ) -> Option<(&Class, &JobId, &Waiting)> {
        let open = self.classes.iter();
        let open = open.filter(|(class, _)| !paused.contains(&class.kind) && !closed.contains(class));
        let heads =
            open.filter_map(|(class, places)| places.first_key_value().map(|(place, id)| (place, class, id)));
        let (_, class, id) = heads.min()?;
        Some((class, id, self.jobs.get(&ByHash::of(id))?))
    }

    /// Takes out all that have a lane.
    pub(super) fn take_laned(&mut self) -> Vec<(JobId, Waiting)> {
        let laned = self.jobs.iter().filter(|(_, waiting)| waiting.turn.is_some());
        let laned = laned.map(|(id, _)| id.job().clone()).collect::<Vec<_>>();
        laned.into_iter().filter_map(|id| self.remove(&id).map(|waiting| (id, waiting))).collect()
    }
}

fn rank(priority: Priority, waits_since: WallMillis) -> i64 {
    let start = as_millis(AGEING).saturating_mul(u64::from(priority.get()));
    signed(waits_since.0) - signed(start)
}

fn signed(millis: u64) -> i64 {
    // Half of it, so that no difference overflows.
    i64::try_from(millis).unwrap_or(i64::MAX).min(i64::MAX / 2)
}
