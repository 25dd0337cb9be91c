//! The gate: jobs with a lane wait here until their turn is the lowest of the lane.
//!
//! ```text
//!  entry known ─▶ waiting ──its turn is the lowest of a list that has it──▶ pending, as any other job
//!                   ▲  │
//!                   │  └─ not in a list that was requested later: its entry may be gone, look for it again
//!                   └── the assignment was rejected at its turn: the turn was deleted, or modified by an operator
//! ```
//!
//! **Why an old list is sufficient.** Turns are ordered by the transaction that created them, so every turn that a list
//! lacks comes after all turns it contains. A turn never returns: its name contains the generation, and a retry creates
//! another turn. So a list stays correct except for turns deleted since. Its lowest turn stays the lowest while it
//! exists, and the next one is the lowest once all turns before it are known to be deleted. A lane is listed again only
//! when no turn of its list is left. (The assignment checks the turn, so a deletion that was not noticed costs one
//! write: see [`crate::txn`].)
//!
//! | event | known turns of the lane |
//! | --- | --- |
//! | a job of an unknown lane waits | list the lane |
//! | listed | the turns of the list; new ones are read, unless there is only one |
//! | a turn is deleted | removed, also from the answer to a list in flight |
//! | no turn is left, and jobs wait | list the lane again |
//! | sweep, reconnection | list the lane again; the order that was read stays valid |
//! | a new watch | changes were missed: forget all turns and list the lane again |
//!
//! A lane without a waiting job is not tracked: memory is proportional to the waiting jobs and the turns of their
//! lanes. Limits: [`LIST_WINDOW`] lists of [`MAX_LANE_LISTS`] lanes in flight, and [`READ_WINDOW`] reads of
//! [`MAX_READ_BATCH`] turns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Effect;
use super::depth::KindCounts;
use crate::budget::{MAX_LANE_LISTS, MAX_READ_BATCH};
use crate::job::Turn;
use crate::name::{JobId, Lane};
use crate::ready::{ReadyEntry, Waiting};

/// Lists in flight: while one is handled here, the other keeps the server busy.
const LIST_WINDOW: usize = 2;

/// Reads in flight: each new leader reads a long lane completely, so parallel reads save time.
const READ_WINDOW: usize = 4;

/// Generation and job: a turn within its lane.
pub type Spot = (u32, JobId);

/// The position of a turn: the transaction that created it, and its index within that transaction.
pub type Order = (i64, u32);

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Gate {
    lanes: BTreeMap<Lane, View>,
    held: BTreeMap<JobId, Turn>,
    /// Of the jobs in `held`.
    counts: KindCounts,
    to_list: VecDeque<Lane>,
    to_read: VecDeque<(Lane, Spot)>,
    lists: usize,
    reads: usize,
    halted: bool,
    last_ticket: u64,
    /// Reads up to this ticket are outdated.
    forgotten: u64,
    ready: Vec<Waiting>,
    strays: Vec<ReadyEntry>,
}

