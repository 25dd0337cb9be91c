//! The window of one class.

use std::collections::{BTreeMap, BTreeSet};

use super::Effect;
use crate::job::Isolation;
use crate::ready::{ClassName, ReadyEntry, RecordEntry, Slot};
use crate::segment::jobs_under;

/// A position among the entries of a class: the start of a slot, or an entry.
type Position = (Slot, Option<RecordEntry>);

/// Before all slots.
const START: Slot = Slot { minute: i64::MIN, part: 0 };

/// The known entries of a class, and the counts of the others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Class {
    slots: BTreeMap<Slot, SlotState>,
    /// Whether its slots were listed, or it was created while it was watched.
    is_listed: bool,
    /// All entries before it are known, and none at or after it. `None` if all are known.
    frontier: Option<Position>,
    /// The known entries that count.
    counted: usize,
    /// The jobs at or after the frontier, as far as their number is known. A segment counts as its members.
    beyond: usize,
    /// The part of `beyond` that was reported.
    pub(super) told: usize,
    /// Whether one of its entries was a segment.
    pub(super) has_segments: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct SlotState {
    entries: BTreeMap<RecordEntry, Entry>,
    listing: Listing,
    beyond: usize,
}

/// The state of a known entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Entry {
    /// It waits for a read, or is being read under the ticket.
    Reading(Option<u64>),
    /// The assigner knows it.
    Reported {
        /// Whether it counts: it is not isolated.
        counts: bool,
    },
}

impl Entry {
    fn counts(self) -> bool {
        match self {
            Self::Reading(_) => true,
            Self::Reported { counts } => counts,
        }
    }

