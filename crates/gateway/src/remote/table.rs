//! The attempts of one remote worker: which were delivered, which it must stop, and which have been finished.
//!
//! ```text
//!             poll                    finish
//!  Offered ──────────▶ Delivered ─────────────▶ Finishing ──kept for repeats──▶ forgotten
//!     │                 │  ▲ not listed by the next poll: delivered again
//!     └──── ended without a finish ──▶ stopped: in every answer, while the worker lists the attempt
//! ```
//!
//! A poll lists what the worker has. So a lost answer of a poll is repaired by the next poll: attempts that the worker does
//! not list are delivered again. A stop ends a waiting poll once; later answers repeat it without ending a poll, because the
//! worker may need a while to stop.
//!
//! An attempt that was taken over from another gateway is known by two ids: the one that the worker has had, and the one with
//! the new token. The worker may use either. It is *awaited* from the move until its handler begins, and is then delivered.
//!
//! The table is pure: it has no clock and waits for nothing.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use bellwether::JobId;

/// Finished attempts that are kept, in addition to two for each slot, to answer a repeated finish.
const KEPT: usize = 512;

/// Stopped attempts that are kept until the worker no longer lists them. Beyond it the reason is lost, not the stop.
const MAX_STOPPED: usize = 8_192;

/// An attempt as a remote worker names it. The token makes it unique: it grows from each attempt of a job to the next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    pub(crate) fencing_token: i32,
}

/// Why a remote worker must stop an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A client cancelled the job.
    Cancelled,
    /// The attempt was closed without a finish, or will be: its lease expired, it exceeded its timeout, or another process
    /// closed it.
    Closed,
    /// The worker drains, and the attempt was handed back.
    HandedBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Offered,
    Delivered,
    Finishing,
}

#[derive(Debug, Clone, Copy)]
struct Stop {
    reason: Reason,
    /// Whether an answer contained it.
    sent: bool,
}

#[derive(Debug)]
struct Entry<A> {
    order: u64,
    phase: Phase,
    /// Set while the attempt is asked to stop.
    stop: Option<Stop>,
    attempt: A,
}

/// The instructions for a worker about the attempts that it lists.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Instructions {
    pub(crate) stop: Vec<(Id, Reason)>,
    pub(crate) draining: bool,
}

/// Whether a poll without news is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// No: it waits.
    Wait,
    /// Yes: its time is over.
    Over,
}

/// The attempts of one remote worker. `A` is the attempt itself.
#[derive(Debug)]
pub(super) struct Table<A> {
    entries: HashMap<Id, Entry<A>>,
    stopped: BTreeMap<Id, Stop>,
    /// The new id of each attempt that was taken over, by the id that the worker had.
    aliases: BTreeMap<Id, Id>,
    /// Attempts that were taken over and whose handlers have not begun.
    awaited: BTreeSet<Id>,
    /// Finishing attempts, the oldest first.
    finishing: VecDeque<Id>,
    kept: usize,
    next: u64,
    /// Whether a drain has begun, and whether an answer contained it.
    draining: Option<bool>,
}

impl<A: Clone> Table<A> {
    pub(super) fn new(slots: u32) -> Self {
        Self {
            entries: HashMap::new(),
            stopped: BTreeMap::new(),
            aliases: BTreeMap::new(),
            awaited: BTreeSet::new(),
            finishing: VecDeque::new(),
            kept: (slots as usize).saturating_mul(2).saturating_add(KEPT),
            next: 0,
            draining: None,
        }
    }

    /// Offers an attempt. Returns `false` if the table has one with the same id: the id was reused after the record of a
    /// finished job was removed.
    pub(super) fn begin(&mut self, id: Id, attempt: A) -> bool {
        if self.is_known(&id) || self.aliases.get(&id).is_some_and(|new| self.is_known(new)) {
            return false;
        }
        self.aliases.remove(&id);
        self.enter(id, Phase::Offered, attempt);
        true
    }

    /// The handler of an attempt begins that was taken over: the worker has it already. Returns `false` if it is not awaited;
    /// it must not be offered, because the worker was told to stop it.
    pub(super) fn attach(&mut self, id: Id, attempt: A) -> bool {
        let awaited = self.awaited.remove(&id);
        if awaited {
            self.enter(id, Phase::Delivered, attempt);
        }
        awaited
    }

    /// Awaits an attempt that was taken over.
    pub(super) fn take_over(&mut self, was: Id, is: Id) {
        self.awaited.insert(is.clone());
        self.aliases.insert(was, is);
    }

