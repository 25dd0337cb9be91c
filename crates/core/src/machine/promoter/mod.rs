//! Moves due jobs from the delayed entries to the queue.
//!
//! Delayed jobs are stored in one parent znode per minute, so the leader knows only the minutes that have come and the
//! next ones ([`HORIZON`]): a million jobs of the next month cost nothing. Every minute the leader lists the minutes
//! and loads the new ones within the horizon.
//!
//! The due time was written by another process. Both follow ZooKeeper's clock ([`clock`](crate::clock)), so their times differ
//! by at most a round trip. The name of an entry denotes one attempt, so an entry that is known
//! stays valid, and a late promotion does not find the entry of a later attempt. When the reply to a promotion is lost, its
//! entries are forgotten: once the session is back, all entries are listed, and those that are still there are read again.
//!
//! Limits: [`BATCH`] jobs per batch, one batch and one read in flight.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::MAX_READ_BATCH;
use crate::job::{Delay, QueueEntry};
use crate::name::JobId;
use crate::outcome::Outcome;
use crate::time::WallMillis;
use crate::txn::{self, Batch, Locus};

/// Number of minutes after the current one that are loaded: the next, so that its first second is on time.
pub const HORIZON: u64 = 1;

/// Jobs per batch.
pub const BATCH: usize = 100;

/// A delayed entry: its name and its job.
pub type DelayedKey = (Delay, JobId);

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A watch or a list reported a delayed entry.
    Seen(DelayedKey),
    /// A watch reported that an operator has set an entry: it must be read again.
    Changed(DelayedKey),
    /// A watch reported that an entry was deleted.
    Gone(DelayedKey),
    /// The minutes with delayed jobs were listed.
    Minutes(Vec<u64>),
    /// Entries were read: `None` is absent or unreadable.
    Read(Vec<(DelayedKey, Option<QueueEntry>)>),
    /// A read of these entries was not answered.
    ReadFailed(Vec<DelayedKey>),
    /// The outcome of a batch.
    Committed(Batch<DelayedKey>, Outcome<()>),
    /// Time has passed.
    Tick,
    /// List everything: a new watch is set, or a watch event may have been lost.
    Resync,
}

/// Output of the machine, carried out by the leader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// List the minutes.
    ListMinutes,
    /// List the jobs of this minute.
    List(u64),
    /// Read these entries, at most [`MAX_READ_BATCH`].
    Read(Vec<DelayedKey>),
    /// Commit this batch and return it with its outcome.
    Commit(Batch<DelayedKey>),
    /// Another leader has claimed the epoch.
    FencedOut,
}

/// State machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Promoter {
    epoch: i32,
    entries: BTreeMap<DelayedKey, DelayedEntryState>,
    unread: BTreeSet<DelayedKey>,
    due: BTreeSet<(WallMillis, DelayedKey)>,
    minute: Option<u64>,
    reading: bool,
    committing: bool,
    acting: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum DelayedEntryState {
    Unread,
    Reading,
    Waiting(QueueEntry),
    Promoting(QueueEntry),
}

impl Promoter {
    /// Creates the machine for the term of `epoch`.
    #[must_use]
    pub fn new(epoch: i32) -> Self {
        Self {
            epoch,
            entries: BTreeMap::new(),
            unread: BTreeSet::new(),
            due: BTreeSet::new(),
            minute: None,
            reading: false,
            committing: false,
            acting: false,
        }
    }