/// The known state of a lane with waiting jobs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct View {
    waiting: BTreeMap<Spot, Held>,
    turns: BTreeMap<Spot, TurnState>,
    order: BTreeSet<(Order, Spot)>,
    listing: Listing,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Held {
    waiting: Waiting,
    /// The last ticket when this entry became known: a list with a later ticket was requested after it.
    since: u64,
    /// The turn is absent or cannot be used: the job waits for the next sweep.
    stray: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TurnState {
    Unread,
    Asked,
    At(Order),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
enum Listing {
    #[default]
    None,
    Wanted,
    InFlight {
        ticket: u64,
        /// Turns deleted since the list was requested.
        gone: BTreeSet<Spot>,
        again: bool,
    },
}

impl View {
    fn drop_turn(&mut self, spot: &Spot) {
        if let Some(TurnState::At(order)) = self.turns.remove(spot) {
            self.order.remove(&(order, spot.clone()));
        }
    }

    /// Returns the lowest turn, once it is certain.
    fn head(&self) -> Option<Spot> {
        if self.turns.len() == 1 {
            return self.turns.keys().next().cloned();
        }
        let all_read = self.turns.len() == self.order.len();
        self.order.first().filter(|_| all_read).map(|(_, spot)| spot.clone())
    }
}

impl Gate {
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn counts(&self) -> &KindCounts {
        &self.counts
    }

    /// Holds a job until its turn is the lowest.
    pub(super) fn insert(&mut self, turn: Turn, waiting: Waiting) {
        self.hold(turn, waiting, false);
    }

    pub(super) fn holds(&self, job: &JobId) -> bool {
        self.held.contains_key(job)
    }

    /// Holds a job again whose assignment was rejected because its turn is absent.
    pub(super) fn turn_was_gone(&mut self, turn: Turn, waiting: Waiting) {
        if let Some(view) = self.lanes.get_mut(&turn.lane) {
            view.drop_turn(&(turn.generation, waiting.at.job().clone()));
        }
        self.insert(turn, waiting);
    }

    /// Holds a job again whose assignment was rejected because an operator modified its turn. The job keeps its place
    /// and its lane waits; the next sweep tries again.
    pub(super) fn turn_was_set(&mut self, turn: Turn, waiting: Waiting) {
        self.hold(turn, waiting, true);
    }

    fn hold(&mut self, turn: Turn, waiting: Waiting, stray: bool) {
        let job = waiting.at.job().clone();
        self.remove(&job);
        let (lane, spot) = (turn.lane.clone(), (turn.generation, job.clone()));
        let held = Held { waiting, since: self.last_ticket, stray };
        self.counts.add(&held.waiting.entry.kind, 1);
        self.held.insert(job, turn);
        self.lanes.entry(lane.clone()).or_default().waiting.insert(spot, held);
        self.settle(&lane);
    }

    /// Removes a job. Returns whether it was held.
    pub(super) fn remove(&mut self, job: &JobId) -> bool {
        let Some(Turn { lane, generation }) = self.held.remove(job) else { return false };
        if let Some(view) = self.lanes.get_mut(&lane) {
            let left = view.waiting.remove(&(generation, job.clone()));
            left.iter().for_each(|held| self.counts.remove(&held.waiting.entry.kind, 1));
        }
        self.settle(&lane);
        true
    }

    /// Removes the job if this is its entry. A stray whose entry exists has no turn, because an operator has deleted it, and
    /// waits for the next sweep. Returns whether it was held.
    pub(super) fn remove_entry(&mut self, at: &ReadyEntry) -> bool {
        let Some(Turn { lane, generation }) = self.held.get(at.job()) else { return false };
        let held = self.lanes.get(lane).and_then(|view| view.waiting.get(&(*generation, at.job().clone())));
        held.is_some_and(|held| held.waiting.at == *at) && self.remove(at.job())
    }

    pub(super) fn turn_gone(&mut self, lane: &Lane, spot: Spot) {
        let Some(view) = self.lanes.get_mut(lane) else { return };
        view.drop_turn(&spot);
        if let Listing::InFlight { gone, .. } = &mut view.listing {
            gone.insert(spot);
        }
        self.settle(lane);
    }

    /// Lists all lanes again, because watch events may have been lost.
    pub(super) fn sweep(&mut self) {
        self.halted = false;
        for (lane, view) in &mut self.lanes {
            view.waiting.values_mut().for_each(|held| held.stray = false);
            match &mut view.listing {
                Listing::None => {
                    view.listing = Listing::Wanted;
                    self.to_list.push_back(lane.clone());
                }
                Listing::Wanted => {}
                Listing::InFlight { again, .. } => *again = true,
            }
        }
    }

    /// Forgets all turns: they may have been deleted, and others created under their names, without being seen.
    pub(super) fn forget(&mut self) {
        self.forgotten = self.last_ticket;
        self.to_read.clear();
        self.to_list.clear();
        for view in self.lanes.values_mut() {
            (view.turns, view.order, view.listing) = Default::default();
        }
        self.sweep();
    }

    pub(super) fn listed(&mut self, ticket: u64, lanes: Vec<Lane>, lists: Option<Vec<Vec<Spot>>>) {
        self.lists -= 1;
        let Some(lists) = lists else {
            self.halted = true;
            for lane in lanes {
                let Some(view) = self.lanes.get_mut(&lane) else { continue };
                if matches!(view.listing, Listing::InFlight { ticket: asked, .. } if asked == ticket) {
                    view.listing = Listing::Wanted;
                    self.to_list.push_back(lane);
                }
            }
            return;
        };
        for (lane, listed) in lanes.into_iter().zip(lists) {
            self.lane_listed(ticket, lane, listed);
        }
    }

    fn lane_listed(&mut self, ticket: u64, lane: Lane, listed: Vec<Spot>) {
        let Some(view) = self.lanes.get_mut(&lane) else { return };
        let (gone, again) = match &mut view.listing {
            Listing::InFlight { ticket: asked, gone, again } if *asked == ticket => {
                (std::mem::take(gone), *again)
            }
            // The answer to an abandoned list.
            Listing::None | Listing::Wanted | Listing::InFlight { .. } => return,
        };
        view.listing = Listing::None;
        let mut before = std::mem::take(&mut view.turns);
        let left = listed.into_iter().filter(|spot| !gone.contains(spot)).map(|spot| {
            let state = before.remove(&spot).unwrap_or(TurnState::Unread);
            (spot, state)
        });
        view.turns = left.collect();
        for (spot, state) in before {
            if let TurnState::At(order) = state {
                view.order.remove(&(order, spot));
            }
        }
        if view.turns.len() > 1 {
            for (spot, state) in view.turns.iter_mut().filter(|(_, s)| **s == TurnState::Unread) {
                *state = TurnState::Asked;
                self.to_read.push_back((lane.clone(), spot.clone()));
            }
        }
        for (spot, held) in &mut view.waiting {
            if held.since < ticket && !held.stray && !view.turns.contains_key(spot) {
                held.stray = true;
                self.strays.push(held.waiting.at.clone());
            }
        }
        if again {
            view.listing = Listing::Wanted;
            self.to_list.push_back(lane.clone());
        }
        self.settle(&lane);
    }

    pub(super) fn read(&mut self, ticket: u64, turns: Vec<(Lane, Spot)>, found: Option<Vec<Option<Order>>>) {
        self.reads -= 1;
        self.halted |= found.is_none();
        if ticket <= self.forgotten {
            return;
        }
        let found =
            found.map_or_else(|| vec![None; turns.len()], |found| found.into_iter().map(Some).collect());
        let mut lanes = BTreeSet::new();
        for ((lane, spot), found) in turns.into_iter().zip(found) {
            let Some(view) = self.lanes.get_mut(&lane) else { continue };
            let Some(state @ TurnState::Asked) = view.turns.get_mut(&spot) else { continue };
            match found {
                Some(Some(order)) => {
                    *state = TurnState::At(order);
                    view.order.insert((order, spot));
                }
                Some(None) => view.drop_turn(&spot),
                // No answer: the list after the halt reads the turn again.
                None => *state = TurnState::Unread,
            }
            lanes.insert(lane);
        }
        lanes.iter().for_each(|lane| self.settle(lane));
    }

    /// Releases the job whose turn is the lowest, and lists or forgets the lane if needed.
    fn settle(&mut self, lane: &Lane) {
        let Some(view) = self.lanes.get_mut(lane) else { return };
        if let Some(spot) = view.head()
            && view.waiting.get(&spot).is_some_and(|held| !held.stray)
            && let Some(held) = view.waiting.remove(&spot)
        {
            self.held.remove(&spot.1);
            self.counts.remove(&held.waiting.entry.kind, 1);
            self.ready.push(held.waiting);
        }
        if view.waiting.is_empty() {
            self.lanes.remove(lane);
            return;
        }
        let due = view.turns.is_empty() && view.waiting.values().any(|held| !held.stray);
        if due && matches!(view.listing, Listing::None) {
            view.listing = Listing::Wanted;
            self.to_list.push_back(lane.clone());
        }
    }

    /// Returns the jobs released since the last call.
    pub(super) fn ready(&mut self) -> Vec<Waiting> {
        std::mem::take(&mut self.ready)
    }

    /// Sends requests: immediately when no other is in flight, otherwise only full batches.
    pub(super) fn ask(&mut self, out: &mut Vec<Effect>) {
        if !self.strays.is_empty() {
            out.push(Effect::Resolve(std::mem::take(&mut self.strays)));
        }
        while !self.halted && may_ask(self.lists, LIST_WINDOW, self.to_list.len(), MAX_LANE_LISTS) {
            self.list(out);
        }
        while !self.halted && may_ask(self.reads, READ_WINDOW, self.to_read.len(), MAX_READ_BATCH) {
            self.read_some(out);
        }
    }

    fn list(&mut self, out: &mut Vec<Effect>) {
        let ticket = self.last_ticket + 1;
        let mut lanes = Vec::new();
        while lanes.len() < MAX_LANE_LISTS
            && let Some(lane) = self.to_list.pop_front()
        {
            // Skip a lane that has no waiting job, or was listed by an earlier queue position.
            if let Some(view) = self.lanes.get_mut(&lane)
                && matches!(view.listing, Listing::Wanted)
            {
                view.listing = Listing::InFlight { ticket, gone: BTreeSet::new(), again: false };
                lanes.push(lane);
            }
        }
        if !lanes.is_empty() {
            self.last_ticket = ticket;
            self.lists += 1;
            out.push(Effect::ListLanes { ticket, lanes });
        }
    }

    fn read_some(&mut self, out: &mut Vec<Effect>) {
        let mut turns = Vec::new();
        while turns.len() < MAX_READ_BATCH
            && let Some((lane, spot)) = self.to_read.pop_front()
        {
            let state = self.lanes.get(&lane).and_then(|view| view.turns.get(&spot));
            if state == Some(&TurnState::Asked) {
                turns.push((lane, spot));
            }
        }
        if !turns.is_empty() {
            self.last_ticket += 1;
            self.reads += 1;
            out.push(Effect::ReadTurns { ticket: self.last_ticket, turns });
        }
    }
}

fn may_ask(in_flight: usize, window: usize, wanted: usize, batch: usize) -> bool {
    wanted > 0 && (in_flight == 0 || (in_flight < window && wanted >= batch))
}
