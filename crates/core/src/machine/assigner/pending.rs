//! What waits, in the order in which this leader learnt of it, by class.
//!
//! Jobs of one kind and one set of required tags can go to the same workers, so they form a class: when
//! nobody takes its first job, nobody takes the others, and the other classes are not held up.

use std::collections::{BTreeMap, BTreeSet};

use crate::job::QueueEntry;
use crate::name::{AffinityKey, JobId, Kind, Tag};
use crate::time::Millis;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) kind: Kind,
    pub(super) tags: Vec<Tag>,
    pub(super) attempt: u32,
    pub(super) affinity: Option<AffinityKey>,
    pub(super) since: Millis,
    turn: u64,
}

#[derive(Debug, Default)]
pub(super) struct Pending {
    classes: BTreeMap<Class, BTreeMap<u64, JobId>>,
    jobs: BTreeMap<JobId, Waiting>,
    turns: u64,
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn insert(&mut self, id: JobId, entry: QueueEntry, now: Millis) {
        self.turns += 1;
        let waiting = Waiting {
            kind: entry.kind,
            tags: entry.placement.tags,
            attempt: entry.attempt,
            affinity: entry.placement.affinity,
            since: now,
            turn: self.turns,
        };
        self.put_back(id, waiting);
    }

    /// Returns a job to its old turn.
    pub(super) fn put_back(&mut self, id: JobId, waiting: Waiting) {
        self.remove(&id);
        let class = Class { kind: waiting.kind.clone(), tags: waiting.tags.clone() };
        self.classes.entry(class).or_default().insert(waiting.turn, id.clone());
        self.jobs.insert(id, waiting);
    }

    pub(super) fn remove(&mut self, id: &JobId) -> Option<Waiting> {
        let waiting = self.jobs.remove(id)?;
        let class = Class { kind: waiting.kind.clone(), tags: waiting.tags.clone() };
        if let Some(turns) = self.classes.get_mut(&class) {
            turns.remove(&waiting.turn);
            if turns.is_empty() {
                self.classes.remove(&class);
            }
        }
        Some(waiting)
    }

    /// The job that has waited longest, outside the closed classes.
    pub(super) fn next(&self, closed: &BTreeSet<Class>) -> Option<(&Class, &JobId, &Waiting)> {
        let open = self.classes.iter().filter(|(class, _)| !closed.contains(class));
        let heads =
            open.filter_map(|(class, turns)| turns.first_key_value().map(|(turn, id)| (turn, class, id)));
        let (_, class, id) = heads.min()?;
        Some((class, id, self.jobs.get(id)?))
    }
}