    /// Handles one event at the wall time `now`.
    pub fn handle(&mut self, now: WallMillis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Seen(key) => self.seen(key, now),
            Event::Changed(key) => {
                self.forget(&key);
                self.seen(key, now);
            }
            Event::Gone(key) => self.forget(&key),
            Event::Minutes(minutes) => {
                out.extend(minutes.into_iter().filter(|m| *m <= now.minute() + HORIZON).map(Effect::List));
            }
            Event::Read(entries) => {
                self.reading = false;
                for (key, entry) in entries {
                    self.read(key, entry);
                }
            }
            Event::ReadFailed(keys) => {
                self.reading = false;
                self.acting = false;
                for key in keys {
                    if let Some(state @ DelayedEntryState::Reading) = self.entries.get_mut(&key) {
                        *state = DelayedEntryState::Unread;
                        self.unread.insert(key);
                    }
                }
            }
            Event::Committed(batch, outcome) => self.committed(batch, outcome, out),
            Event::Tick => {}
            Event::Resync => (self.acting, self.minute) = (true, None),
        }
        self.advance(now, out);
    }

    /// Returns when the next known job is due.
    #[must_use]
    pub fn next_due(&self) -> Option<WallMillis> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Returns the number of known delayed jobs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether no delayed job is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn seen(&mut self, key: DelayedKey, now: WallMillis) {
        if key.0.minute <= now.minute() + HORIZON && !self.entries.contains_key(&key) {
            self.unread.insert(key.clone());
            self.entries.insert(key, DelayedEntryState::Unread);
        }
    }

    fn forget(&mut self, key: &DelayedKey) {
        self.unread.remove(key);
        if let Some(DelayedEntryState::Waiting(entry)) = self.entries.remove(key) {
            self.due.remove(&(entry.not_before, key.clone()));
        }
    }

    fn read(&mut self, key: DelayedKey, entry: Option<QueueEntry>) {
        let Some(state @ DelayedEntryState::Reading) = self.entries.get_mut(&key) else { return };
        match entry {
            Some(entry) => {
                self.due.insert((entry.not_before, key));
                *state = DelayedEntryState::Waiting(entry);
            }
            None => {
                self.entries.remove(&key);
            }
        }
    }

    fn committed(&mut self, mut batch: Batch<DelayedKey>, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        self.committing = false;
        match outcome {
            Outcome::Applied(()) => self.drop_promoted(batch),
            // Promoted or not: the list after the resync shows it.
            Outcome::Unknown => {
                self.acting = false;
                self.drop_promoted(batch);
            }
            Outcome::Rejected(rejection) if rejection.is_whole() => {
                self.acting = false;
                self.put_back(batch);
            }
            Outcome::Rejected(rejection) => {
                match batch.locate(rejection.at) {
                    Some(Locus::Group { group, .. }) => {
                        // Cancelled, or promoted by a write that seemed lost.
                        let (key, _) = batch.remove(group);
                        self.forget(&key);
                    }
                    Some(Locus::Fence(_)) | None => {
                        self.acting = false;
                        if rejection.is_fence() {
                            out.push(Effect::FencedOut);
                        }
                    }
                }
                self.put_back(batch);
            }
        }
    }

    fn drop_promoted(&mut self, batch: Batch<DelayedKey>) {
        batch.keys().for_each(|key| self.forget(key));
    }

    fn put_back(&mut self, batch: Batch<DelayedKey>) {
        for (key, _) in batch.into_groups() {
            if let Some(state @ DelayedEntryState::Promoting(_)) = self.entries.get_mut(&key)
                && let DelayedEntryState::Promoting(entry) =
                    std::mem::replace(state, DelayedEntryState::Unread)
            {
                self.due.insert((entry.not_before, key));
                *state = DelayedEntryState::Waiting(entry);
            }
        }
    }

    fn advance(&mut self, now: WallMillis, out: &mut Vec<Effect>) {
        if !self.acting {
            return;
        }
        if self.minute != Some(now.minute()) {
            self.minute = Some(now.minute());
            out.push(Effect::ListMinutes);
        }
        if !self.reading {
            let mut keys = Vec::new();
            while keys.len() < MAX_READ_BATCH
                && let Some(key) = self.unread.pop_first()
            {
                self.entries.insert(key.clone(), DelayedEntryState::Reading);
                keys.push(key);
            }
            if !keys.is_empty() {
                self.reading = true;
                out.push(Effect::Read(keys));
            }
        }
        if !self.committing {
            self.promote(now, out);
        }
    }

    fn promote(&mut self, now: WallMillis, out: &mut Vec<Effect>) {
        let mut batch = Batch::new(vec![txn::fence(self.epoch)]);
        while batch.len() < BATCH
            && let Some((at, key)) = self.due.pop_first()
        {
            if at > now {
                self.due.insert((at, key));
                break;
            }
            let Some(state @ DelayedEntryState::Waiting(_)) = self.entries.get_mut(&key) else {
                continue;
            };
            let DelayedEntryState::Waiting(entry) = std::mem::replace(state, DelayedEntryState::Unread)
            else {
                continue;
            };
            let (delay, job) = &key;
            let ops = txn::promote(job, *delay, &entry);
            *state = DelayedEntryState::Promoting(entry);
            if let Err((key, _)) = batch.push(key, ops) {
                // 100 small entries are far below the budget of a batch; an entry that does not fit stays due.
                self.due.insert((at, key));
                break;
            }
        }
        if !batch.is_empty() {
            self.committing = true;
            out.push(Effect::Commit(batch));
        }
    }
}

#[cfg(test)]
mod tests;
