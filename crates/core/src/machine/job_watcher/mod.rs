//! Knows the most urgent waiting jobs of each class, for the leader.
//!
//! The number of waiting jobs is not bounded, but what the leader holds is: a *window* of [`LIMIT`] entries over all classes.
//! Each class has its share, and its window begins at its most urgent entry:
//!
//! ```text
//!  slots of a class, by rank     29        30         31        32
//!                              ┌────┐ ┌──────────┐ ┌───────┐ ┌────┐
//!                              └────┘ └──────────┘ └───────┘ └────┘
//!                               known ────────▲ not known: counted only
//!                                             frontier
//! ```
//!
//! Before the *frontier* of a class all its entries are known: changes are applied as the watch reports them. Changes at or
//! after the frontier change only a count. When less than half of the share is left, the slot at the frontier is listed, its next
//! entries become known, and the frontier moves. When an event exceeds the share, the last entry is forgotten, and the frontier
//! moves back to it. A slot or a class that the watch reports as created was empty then, so it needs no list.
//!
//! An entry whose name says everything is reported at once; another one is read first ([`ReadyEntry::plain`]).
//!
//! Events arrive in the server's order, but lists, reads and events can overtake each other. Therefore:
//!
//! * A list in flight collects what events report about its slot: a created entry is in the slot although the list lacks it, and
//!   a deleted one is not although the list has it.
//! * A read carries a ticket. Its answer counts only while the ticket belongs to the entry's latest read.
//!
//! **Recovery.** After a new watch everything is forgotten, also by the assigner, and listed again: while the watch was lost, an
//! entry may have been deleted and created again under its name (a job that was quarantined and released). A sweep lists shards,
//! classes and the known part of slots, in case an event was lost. It also ends a pause after requests that were not answered.
//!
//! **Limits.** [`LIMIT`] entries, at least [`LEAST`] of each class. Isolated jobs do not count, so that those that wait for a
//! worker of their own do not hide the others; they are as few as the attempts that were lost. Classes with lanes are known as a
//! whole, because the job whose turn it is may have any rank. [`READ_WINDOW`] reads of [`MAX_READ_BATCH`] entries and
//! [`LIST_WINDOW`] lists are in flight. One slot at a time is listed only to count its jobs.

mod class;
mod requests;

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::MAX_READ_BATCH;
use crate::job::{Isolation, QueueEntry};
use crate::name::Kind;
use crate::ready::{ClassName, ReadyEntry, RecordEntry, Shard, Slot, Waiting};

use class::{Class, Entry};
use requests::Requests;
pub use requests::{LIST_WINDOW, READ_WINDOW};

/// Entries that are known over all classes: some seconds of work for a large cluster, and about 8 MB.
pub const LIMIT: usize = 20_000;

/// Entries of one class that are known at least.
pub const LEAST: usize = 4;

/// A znode whose children are listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parent {
    /// A shard has classes.
    Shard(Shard),
    /// A class has slots.
    Class(ClassName),
    /// A slot has entries.
    Slot(ClassName, Slot),
}

/// The children of a listed znode; `None` if it is absent. Foreign names are omitted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Listed {
    /// The classes of a shard.
    Classes(Vec<ClassName>),
    /// The slots of a class.
    Slots(ClassName, Option<Vec<Slot>>),
    /// The entries of a slot.
    Entries(ClassName, Slot, Option<Vec<RecordEntry>>),
}

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A watch reported a new entry, or that an operator has set one.
    Created(ReadyEntry),
    /// A watch reported that an entry was deleted.
    Deleted(ReadyEntry),
    /// A watch reported a new class.
    ClassCreated(ClassName),
    /// A watch reported that a class was deleted.
    ClassDeleted(ClassName),
    /// A watch reported a new slot.
    SlotCreated(ClassName, Slot),
    /// A watch reported that a slot was deleted.
    SlotDeleted(ClassName, Slot),
    /// The watch was set, for the first time or again: earlier changes are unknown.
    Watched,
    /// The periodic listing is due.
    Sweep,
    /// A list was answered.
    Listed {
        /// Its ticket.
        ticket: u64,
        /// What it found; `None` if it was not answered.
        lists: Option<Vec<Listed>>,
    },
    /// A read was answered.
    Read {
        /// Its ticket.
        ticket: u64,
        /// The answers, in any order; `None` is absent or unreadable.
        entries: Vec<(ReadyEntry, Option<QueueEntry>)>,
    },
    /// A read was not answered: the entries are read again after the next sweep or watch.
    ReadFailed {
        /// Its ticket.
        ticket: u64,
        /// Its entries.
        entries: Vec<ReadyEntry>,
    },
    /// The numbers of jobs of slots were read; `None` if the request was not answered.
    Sized(Option<Vec<(ClassName, Slot, usize)>>),
}

