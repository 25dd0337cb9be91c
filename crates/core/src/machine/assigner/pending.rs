//! Waiting jobs by class, the most urgent first.
//!
//! The lowest [rank] is first; equal ranks go in the order in which this leader learned of them.
//!
//! The time comes from the client, which follows ZooKeeper's clock ([`clock`](crate::clock)) unless it may not write. A time
//! ahead of this leader's is replaced by the leader's, because otherwise the job might wait forever. A time that is behind gives
//! its jobs an advantage of that difference.
//!
//! A [segment](crate::segment) waits as one job under its own id. It counts as its members.
//!
//! Jobs with the same kind, required tags and isolation can go to the same workers, so they form a class. If no worker
//! can take the first job of a class, no worker can take the others, and the other classes continue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::super::by_job::ByJob;
use super::depth::KindCounts;
use crate::job::{Isolation, Placement, QueueEntry, Turn};
use crate::name::{AffinityKey, JobId, Kind, Tag};
use crate::ready::{Rank, ReadyEntry, Waiting, rank};
use crate::segment::jobs_under;
use crate::time::{Millis, WallMillis};
use crate::trace::TraceContext;

/// A rank, then the order in which this leader learned of the jobs.
type QueueOrder = (Rank, u64);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Class {
    kind: Kind,
    tags: Vec<Tag>,
    isolation: Isolation,
}

impl Class {
    pub(super) fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(super) fn tags(&self) -> &[Tag] {
        &self.tags
    }

    pub(super) fn isolation(&self) -> Isolation {
        self.isolation
    }
}

/// A waiting job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PendingJob {
    pub(super) class: Arc<Class>,
    /// Where its entry is.
    pub(super) at: ReadyEntry,
    pub(super) fencing_token: i32,
    pub(super) affinity: Option<AffinityKey>,
    /// Boxed, because most jobs have no turn.
    pub(super) turn: Option<Box<Turn>>,
    pub(super) expires_at: Option<WallMillis>,
    pub(super) lease: Option<Duration>,
    pub(super) since: Millis,
    /// Boxed, because most jobs have no trace.
    pub(super) trace: Option<Box<TraceContext>>,
    order: QueueOrder,
}

