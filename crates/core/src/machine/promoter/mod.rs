//! Moving jobs whose time has come from the delayed ones to the queue.
//!
//! Delayed jobs stand in one znode per minute, so the leader knows only those of the minutes that have come or
//! come next ([`HORIZON`]); a million jobs of next month cost it nothing. At each minute it lists the minutes
//! and loads the ones that are new within the horizon.
//!
//! The due time is compared with this leader's wall clock and was written by another's: a skew between the two
//! shifts a backoff by as much, and nothing else. A promotion whose reply is lost is forgotten with what was known of
//! its entries: after the session is back all are listed, and read, anew, for one that is known may have gone and come again with
//! another attempt meanwhile. A late copy of it finds the entry gone. That it
//! does not find the entry of a later attempt, in the same minute, is by ZooKeeper's order: a session's requests are
//! applied in the order in which they were sent, or not at all.
//!
//! Limits: [`BATCH`] jobs a batch, one batch and one read in flight.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::MAX_READ_BATCH;
use crate::job::QueueEntry;
use crate::name::JobId;
use crate::outcome::Outcome;
use crate::time::WallMillis;
use crate::txn::{self, Batch, Locus};

/// Minutes beyond the present one that are known: the next, so that its first second is not late.
pub const HORIZON: u64 = 1;

/// Jobs a batch.
pub const BATCH: usize = 100;

/// A delayed entry's place.
pub type Place = (u64, JobId);

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A watch reported a new or changed delayed entry: what is known of it is of the past.
    Created(Place),
    /// A list showed a delayed entry.
    Seen(Place),
    /// A watch reported that one is gone.
    Gone(Place),
    /// The minutes that have jobs were listed.
    Minutes(Vec<u64>),
    /// Entries were read: `None` is absent or unreadable.
    Read(Vec<(Place, Option<QueueEntry>)>),
    /// A read of these was not answered.
    ReadFailed(Vec<Place>),
    /// A batch was answered.
    Committed(Batch<Place>, Outcome<()>),
    /// Time has passed.
    Tick,
    /// A new watch stands, and hints were lost: what is known may have gone, or be another entry by now. List and read
    /// everything anew.
    Anew,
    /// It is time to list everything: a hint may have been lost.
    Resync,
}

/// What the leader shall do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// List the minutes.
    ListMinutes,
    /// List the jobs of this minute.
    List(u64),
    /// Read these entries, at most [`MAX_READ_BATCH`].
    Read(Vec<Place>),
    /// Commit this and hand it back with its outcome.
    Commit(Batch<Place>),
    /// Another leader has claimed.
    FencedOut,
}

/// The machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Promoter {
    epoch: i32,
    entries: BTreeMap<Place, Standing>,
    unread: BTreeSet<Place>,
    due: BTreeSet<(WallMillis, Place)>,
    minute: Option<u64>,
    reading: bool,
    committing: bool,
    acting: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Standing {
    Unread,
    Reading,
    Waiting(QueueEntry),
    Promoting(QueueEntry),
}