/// Output of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// List the children of these znodes in one request.
    List {
        /// Returned with the answer.
        ticket: u64,
        /// The znodes.
        parents: Vec<Parent>,
    },
    /// Read these entries in one request.
    Read {
        /// Returned with the answer.
        ticket: u64,
        /// At most [`MAX_READ_BATCH`].
        entries: Vec<ReadyEntry>,
    },
    /// Read how many entries these slots have: each is a job. For a metric: no answer is needed.
    Size(Vec<(ClassName, Slot)>),
    /// List this slot, and [count](crate::segment::jobs_under) the jobs of its entries. For a metric. The next slot is counted after
    /// the answer: the lists of all slots together may have many megabytes.
    Count(ClassName, Slot),
    /// These jobs wait for a worker.
    Queued(Vec<Waiting>),
    /// This entry no longer exists, or is not considered any more.
    Unqueued(ReadyEntry),
    /// How many jobs of these kinds wait in addition to the reported ones.
    Beyond(Vec<(Kind, usize)>),
}

/// State machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobWatcher {
    /// [`LIMIT`], except in tests.
    limit: usize,
    classes: BTreeMap<ClassName, Class>,
    requests: Requests,
    /// The numbers of jobs beyond the frontiers, by kind. No number is 0.
    beyond: BTreeMap<Kind, usize>,
    /// Classes whose number may have changed since the last report.
    recount: BTreeSet<ClassName>,
    /// Kinds whose number has changed since then.
    changed: BTreeSet<Kind>,
}

impl Default for JobWatcher {
    fn default() -> Self {
        Self::with_limit(LIMIT)
    }
}