    /// Whether an attempt that was taken over is awaited.
    pub(super) fn awaits(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Awaits no attempt any longer.
    pub(super) fn give_up(&mut self) {
        self.awaited.clear();
    }

    /// The current token of an attempt that the worker has, if it is here.
    pub(super) fn fencing_token(&self, id: &Id) -> Option<i32> {
        let id = self.known(id);
        self.entries.contains_key(id).then_some(id.fencing_token)
    }

    fn is_known(&self, id: &Id) -> bool {
        self.entries.contains_key(id) || self.stopped.contains_key(id)
    }

    fn enter(&mut self, id: Id, phase: Phase, attempt: A) {
        let entry = Entry { order: self.next, phase, stop: None, attempt };
        self.next += 1;
        self.entries.insert(id, entry);
    }

    /// The id under which the table has the attempt.
    fn known<'a>(&'a self, id: &'a Id) -> &'a Id {
        self.aliases.get(id).unwrap_or(id)
    }

    fn all_known<'a>(&self, running: &'a BTreeSet<Id>) -> Cow<'a, BTreeSet<Id>> {
        if self.aliases.is_empty() {
            Cow::Borrowed(running)
        } else {
            Cow::Owned(running.iter().map(|id| self.known(id).clone()).collect())
        }
    }

    /// Asks the worker to stop an attempt. A finish still counts until [`Table::ended`].
    pub(super) fn stop(&mut self, id: &Id, reason: Reason) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.stop.get_or_insert(Stop { reason, sent: false });
        }
    }

    /// The attempt has ended in the gateway. Without a finish the worker must stop it.
    pub(super) fn ended(&mut self, id: &Id, reason: Reason) {
        match self.entries.get(id).map(|entry| entry.phase) {
            Some(Phase::Offered) => {
                self.entries.remove(id);
            }
            Some(Phase::Delivered) => {
                let stop = self.entries.remove(id).and_then(|entry| entry.stop);
                self.stopped.insert(id.clone(), stop.unwrap_or(Stop { reason, sent: false }));
                if self.stopped.len() > MAX_STOPPED {
                    self.stopped.pop_first();
                }
            }
            // The finish learns how the attempt was closed.
            Some(Phase::Finishing) | None => {}
        }
    }

    /// Begins a drain. Its news ends a waiting poll.
    pub(super) fn drain(&mut self) {
        self.draining.get_or_insert(false);
    }

    /// Answers a poll of a worker that has the attempts `running`; `None` while there is no news. `has_room` decides
    /// whether the answer has room for a further attempt.
    pub(super) fn poll(
        &mut self,
        running: &BTreeSet<Id>,
        patience: Patience,
        mut has_room: impl FnMut(&A) -> bool,
    ) -> Option<(Vec<A>, Instructions)> {
        let present = self.all_known(running);
        let is_due = |id: &Id, entry: &Entry<A>| {
            entry.stop.is_none()
                && match entry.phase {
                    Phase::Offered => true,
                    Phase::Delivered => !present.contains(id),
                    Phase::Finishing => false,
                }
        };
        let due = self.entries.iter_mut().filter(|(id, entry)| is_due(id, entry));
        let mut due = due.map(|(_, entry)| entry).collect::<Vec<_>>();
        due.sort_unstable_by_key(|entry| entry.order);
        let due = due.into_iter().take_while(|entry| has_room(&entry.attempt));
        let attempts = due.map(|entry| {
            entry.phase = Phase::Delivered;
            entry.attempt.clone()
        });
        let attempts = attempts.collect::<Vec<_>>();
        let is_news = self.draining == Some(false) || self.has_unsent(running);
        if attempts.is_empty() && !is_news && patience == Patience::Wait {
            return None;
        }
        // The worker does not have the others, or has stopped them.
        self.stopped.retain(|id, _| present.contains(id));
        Some((attempts, self.instructions(running)))
    }

    /// Returns the attempts of those in `running` that are open, and the instructions for the worker.
    pub(super) fn heartbeat(&mut self, running: &BTreeSet<Id>) -> (Vec<(Id, A)>, Instructions) {
        let open = running.iter().filter_map(|id| {
            let entry = self.entries.get(self.known(id)).filter(|entry| entry.phase != Phase::Finishing)?;
            Some((id.clone(), entry.attempt.clone()))
        });
        (open.collect(), self.instructions(running))
    }

    /// Begins or repeats the finish of an attempt; `None` if the worker does not have it.
    pub(super) fn finish(&mut self, id: &Id) -> Option<A> {
        let id = self.known(id).clone();
        let entry = self.entries.get_mut(&id)?;
        let attempt = entry.attempt.clone();
        if entry.phase != Phase::Finishing {
            entry.phase = Phase::Finishing;
            self.finishing.push_back(id);
            if self.finishing.len() > self.kept
                && let Some(oldest) = self.finishing.pop_front()
            {
                self.entries.remove(&oldest);
            }
        }
        Some(attempt)
    }

    fn has_unsent(&self, running: &BTreeSet<Id>) -> bool {
        let mut running = running.iter().map(|id| self.known(id));
        running.any(|id| match (self.entries.get(id), self.stopped.get(id)) {
            (Some(Entry { phase: Phase::Finishing, .. }), _) => false,
            (Some(entry), _) => entry.stop.is_some_and(|stop| !stop.sent),
            (None, Some(stop)) => !stop.sent,
            // Unknown here: the worker must stop it.
            (None, None) => true,
        })
    }

    fn instructions(&mut self, running: &BTreeSet<Id>) -> Instructions {
        let mut stop = Vec::new();
        for id in running {
            let known = self.known(id).clone();
            let stopped = match self.entries.get_mut(&known) {
                Some(Entry { phase: Phase::Finishing, .. }) => None,
                Some(entry) => entry.stop.as_mut(),
                None => {
                    let unknown = Stop { reason: Reason::Closed, sent: false };
                    Some(self.stopped.entry(known).or_insert(unknown))
                }
            };
            if let Some(stopped) = stopped {
                stopped.sent = true;
                stop.push((id.clone(), stopped.reason));
            }
        }
        while self.stopped.len() > MAX_STOPPED {
            self.stopped.pop_first();
        }
        let draining = self.draining.is_some();
        self.draining = self.draining.map(|_| true);
        Instructions { stop, draining }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
