//! The requests of the job watcher: which are wanted, and which are in flight.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::class::Class;
use super::{Effect, Parent};
use crate::budget::MAX_READ_BATCH;
use crate::ready::{ClassName, ReadyEntry, Slot};

/// Reads in flight: two keep the server busy while one is handled here; more would only wait there.
pub const READ_WINDOW: usize = 4;

/// Lists in flight, for the same reason.
pub const LIST_WINDOW: usize = 4;

/// Slots of one list: a slot has up to about 10,000 names, and a reply has at most some megabytes.
const SLOTS: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Requests {
    to_list: VecDeque<Parent>,
    /// The same as a set.
    wanted: BTreeSet<Parent>,
    lists: BTreeMap<u64, Vec<Parent>>,
    to_read: VecDeque<ReadyEntry>,
    reads: BTreeSet<u64>,
    to_count: VecDeque<(ClassName, Slot)>,
    /// The slot that is being counted.
    counting: Option<(ClassName, Slot)>,
    /// A request was not answered: an immediate retry would spin.
    halted: bool,
    last_ticket: u64,
}

impl Requests {
    /// Wants lists of these znodes.
    pub(super) fn list(&mut self, parents: impl IntoIterator<Item = Parent>) {
        for parent in parents {
            if self.wanted.insert(parent.clone()) {
                self.to_list.push_back(parent);
            }
        }
    }

    /// Wants a read of this entry.
    pub(super) fn read(&mut self, at: ReadyEntry) {
        self.to_read.push_back(at);
    }

    /// Wants the numbers of jobs of these slots of a class, instead of those that it wanted before.
    pub(super) fn count(&mut self, class: &ClassName, slots: Vec<Slot>) {
        self.to_count.retain(|(other, _)| other != class);
        self.to_count.extend(slots.into_iter().map(|slot| (class.clone(), slot)));
    }

    /// Numbers of jobs were read. If the request was not answered, the rest is counted after the next sweep.
    pub(super) fn sized(&mut self, sizes: Option<&[(ClassName, Slot, usize)]>) {
        match (sizes, &self.counting) {
            (None, _) => (self.counting, self.to_count) = (None, VecDeque::new()),
            (Some(sizes), Some((class, slot))) => {
                if sizes.iter().any(|(of, at, _)| (of, at) == (class, slot)) {
                    self.counting = None;
                }
            }
            (Some(_), None) => {}
        }
    }

    /// Forgets all requests: answers to those in flight are ignored.
    pub(super) fn forget(&mut self) {
        *self = Self { last_ticket: self.last_ticket, ..Self::default() };
    }

    /// Continues after requests that were not answered.
    pub(super) fn resume(&mut self) {
        self.halted = false;
    }

    /// A list has ended. Returns its parents, unless it was forgotten.
    pub(super) fn listed(&mut self, ticket: u64, is_answered: bool) -> Option<Vec<Parent>> {
        let parents = self.lists.remove(&ticket)?;
        self.halted |= !is_answered;
        Some(parents)
    }

    /// A read has ended. Returns whether it was not forgotten.
    pub(super) fn was_read(&mut self, ticket: u64, is_answered: bool) -> bool {
        let expected = self.reads.remove(&ticket);
        self.halted |= expected && !is_answered;
        expected
    }

    /// Sends requests. One slot is counted at a time. Lists are sent immediately. Reads are, too, if no other is in flight;
    /// otherwise only full ones.
    pub(super) fn ask(&mut self, classes: &mut BTreeMap<ClassName, Class>, out: &mut Vec<Effect>) {
        while !self.halted && self.lists.len() < LIST_WINDOW && !self.to_list.is_empty() {
            self.last_ticket += 1;
            let parents = self.next_list(classes);
            if !parents.is_empty() {
                self.lists.insert(self.last_ticket, parents.clone());
                out.push(Effect::List { ticket: self.last_ticket, parents });
            }
        }
        if self.counting.is_none()
            && let Some((class, slot)) = self.to_count.pop_front()
        {
            self.counting = Some((class.clone(), slot));
            out.push(Effect::Count(class, slot));
        }
        while !self.halted
            && !self.to_read.is_empty()
            && (self.reads.is_empty()
                || (self.reads.len() < READ_WINDOW && self.to_read.len() >= MAX_READ_BATCH))
        {
            self.last_ticket += 1;
            let ticket = self.last_ticket;
            let mut entries = Vec::with_capacity(self.to_read.len().min(MAX_READ_BATCH));
            while entries.len() < MAX_READ_BATCH
                && let Some(at) = self.to_read.pop_front()
            {
                // Skip an entry that was forgotten, or read from an earlier position.
                if classes.get_mut(&at.class).is_some_and(|class| class.reading(&at, ticket)) {
                    entries.push(at);
                }
            }
            if !entries.is_empty() {
                self.reads.insert(ticket);
                out.push(Effect::Read { ticket, entries });
            }
        }
    }

    /// Takes znodes of one sort.
    fn next_list(&mut self, classes: &mut BTreeMap<ClassName, Class>) -> Vec<Parent> {
        let mut parents = Vec::new();
        while let Some(parent) = self.to_list.front() {
            let same = parents
                .first()
                .is_none_or(|first| std::mem::discriminant(first) == std::mem::discriminant(parent));
            let most = if matches!(parent, Parent::Slot(..)) { SLOTS } else { MAX_READ_BATCH };
            if !same || parents.len() >= most {
                break;
            }
            let parent = self.to_list.pop_front().expect("it is the first");
            self.wanted.remove(&parent);
            let is_wanted = match &parent {
                Parent::Shard(_) => true,
                Parent::Class(class) => classes.contains_key(class),
                Parent::Slot(class, slot) => {
                    classes.get_mut(class).is_some_and(|class| class.list_sent(*slot, self.last_ticket))
                }
            };
            if is_wanted {
                parents.push(parent);
            }
        }
        parents
    }
}