impl PendingJob {
    /// Returns the job as it was inserted.
    pub(super) fn into_waiting(self) -> Waiting {
        let Class { kind, tags, isolation } = Arc::unwrap_or_clone(self.class);
        let lane = self.turn.map(|turn| turn.lane);
        let entry = QueueEntry {
            fencing_token: self.fencing_token,
            placement: Placement { tags, affinity: self.affinity, lane },
            priority: self.at.name.priority,
            submitted_at: self.at.waits_since(),
            part: self.at.slot.part,
            expires_at: self.expires_at,
            lease: self.lease,
            isolation,
            trace: self.trace.map(|trace| *trace),
            ..QueueEntry::new(kind, self.at.name.attempt, self.at.name.generation)
        };
        Waiting { at: self.at, entry }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Pending {
    /// No class is empty.
    classes: BTreeMap<Arc<Class>, BTreeMap<QueueOrder, JobId>>,
    /// Boxed: jobs of a batch are moved often, and a growing map moves its values.
    jobs: ByJob<Box<PendingJob>>,
    counts: KindCounts,
    places: u64,
}

impl Pending {
    /// The number of jobs, not of entries.
    pub(super) fn len(&self) -> usize {
        self.counts.all()
    }

    pub(super) fn counts(&self) -> &KindCounts {
        &self.counts
    }

    /// Returns the number of isolated jobs.
    pub(super) fn isolated(&self) -> usize {
        let isolated = self.classes.iter().filter(|(class, _)| class.isolation != Isolation::Shared);
        isolated.map(|(_, places)| places.len()).sum()
    }

    pub(super) fn insert(&mut self, Waiting { at, entry }: Waiting, now: Millis, wall: WallMillis) {
        self.places += 1;
        let id = at.job().clone();
        let turn = entry.turn().map(Box::new);
        let waiting = PendingJob {
            turn,
            class: self.class(Class {
                kind: entry.kind,
                tags: entry.placement.tags,
                isolation: entry.isolation,
            }),
            fencing_token: entry.fencing_token,
            affinity: entry.placement.affinity,
            expires_at: entry.expires_at,
            lease: entry.lease,
            since: now,
            trace: entry.trace.map(Box::new),
            order: (rank(entry.priority, entry.submitted_at.min(wall)), self.places),
            at,
        };
        self.remove(&id);
        self.put_back(id, Box::new(waiting));
    }

    /// Returns the shared instance of a class, if any job has it.
    fn class(&self, class: Class) -> Arc<Class> {
        self.classes.get_key_value(&class).map_or_else(|| Arc::new(class), |(known, _)| Arc::clone(known))
    }

    pub(super) fn holds(&self, id: &JobId) -> bool {
        self.jobs.get(id).is_some()
    }

    /// Returns a job, which does not wait, to its old position.
    pub(super) fn put_back(&mut self, id: JobId, waiting: Box<PendingJob>) {
        let (class, order) = (Arc::clone(&waiting.class), waiting.order);
        self.counts.add(&class.kind, jobs_under(&id));
        let before = self.jobs.insert(id.clone(), waiting);
        debug_assert!(before.is_none(), "the caller checks that it does not wait");
        self.classes.entry(class).or_default().insert(order, id);
    }

    /// Removes the job if this is its entry. Returns whether it was.
    pub(super) fn remove_entry(&mut self, at: &ReadyEntry) -> bool {
        self.jobs.get(at.job()).is_some_and(|waiting| waiting.at == *at) && self.remove(at.job()).is_some()
    }

    pub(super) fn remove(&mut self, id: &JobId) -> Option<Box<PendingJob>> {
        let waiting = self.jobs.remove(id)?;
        self.vacate(id, &waiting);
        Some(waiting)
    }

    fn vacate(&mut self, id: &JobId, waiting: &PendingJob) {
        self.counts.remove(&waiting.class.kind, jobs_under(id));
        if let Some(places) = self.classes.get_mut(&waiting.class) {
            places.remove(&waiting.order);
            if places.is_empty() {
                self.classes.remove(&waiting.class);
            }
        }
    }

    /// Returns the first job outside the closed classes and the paused kinds.
    pub(super) fn next(
        &self,
        closed: &BTreeSet<Arc<Class>>,
        paused: &BTreeSet<Kind>,
    ) -> Option<(&JobId, &PendingJob)> {
        let open = self.classes.iter();
        let open = open.filter(|(class, _)| !paused.contains(&class.kind) && !closed.contains(*class));
        let heads = open.filter_map(|(_, places)| places.first_key_value());
        let (_, id) = heads.min()?;
        Some((id, self.jobs.get(id)?))
    }

    /// Takes out all jobs with a lane.
    pub(super) fn take_laned(&mut self) -> Vec<(JobId, Box<PendingJob>)> {
        let laned = self.jobs.iter().filter(|(_, waiting)| waiting.turn.is_some());
        let laned = laned.map(|(id, _)| id.clone()).collect::<BTreeSet<_>>();
        laned.into_iter().filter_map(|id| self.remove(&id).map(|waiting| (id, waiting))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Priority;
    use crate::name::Lane;

    /// A job that is taken out and returns must not lose its expiry, lease or place.
    #[test]
    fn a_job_leaves_as_it_was_inserted() {
        let wall = WallMillis(90_000);
        let placement = Placement {
            tags: vec![Tag::new("gpu").unwrap()],
            affinity: Some(AffinityKey::new("customer").unwrap()),
            lane: Some(Lane::new("account").unwrap()),
        };
        let entry = QueueEntry {
            fencing_token: 7,
            placement,
            priority: Priority::new(3).unwrap(),
            submitted_at: WallMillis(61_234),
            part: 2,
            expires_at: Some(WallMillis(99_999)),
            lease: Some(Duration::from_secs(9)),
            isolation: Isolation::Apart,
            trace: Some(TraceContext::new([1; 16], [2; 8], 1).unwrap()),
            ..QueueEntry::new(Kind::new("sum").unwrap(), 2, 4)
        };
        let job = JobId::new("a").unwrap();
        let inserted = Waiting::new(&job, entry);
        let mut pending = Pending::default();
        pending.insert(inserted.clone(), Millis(1), wall);
        let left = pending.remove(&job).expect("it waits").into_waiting();
        assert_eq!(left, inserted);
        assert_eq!(pending, Pending { places: 1, ..Pending::default() });
    }
}
