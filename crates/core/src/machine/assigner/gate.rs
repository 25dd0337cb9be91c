//! Whose turn it is in each lane: jobs with a lane wait here until theirs is the lowest.
//!
//! ```text
//!  entry known ─▶ waiting ──its turn is the lowest of a list that has it──▶ pending, as any other job
//!                   ▲  │
//!                   │  └─ not in a list that was asked for later: its entry may be of the past, read it again
//!                   └── the assignment was rejected, because of its turn: gone, or set by a strange hand
//! ```
//!
//! **Why an old list is good enough.** Turns are ordered by the transaction that created them, so all that a list
//! lacks comes after all that it has. And a turn never comes back: its name has the generation, and a retry opens
//! another. So what a list says stays true but for turns that have gone since, the lowest of it stays the lowest
//! while it is there, and the next is the lowest once those before it are known to be gone. A lane is listed again
//! only when nothing of its list is left. (The leader's assignment checks the turn, so that one which went unnoticed
//! costs a write: see [`crate::txn`].)
//!
//! | event | what is known of the lane |
//! | --- | --- |
//! | a job waits, of a lane that is not known | list it |
//! | listed | the turns of the list; what is new of them is read, unless it is the only one |
//! | a turn is gone | it is; a list in flight that still shows it is corrected |
//! | nothing is left, and somebody waits | list it again |
//! | sweep, reconnection | list it again; the order that was read stays |
//! | watched anew | what went and came meanwhile is unknown: forget all, list it again |
//!
//! Lanes without a waiting job are not known at all: memory is that of the waiting jobs and of the turns of their
//! lanes. Limits: [`LIST_WINDOW`] lists of [`MAX_LANE_LISTS`] lanes in flight, and [`READ_WINDOW`] reads of
//! [`MAX_READ_BATCH`] turns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Effect;
use crate::budget::{MAX_LANE_LISTS, MAX_READ_BATCH};
use crate::job::{QueueEntry, Turn};
use crate::name::{JobId, Lane};

/// Lists in flight: while one is handled here, the other keeps the server busy.
const LIST_WINDOW: usize = 2;

/// Reads in flight: a long lane is read through once by each leader, and the faster the better.
const READ_WINDOW: usize = 4;

/// Generation and job: a turn within its lane.
pub type Spot = (u32, JobId);

/// Where a turn stands: the transaction that created it, and its index in that one.
pub type Order = (i64, u32);

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Gate {
    lanes: BTreeMap<Lane, View>,
    held: BTreeMap<JobId, Turn>,
    to_list: VecDeque<Lane>,
    to_read: VecDeque<(Lane, Spot)>,
    lists: usize,
    reads: usize,
    halted: bool,
    last_ticket: u64,
    /// Reads up to this ticket are of the past.
    forgotten: u64,
    ready: Vec<(JobId, QueueEntry)>,
    strays: Vec<JobId>,
}

/// What is known of a lane in which somebody waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct View {
    waiting: BTreeMap<Spot, Held>,
    turns: BTreeMap<Spot, TurnState>,
    order: BTreeSet<(Order, Spot)>,
    listing: Listing,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Held {
    entry: QueueEntry,
    /// A list with a later ticket was asked for after this entry was known.
    since: u64,
    /// Its turn is not there, or cannot be used: it waits for the next sweep.
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
        /// Gone since it was asked for.
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

    /// The lowest turn, once that is certain.
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

    /// Holds a job until its turn has come.
    pub(super) fn insert(&mut self, job: JobId, turn: Turn, entry: QueueEntry) {
        self.hold(job, turn, entry, false);
    }

    /// Its assignment was rejected, because its turn is gone.
    pub(super) fn turn_was_gone(&mut self, job: JobId, turn: Turn, entry: QueueEntry) {
        if let Some(view) = self.lanes.get_mut(&turn.lane) {
            view.drop_turn(&(turn.generation, job.clone()));
        }
        self.insert(job, turn, entry);
    }

    /// Its assignment was rejected for its turn, which is there: somebody set it. It keeps its place, and the lane waits;
    /// the next sweep tries again.
    pub(super) fn turn_was_set(&mut self, job: JobId, turn: Turn, entry: QueueEntry) {
        self.hold(job, turn, entry, true);
    }

    fn hold(&mut self, job: JobId, turn: Turn, entry: QueueEntry, stray: bool) {
        self.remove(&job);
        let (lane, spot) = (turn.lane.clone(), (turn.generation, job.clone()));
        let held = Held { entry, since: self.last_ticket, stray };
        self.held.insert(job, turn);
        self.lanes.entry(lane.clone()).or_default().waiting.insert(spot, held);
        self.settle(&lane);
    }

    /// Whether it was here.
    pub(super) fn remove(&mut self, job: &JobId) -> bool {
        let Some(Turn { lane, generation }) = self.held.remove(job) else { return false };
        if let Some(view) = self.lanes.get_mut(&lane) {
            view.waiting.remove(&(generation, job.clone()));
        }
        self.settle(&lane);
        true
    }

    /// The entry of a stray was read again. One that says the same as before has lost its turn to a strange hand, and
    /// waits for the next sweep.
    pub(super) fn read_again(&mut self, job: JobId, entry: Option<QueueEntry>) {
        let turn = entry.as_ref().and_then(QueueEntry::turn);
        match (entry, turn) {
            (Some(entry), Some(turn)) if self.held.get(&job).is_some_and(|held| *held != turn) => {
                self.insert(job, turn, entry);
            }
            (Some(_), _) => {}
            (None, _) => {
                self.remove(&job);
            }
        }
    }

    pub(super) fn turn_gone(&mut self, lane: &Lane, spot: Spot) {
        let Some(view) = self.lanes.get_mut(lane) else { return };
        view.drop_turn(&spot);
        if let Listing::InFlight { gone, .. } = &mut view.listing {
            gone.insert(spot);
        }
        self.settle(lane);
    }

    /// Lists all again: hints may have been lost.
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

    /// Forgets all that is known of turns: they may have gone, and others come under their names, unseen.
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
            // Of a list that was given up.
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
                self.strays.push(spot.1.clone());
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
                // Not answered: the list after the halt asks again.
                None => *state = TurnState::Unread,
            }
            lanes.insert(lane);
        }
        lanes.iter().for_each(|lane| self.settle(lane));
    }

    /// Lets through whose turn it is, and forgets, or lists, a lane when that is due.
    fn settle(&mut self, lane: &Lane) {
        let Some(view) = self.lanes.get_mut(lane) else { return };
        if let Some(spot) = view.head()
            && view.waiting.get(&spot).is_some_and(|held| !held.stray)
            && let Some(held) = view.waiting.remove(&spot)
        {
            self.held.remove(&spot.1);
            self.ready.push((spot.1, held.entry));
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

    /// Those whose turn has come since the last call.
    pub(super) fn ready(&mut self) -> Vec<(JobId, QueueEntry)> {
        std::mem::take(&mut self.ready)
    }

    /// Asks for what is to be known: at once when nothing is in flight, by full batches while something is.
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
            // Nobody waits in it any more, or it was asked for under an earlier place in the line.
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