    fn is_reported(self) -> bool {
        matches!(self, Self::Reported { .. })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
enum Listing {
    #[default]
    None,
    Wanted,
    InFlight {
        ticket: u64,
        /// Entries that were created or deleted since the request, as far as events have reported it.
        created: BTreeSet<RecordEntry>,
        deleted: BTreeSet<RecordEntry>,
    },
}

impl Class {
    /// A class that was created while it was watched.
    pub(super) fn born() -> Self {
        Self {
            slots: BTreeMap::new(),
            is_listed: true,
            frontier: None,
            counted: 0,
            beyond: 0,
            told: 0,
            has_segments: false,
        }
    }

    /// A class that must be listed.
    pub(super) fn unlisted() -> Self {
        Self { is_listed: false, frontier: Some((START, None)), ..Self::born() }
    }

    /// The number of known entries.
    pub(super) fn len(&self) -> usize {
        self.slots.values().map(|slot| slot.entries.len()).sum()
    }

    /// The number of jobs whose entries are not known.
    pub(super) fn beyond(&self) -> usize {
        self.beyond
    }

    /// Whether it does not wait for a list of its slots or of its next slot.
    pub(super) fn is_settled(&self) -> bool {
        let next = self.frontier.as_ref().and_then(|(at, _)| self.slots.get(at));
        self.is_listed && next.is_none_or(|slot| slot.listing == Listing::None)
    }

    fn covers(&self, slot: Slot, name: &RecordEntry) -> bool {
        let before = |frontier: &Position| (slot, Some(name)) < (frontier.0, frontier.1.as_ref());
        self.frontier.as_ref().is_none_or(before)
    }

    /// The slots that have known entries, or may have.
    pub(super) fn known_slots(&self) -> impl Iterator<Item = Slot> {
        let frontier = self.frontier.as_ref();
        self.slots.keys().copied().take_while(move |slot| {
            frontier.is_none_or(|(at, name)| slot < at || (slot == at && name.is_some()))
        })
    }

    /// The slots without known entries that are not being listed.
    pub(super) fn uncounted_slots(&self) -> Vec<Slot> {
        let unknown = self.slots.iter().skip(self.known_slots().count());
        unknown.filter(|(_, state)| state.listing == Listing::None).map(|(slot, _)| *slot).collect()
    }

    /// Handles a created entry. Returns whether it is known now and must be reported or read.
    pub(super) fn created(&mut self, at: &ReadyEntry, out: &mut Vec<Effect>) -> bool {
        let (covered, jobs) = (self.covers(at.slot, &at.name), jobs_under(at.job()));
        self.has_segments |= jobs > 1;
        let slot = self.slots.entry(at.slot).or_default();
        if let Listing::InFlight { created, deleted, .. } = &mut slot.listing {
            deleted.remove(&at.name);
            created.insert(at.name.clone());
        }
        if !covered {
            slot.beyond += jobs;
            self.beyond += jobs;
            return false;
        }
        // A list has reported it before. Its name says everything, so it has not changed.
        if !at.name.has_data && slot.entries.contains_key(&at.name) {
            return false;
        }
        // The assigner may know other data of it. Only known entries that are reported are withdrawn later.
        out.extend(self.take(at).map(|_| Effect::Unqueued(at.clone())));
        self.set(at, Entry::Reading(None));
        true
    }

    /// Handles a deleted entry.
    pub(super) fn deleted(&mut self, at: &ReadyEntry, out: &mut Vec<Effect>) {
        let covered = self.covers(at.slot, &at.name);
        let Some(slot) = self.slots.get_mut(&at.slot) else { return };
        if let Listing::InFlight { created, deleted, .. } = &mut slot.listing {
            created.remove(&at.name);
            deleted.insert(at.name.clone());
        }
        if !covered {
            let jobs = slot.beyond.min(jobs_under(at.job()));
            slot.beyond -= jobs;
            self.beyond -= jobs;
        }
        out.extend(self.take(at).map(|_| Effect::Unqueued(at.clone())));
    }

    pub(super) fn get(&self, at: &ReadyEntry) -> Option<Entry> {
        self.slots.get(&at.slot)?.entries.get(&at.name).copied()
    }

    fn set(&mut self, at: &ReadyEntry, state: Entry) {
        let slot = self.slots.entry(at.slot).or_default();
        let before = slot.entries.insert(at.name.clone(), state);
        self.counted += usize::from(state.counts());
        self.counted -= usize::from(before.is_some_and(Entry::counts));
    }

    /// Forgets an entry. Returns it if the assigner knows it.
    fn take(&mut self, at: &ReadyEntry) -> Option<Entry> {
        let state = self.slots.get_mut(&at.slot)?.entries.remove(&at.name)?;
        self.counted -= usize::from(state.counts());
        Some(state).filter(|state| state.is_reported())
    }

    /// Records the read of an entry.
    pub(super) fn reading(&mut self, at: &ReadyEntry, ticket: u64) -> bool {
        let waits = self.get(at) == Some(Entry::Reading(None));
        if waits {
            self.set(at, Entry::Reading(Some(ticket)));
        }
        waits
    }

    /// The read with this ticket was not answered. Returns whether the entry must be read again.
    pub(super) fn unanswered(&mut self, at: &ReadyEntry, ticket: u64) -> bool {
        let waits = self.get(at) == Some(Entry::Reading(Some(ticket)));
        if waits {
            self.set(at, Entry::Reading(None));
        }
        waits
    }

    /// The assigner knows an entry now.
    pub(super) fn report(&mut self, at: &ReadyEntry, isolation: Isolation) {
        self.set(at, Entry::Reported { counts: isolation == Isolation::Shared });
    }

    /// An entry is absent or cannot be read.
    pub(super) fn drop_unreadable(&mut self, at: &ReadyEntry) {
        let reported = self.take(at);
        debug_assert!(reported.is_none(), "it was being read");
    }

    /// Forgets the last entries until at most `share` count. Returns the forgotten ones that the assigner knows.
    pub(super) fn trim(&mut self, class: &ClassName, share: usize) -> Vec<ReadyEntry> {
        let mut forgotten = Vec::new();
        while self.counted > share {
            let (slot, state) = self.last_known().expect("an entry counts, so one is known");
            let (name, entry) = state.entries.pop_last().expect("the slot has a known entry");
            let jobs = jobs_under(&name.job);
            state.beyond += jobs;
            self.beyond += jobs;
            self.counted -= usize::from(entry.counts());
            self.frontier = Some((slot, Some(name.clone())));
            if entry.is_reported() {
                forgotten.push(ReadyEntry { class: class.clone(), slot, name });
            }
        }
        forgotten
    }

    fn last_known(&mut self) -> Option<(Slot, &mut SlotState)> {
        let slots = match self.frontier {
            Some((slot, _)) => self.slots.range_mut(..=slot),
            None => self.slots.range_mut(..),
        };
        slots.rev().map(|(slot, state)| (*slot, state)).find(|(_, state)| !state.entries.is_empty())
    }

    /// A slot was created while it was watched: it is empty.
    pub(super) fn slot_born(&mut self, slot: Slot) {
        self.slots.entry(slot).or_default();
    }

    /// A slot was deleted.
    pub(super) fn slot_gone(&mut self, class: &ClassName, slot: Slot, out: &mut Vec<Effect>) {
        let Some(state) = self.slots.remove(&slot) else { return };
        self.beyond -= state.beyond;
        for (name, entry) in state.entries {
            self.counted -= usize::from(entry.counts());
            if entry.is_reported() {
                out.push(Effect::Unqueued(ReadyEntry { class: class.clone(), slot, name }));
            }
        }
    }

    /// The class is forgotten with all its entries.
    pub(super) fn forget(&mut self, class: &ClassName, out: &mut Vec<Effect>) {
        for slot in self.slots.keys().copied().collect::<Vec<_>>() {
            self.slot_gone(class, slot, out);
        }
    }

    /// Handles the list of its slots. Returns those before the frontier that were not known.
    pub(super) fn slots_listed(&mut self, listed: Vec<Slot>) -> Vec<Slot> {
        let new = listed.into_iter().filter(|slot| !self.slots.contains_key(slot)).collect::<Vec<_>>();
        self.slots.extend(new.iter().map(|slot| (*slot, SlotState::default())));
        if !self.is_listed {
            self.is_listed = true;
            return Vec::new();
        }
        let missed = |slot: &Slot| self.frontier.as_ref().is_none_or(|(at, _)| slot < at);
        new.into_iter().filter(missed).collect()
    }

    /// Whether it has no slots.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The number of jobs of a slot without known entries was read.
    pub(super) fn sized(&mut self, slot: Slot, size: usize) {
        if self.frontier.as_ref().is_some_and(|(at, name)| slot > *at || (slot == *at && name.is_none()))
            && let Some(state) = self.slots.get_mut(&slot)
        {
            self.beyond = self.beyond - state.beyond + size;
            state.beyond = size;
        }
    }

    /// The slot to list next, because few entries are left.
    pub(super) fn next_slot(&mut self, share: usize) -> Option<Slot> {
        let (at, _) = self.frontier.as_ref().filter(|_| self.is_listed && self.counted <= share / 2)?;
        let next = self.slots.range(*at..).next().map(|(slot, _)| *slot);
        if next != Some(*at) {
            self.frontier = next.map(|slot| (slot, None));
        }
        next
    }

    /// Returns whether a list of the slot must be requested.
    pub(super) fn want_list(&mut self, slot: Slot) -> bool {
        match self.slots.get_mut(&slot) {
            Some(SlotState { listing: listing @ Listing::None, .. }) => {
                *listing = Listing::Wanted;
                true
            }
            Some(_) | None => false,
        }
    }

    /// A list of the slot is requested now. Returns whether it is wanted.
    pub(super) fn list_sent(&mut self, slot: Slot, ticket: u64) -> bool {
        match self.slots.get_mut(&slot) {
            Some(SlotState { listing: listing @ Listing::Wanted, .. }) => {
                *listing = Listing::InFlight { ticket, created: BTreeSet::new(), deleted: BTreeSet::new() };
                true
            }
            Some(_) | None => false,
        }
    }

    /// The list of the slot was not answered. Returns whether it must be requested again.
    pub(super) fn not_listed(&mut self, slot: Slot, ticket: u64) -> bool {
        let state = self.slots.get_mut(&slot);
        let Some(SlotState { listing, .. }) = state.filter(|state| state.awaits(ticket)) else {
            return false;
        };
        *listing = Listing::Wanted;
        true
    }

    /// Handles the list of a slot. Returns the entries that became known.
    pub(super) fn listed(
        &mut self,
        class: &ClassName,
        (slot, ticket): (Slot, u64),
        names: Option<Vec<RecordEntry>>,
        share: usize,
        out: &mut Vec<Effect>,
    ) -> Vec<ReadyEntry> {
        let state = self.slots.get_mut(&slot).filter(|state| state.awaits(ticket));
        let Some(state) = state else { return Vec::new() };
        let Listing::InFlight { mut created, deleted, .. } = std::mem::take(&mut state.listing) else {
            return Vec::new();
        };
        let is_absent = names.is_none();
        created.extend(names.into_iter().flatten().filter(|name| !deleted.contains(name)));
        let names = created;
        let place = |name: RecordEntry| ReadyEntry { class: class.clone(), slot, name };
        let gone = state.entries.keys().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>();
        for at in gone.into_iter().map(place) {
            out.extend(self.take(&at).map(|_| Effect::Unqueued(at)));
        }
        let here = self.frontier.as_ref().is_some_and(|(at, _)| *at == slot);
        let (mut new, mut rest) = (Vec::new(), 0);
        for name in names {
            let covered = self.covers(slot, &name);
            let jobs = jobs_under(&name.job);
            self.has_segments |= jobs > 1;
            if rest > 0 || !(covered || here && self.counted < share) {
                if here && rest == 0 {
                    self.frontier = Some((slot, Some(name)));
                }
                rest += jobs;
                continue;
            }
            let at = place(name);
            if self.get(&at).is_none() {
                self.set(&at, Entry::Reading(None));
                new.push(at);
            }
        }
        if here && rest == 0 {
            let after = (std::ops::Bound::Excluded(slot), std::ops::Bound::Unbounded);
            self.frontier = self.slots.range(after).next().map(|(next, _)| (*next, None));
        }
        let state = self.slots.get_mut(&slot).expect("it was listed");
        self.beyond = self.beyond - state.beyond + rest;
        state.beyond = rest;
        if is_absent && state.entries.is_empty() && rest == 0 {
            self.slots.remove(&slot);
        }
        new
    }
}

impl SlotState {
    fn awaits(&self, of: u64) -> bool {
        matches!(self.listing, Listing::InFlight { ticket, .. } if ticket == of)
    }
}