impl Promoter {
    /// A machine for the term of `epoch`.
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
            Event::Created(place) => {
                if place.0 <= now.minute() + HORIZON {
                    self.forget(&place);
                    self.unread.insert(place.clone());
                    self.entries.insert(place, Standing::Unread);
                }
            }
            Event::Seen(place) => {
                if place.0 <= now.minute() + HORIZON && !self.entries.contains_key(&place) {
                    self.unread.insert(place.clone());
                    self.entries.insert(place, Standing::Unread);
                }
            }
            Event::Gone(place) => self.forget(&place),
            Event::Minutes(minutes) => {
                out.extend(minutes.into_iter().filter(|m| *m <= now.minute() + HORIZON).map(Effect::List));
            }
            Event::Read(entries) => {
                self.reading = false;
                for (place, entry) in entries {
                    self.read(place, entry);
                }
            }
            Event::ReadFailed(places) => {
                self.reading = false;
                self.acting = false;
                for place in places {
                    if let Some(standing @ Standing::Reading) = self.entries.get_mut(&place) {
                        *standing = Standing::Unread;
                        self.unread.insert(place);
                    }
                }
            }
            Event::Committed(batch, outcome) => self.committed(batch, outcome, out),
            Event::Tick => {}
            Event::Anew => {
                self.entries.clear();
                self.unread.clear();
                self.due.clear();
                (self.acting, self.minute) = (true, None);
            }
            Event::Resync => {
                self.acting = true;
                self.minute = None;
            }
        }
        self.advance(now, out);
    }

    /// When the next known job is due.
    #[must_use]
    pub fn next_due(&self) -> Option<WallMillis> {
        self.due.first().map(|(at, _)| *at)
    }

    /// How many delayed jobs are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn forget(&mut self, place: &Place) {
        self.unread.remove(place);
        if let Some(Standing::Waiting(entry)) = self.entries.remove(place) {
            self.due.remove(&(entry.not_before, place.clone()));
        }
    }

    fn read(&mut self, place: Place, entry: Option<QueueEntry>) {
        let Some(standing @ Standing::Reading) = self.entries.get_mut(&place) else { return };
        match entry {
            Some(entry) => {
                self.due.insert((entry.not_before, place));
                *standing = Standing::Waiting(entry);
            }
            None => {
                self.entries.remove(&place);
            }
        }
    }

    fn committed(&mut self, mut batch: Batch<Place>, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        self.committing = false;
        match outcome {
            Outcome::Applied(()) => self.drop_promoted(batch),
            // Promoted or not: the list after the resync tells. What is known now may be an entry of the past.
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
                        // Cancelled, or promoted by a write that was thought lost.
                        let (place, _) = batch.remove(group);
                        self.drop_one(&place);
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

    fn drop_promoted(&mut self, batch: Batch<Place>) {
        batch.keys().for_each(|place| self.drop_one(place));
    }

    /// Unless it has been seen anew since the promotion was sent: then it is another entry.
    fn drop_one(&mut self, place: &Place) {
        if let Some(Standing::Promoting(_)) = self.entries.get(place) {
            self.entries.remove(place);
        }
    }

    fn put_back(&mut self, batch: Batch<Place>) {
        for (place, _) in batch.into_groups() {
            if let Some(standing @ Standing::Promoting(_)) = self.entries.get_mut(&place)
                && let Standing::Promoting(entry) = std::mem::replace(standing, Standing::Unread)
            {
                self.due.insert((entry.not_before, place));
                *standing = Standing::Waiting(entry);
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
            let mut places = Vec::new();
            while places.len() < MAX_READ_BATCH
                && let Some(place) = self.unread.pop_first()
            {
                self.entries.insert(place.clone(), Standing::Reading);
                places.push(place);
            }
            if !places.is_empty() {
                self.reading = true;
                out.push(Effect::Read(places));
            }
        }
        if !self.committing {
            self.promote(now, out);
        }
    }

    fn promote(&mut self, now: WallMillis, out: &mut Vec<Effect>) {
        let mut batch = Batch::new(vec![txn::fence(self.epoch)]);
        while batch.len() < BATCH
            && let Some((at, place)) = self.due.pop_first()
        {
            if at > now {
                self.due.insert((at, place));
                break;
            }
            let Some(standing @ Standing::Waiting(_)) = self.entries.get_mut(&place) else { continue };
            let Standing::Waiting(entry) = std::mem::replace(standing, Standing::Unread) else { continue };
            let (minute, job) = &place;
            let ops = txn::promote(job, *minute, &entry);
            *standing = Standing::Promoting(entry);
            if let Err((place, _)) = batch.push(place, ops) {
                // A hundred small entries are far below any budget; should one not fit, it is due still.
                self.due.insert((at, place));
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