impl JobWatcher {
    fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            classes: BTreeMap::new(),
            requests: Requests::default(),
            beyond: BTreeMap::new(),
            recount: BTreeSet::new(),
            changed: BTreeSet::new(),
        }
    }

    /// Handles one event. [`JobWatcher::flush`] follows the last one of several.
    pub fn handle(&mut self, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Created(at) => self.created(at, out),
            Event::Deleted(at) => {
                if let Some(class) = self.classes.get_mut(&at.class) {
                    class.deleted(&at, out);
                    self.settle(&at.class, out);
                }
            }
            Event::ClassCreated(name) => {
                self.classes.entry(name).or_insert_with(Class::born);
            }
            Event::ClassDeleted(name) => self.forget(&name, out),
            Event::SlotCreated(name, slot) => self.class(&name).slot_born(slot),
            Event::SlotDeleted(name, slot) => {
                if let Some(class) = self.classes.get_mut(&name) {
                    class.slot_gone(&name, slot, out);
                    self.settle(&name, out);
                }
            }
            Event::Watched => {
                for name in self.classes.keys().cloned().collect::<Vec<_>>() {
                    self.forget(&name, out);
                }
                self.requests.forget();
                self.requests.list(Shard::all().map(Parent::Shard));
            }
            Event::Sweep => self.sweep(),
            Event::Listed { ticket, lists } => self.answered(ticket, lists, out),
            Event::Read { ticket, entries } => {
                if self.requests.was_read(ticket, true) {
                    self.read(ticket, entries, out);
                }
            }
            Event::ReadFailed { ticket, entries } => {
                if self.requests.was_read(ticket, false) {
                    for at in entries {
                        let class = self.classes.get_mut(&at.class);
                        if class.is_some_and(|class| class.unanswered(&at, ticket)) {
                            self.requests.read(at);
                        }
                    }
                }
            }
            Event::Sized(sizes) => {
                self.requests.sized(sizes.as_deref());
                for (name, slot, size) in sizes.into_iter().flatten() {
                    if let Some(class) = self.classes.get_mut(&name) {
                        class.sized(slot, size);
                        self.recount.insert(name);
                    }
                }
            }
        }
        self.requests.ask(&mut self.classes, out);
    }

    /// Reports the numbers that have changed.
    pub fn flush(&mut self, out: &mut Vec<Effect>) {
        for name in std::mem::take(&mut self.recount) {
            // While its next slot is listed, the number is wrong for a moment.
            let Some(class) = self.classes.get_mut(&name).filter(|class| class.is_settled()) else {
                continue;
            };
            let (before, now) = (class.told, class.beyond());
            class.told = now;
            self.count(&name, before, now);
        }
        let numbers = std::mem::take(&mut self.changed).into_iter().map(|kind| {
            let number = self.beyond.get(&kind).copied().unwrap_or(0);
            (kind, number)
        });
        let numbers = numbers.collect::<Vec<_>>();
        if !numbers.is_empty() {
            out.push(Effect::Beyond(numbers));
        }
    }

    fn count(&mut self, class: &ClassName, before: usize, now: usize) {
        if before != now {
            let kind = class.kind();
            let number = self.beyond.entry(kind.clone()).or_default();
            *number = *number - before + now;
            if *number == 0 {
                self.beyond.remove(&kind);
            }
            self.changed.insert(kind);
        }
    }

    /// Returns the number of known entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.classes.values().map(Class::len).sum()
    }

    /// Returns whether no entry is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The share of a class.
    fn share(&self, class: &ClassName) -> usize {
        if class.is_laned() { usize::MAX } else { (self.limit / self.classes.len().max(1)).max(LEAST) }
    }

    /// Returns a class. One that is not known yet is listed.
    fn class(&mut self, name: &ClassName) -> &mut Class {
        let requests = &mut self.requests;
        self.classes.entry(name.clone()).or_insert_with(|| {
            requests.list([Parent::Class(name.clone())]);
            Class::unlisted()
        })
    }

    fn forget(&mut self, name: &ClassName, out: &mut Vec<Effect>) {
        if let Some(mut class) = self.classes.remove(name) {
            class.forget(name, out);
            self.count(name, class.told, 0);
        }
    }

    fn created(&mut self, at: ReadyEntry, out: &mut Vec<Effect>) {
        let is_new = self.class(&at.class).created(&at, out);
        self.settle(&at.class, out);
        let is_known = self.classes.get(&at.class).is_some_and(|class| class.get(&at).is_some());
        if is_new && is_known {
            self.report(vec![at], out);
        }
    }

    /// Reports entries that became known, or asks for their data.
    fn report(&mut self, entries: Vec<ReadyEntry>, out: &mut Vec<Effect>) {
        let mut waiting = Vec::new();
        for at in entries {
            let Some(entry) = at.plain() else {
                self.requests.read(at);
                continue;
            };
            if let Some(class) = self.classes.get_mut(&at.class) {
                class.report(&at, Isolation::Shared);
                waiting.push(Waiting { at, entry });
            }
        }
        if !waiting.is_empty() {
            out.push(Effect::Queued(waiting));
        }
    }

    fn read(&mut self, ticket: u64, entries: Vec<(ReadyEntry, Option<QueueEntry>)>, out: &mut Vec<Effect>) {
        let mut waiting = Vec::with_capacity(entries.len());
        let mut changed = BTreeSet::new();
        for (at, entry) in entries {
            let class = self.classes.get_mut(&at.class);
            // Otherwise a later read decides, or has decided.
            let class = class.filter(|class| class.get(&at) == Some(Entry::Reading(Some(ticket))));
            let Some(class) = class else { continue };
            changed.insert(at.class.clone());
            match entry {
                Some(entry) => {
                    class.report(&at, entry.isolation);
                    waiting.push(Waiting { at, entry });
                }
                None => class.drop_unreadable(&at),
            }
        }
        if !waiting.is_empty() {
            out.push(Effect::Queued(waiting));
        }
        changed.iter().for_each(|name| self.settle(name, out));
    }

    fn answered(&mut self, ticket: u64, lists: Option<Vec<Listed>>, out: &mut Vec<Effect>) {
        let Some(parents) = self.requests.listed(ticket, lists.is_some()) else { return };
        let Some(lists) = lists else {
            for parent in parents {
                let again = match &parent {
                    Parent::Slot(name, slot) => {
                        let class = self.classes.get_mut(name);
                        class.is_some_and(|class| class.not_listed(*slot, ticket))
                    }
                    Parent::Shard(_) | Parent::Class(_) => true,
                };
                self.requests.list(again.then_some(parent));
            }
            return;
        };
        for list in lists {
            match list {
                Listed::Classes(names) => {
                    for name in names {
                        self.class(&name);
                    }
                }
                Listed::Slots(name, slots) => self.slots_listed(&name, slots, out),
                Listed::Entries(name, slot, names) => {
                    let share = self.share(&name);
                    let Some(class) = self.classes.get_mut(&name) else { continue };
                    let new = class.listed(&name, (slot, ticket), names, share, out);
                    self.report(new, out);
                    self.settle(&name, out);
                }
            }
        }
    }

    fn slots_listed(&mut self, name: &ClassName, slots: Option<Vec<Slot>>, out: &mut Vec<Effect>) {
        let Some(class) = self.classes.get_mut(name) else { return };
        let is_absent = slots.is_none();
        let missed = class.slots_listed(slots.unwrap_or_default());
        if is_absent && class.is_empty() {
            return self.forget(name, out);
        }
        missed.into_iter().for_each(|slot| self.list_slot(name, slot));
        self.settle(name, out);
        let Some(class) = self.classes.get(name) else { return };
        let uncounted = class.uncounted_slots();
        if class.has_segments {
            return self.requests.count(name, uncounted);
        }
        for slots in uncounted.chunks(MAX_READ_BATCH) {
            out.push(Effect::Size(slots.iter().map(|slot| (name.clone(), *slot)).collect()));
        }
    }

    fn list_slot(&mut self, name: &ClassName, slot: Slot) {
        if self.classes.get_mut(name).is_some_and(|class| class.want_list(slot)) {
            self.requests.list([Parent::Slot(name.clone(), slot)]);
        }
    }

    /// Keeps a class within its share, and lists the slot at its frontier if few entries are left.
    fn settle(&mut self, name: &ClassName, out: &mut Vec<Effect>) {
        let share = self.share(name);
        let Some(class) = self.classes.get_mut(name) else { return };
        out.extend(class.trim(name, share).into_iter().map(Effect::Unqueued));
        let next = class.next_slot(share);
        if class.told != class.beyond() {
            self.recount.insert(name.clone());
        }
        next.into_iter().for_each(|slot| self.list_slot(name, slot));
    }

    fn sweep(&mut self) {
        self.requests.resume();
        self.requests.list(Shard::all().map(Parent::Shard));
        self.requests.list(self.classes.keys().cloned().map(Parent::Class));
        let known =
            self.classes.iter().flat_map(|(name, class)| class.known_slots().map(move |slot| (name, slot)));
        let known = known.map(|(name, slot)| (name.clone(), slot)).collect::<Vec<_>>();
        known.into_iter().for_each(|(name, slot)| self.list_slot(&name, slot));
    }
}

#[cfg(test)]
mod tests;
