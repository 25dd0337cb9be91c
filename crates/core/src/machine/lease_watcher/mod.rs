//! Taking attempts from workers that live and give no sign of it: their handler hangs, or their whole runtime.
//!
//! Each change of an assignment is a sign of life; the assignment says how long the next may take to come (its *lease*).
//! Nobody's clock is compared with another's: a lease runs from when this leader *read* the assignment as it stands, by
//! its own monotonic clock, and is over when the lease and [`LEASE_MARGIN`] have passed and it still stands so. Watches
//! and lists only say where to look, and a new leader starts every clock afresh.
//!
//! ```text
//!            after LOOK_AFTER        read                lease + LEASE_MARGIN          stands as it stood
//!  Unlooked ──────────────────▶ Looking ──▶ Standing ────────────────────────▶ Judging ──────────────────▶ Closing ──▶ gone
//!     ▲                            │           │  ▲                               │                           │
//!     └── a change was reported ◀──┴───────────┘  └──── another stand was read ◀──┘   it was renewed: look ◀──┘
//! ```
//!
//! An attempt that is over within [`LOOK_AFTER`] costs no read, and most are.
//!
//! | a revocation that | means |
//! | --- | --- |
//! | is applied | the attempt is closed: a loss, or cancelled if that was asked for |
//! | is rejected at the assignment, or the record | renewed, flagged, or closed meanwhile: look again |
//! | is rejected at the turn, or at the group's part | an operator's hand was there: close at once without it |
//! | is rejected at the epoch | the term is over |
//! | was not sent, or has no reply | judge again once the session is back: what was closed is not there any more |
//!
//! The multi deletes the assignment at the version that was judged, so a renewal that comes meanwhile wins; and it sets
//! the record, so the hung run's result never commits (S9). A revocation that is applied after its read-back found nothing
//! rejects the second one by the record's version.
//!
//! The multi also sets the inbox ([`txn::shun`]), so that everybody can see who gets nothing for a while, and since when.
//!
//! What cannot be read is left alone: its worker sets it aside when it wakes, or the recovery when it dies.
//!
//! Limits: an entry for each job in an inbox, so for each slot in use; one read and one batch in flight.

mod close;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::budget::MAX_READ_BATCH;
use crate::job::{Assignment, JobRecord};
use crate::machine::worker_registry::recovery::Stored;
use crate::name::{JobId, WorkerId};
use crate::outcome::Outcome;
use crate::time::{Millis, WallMillis};
use crate::txn::{self, Batch, Locus};

pub use close::Revocation;

/// From the first sight of an assignment to its first read: no lease is shorter.
pub const LOOK_AFTER: Duration = crate::budget::MIN_LEASE;

/// Beyond a lease: the worker's own clock started later by its read of the inbox, and it has its handler's grace and a
/// transaction ahead. It knows better what became of the attempt, so it should be first.
pub const LEASE_MARGIN: Duration = Duration::from_secs(2);

/// Cases a read: two znodes each.
pub const CASES: usize = MAX_READ_BATCH / 2;

/// An assignment: its worker and its job.
pub type AssignmentKey = (WorkerId, JobId);

/// Which state of a znode: nobody has written it for as long as this is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stand {
    /// The transaction that created it.
    pub created: i64,
    /// Its version.
    pub version: i32,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A watch reported that an assignment was created or set.
    Changed(AssignmentKey),
    /// A list showed one.
    Seen(AssignmentKey),
    /// A watch reported that one is gone.
    Gone(AssignmentKey),
    /// The workers that have an inbox were listed.
    Inboxes(Vec<WorkerId>),
    /// Assignments were looked at: how each stands, and for how long; `None` is absent or unreadable.
    Looked(Vec<(AssignmentKey, Option<(Stand, Duration)>)>),
    /// Those whose lease is over were read.
    Judged(Vec<Case>),
    /// A read of these was not answered.
    ReadFailed(Vec<AssignmentKey>),
    /// A batch was answered.
    Committed(Batch<Revocation>, Outcome<()>),
    /// Time has passed.
    Tick,
    /// The session serves (again): list everything anew.
    Resync,
}

/// An assignment whose lease is over, as it was read. The assignment first: a record is never older than it then.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Case {
    /// Which.
    pub key: AssignmentKey,
    /// The transaction that created it; 0 when it is absent.
    pub created: i64,
    /// Itself.
    pub assignment: Stored<Assignment>,
    /// Its job.
    pub record: Stored<JobRecord>,
}

/// What the leader shall do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// List the workers that have an inbox.
    ListInboxes,
    /// List the inbox of this one.
    List(WorkerId),
    /// Read these assignments, at most [`MAX_READ_BATCH`].
    Look(Vec<AssignmentKey>),
    /// Read these assignments and their records, at most [`CASES`].
    Judge(Vec<AssignmentKey>),
    /// Commit this and hand it back with its outcome.
    Commit(Batch<Revocation>),
    /// An attempt was taken from its worker.
    Revoked(Revocation),
    /// Another leader has claimed.
    FencedOut,
}

/// The machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeaseWatcher {
    epoch: i32,
    entries: BTreeMap<AssignmentKey, Entry>,
    /// Of those that are to be looked at or judged.
    due: BTreeSet<(Millis, AssignmentKey)>,
    /// What of their ends was taken away, or made, before, as a rejection said.
    gone: BTreeMap<AssignmentKey, Vec<String>>,
    reading: bool,
    committing: bool,
    acting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Entry {
    Unlooked { due: Millis },
    Looking(Asked),
    Standing(Watched),
    Judging(Watched, Asked),
    Closing(Watched),
}

/// An assignment that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Watched {
    stand: Stand,
    over: Millis,
}

/// A read in flight, and whether what it reads has changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Asked {
    Fresh,
    Outdated,
}

impl LeaseWatcher {
    /// A machine for the term of `epoch`.
    #[must_use]
    pub fn new(epoch: i32) -> Self {
        Self {
            epoch,
            entries: BTreeMap::new(),
            due: BTreeSet::new(),
            gone: BTreeMap::new(),
            reading: false,
            committing: false,
            acting: false,
        }
    }

    /// Handles one event. `wall` is only written down, for people.
    pub fn handle(&mut self, now: Millis, wall: WallMillis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Changed(key) => self.changed(key, now),
            Event::Seen(key) => {
                if !self.entries.contains_key(&key) {
                    self.unlooked(key, now);
                }
            }
            Event::Gone(key) => self.forget(&key),
            Event::Inboxes(workers) => out.extend(workers.into_iter().map(Effect::List)),
            Event::Looked(stands) => {
                self.reading = false;
                for (key, stand) in stands {
                    self.looked(key, stand, now);
                }
            }
            Event::Judged(cases) => {
                self.reading = false;
                self.judged(cases, now, wall, out);
            }
            Event::ReadFailed(keys) => {
                self.reading = false;
                self.acting = false;
                keys.into_iter().for_each(|key| self.unread(key, now));
            }
            Event::Committed(batch, outcome) => self.committed(batch, outcome, now, out),
            Event::Tick => {}
            Event::Resync => {
                self.acting = true;
                out.push(Effect::ListInboxes);
            }
        }
        self.advance(now, out);
    }

    /// When something is to be done next.
    #[must_use]
    pub fn next_due(&self) -> Option<Millis> {
        self.due.first().map(|(at, _)| *at)
    }

    /// How many assignments are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn unlooked(&mut self, key: AssignmentKey, now: Millis) {
        let due = now + LOOK_AFTER;
        self.put(key, Entry::Unlooked { due });
    }

    /// Replaces an entry, and keeps what is due in step.
    fn put(&mut self, key: AssignmentKey, entry: Entry) {
        self.forget_due(&key);
        match entry {
            Entry::Unlooked { due } | Entry::Standing(Watched { over: due, .. }) => {
                self.due.insert((due, key.clone()));
            }
            Entry::Looking(_) | Entry::Judging(..) | Entry::Closing(_) => {}
        }
        self.entries.insert(key, entry);
    }

    fn forget_due(&mut self, key: &AssignmentKey) {
        match self.entries.get(key) {
            Some(Entry::Unlooked { due } | Entry::Standing(Watched { over: due, .. })) => {
                self.due.remove(&(*due, key.clone()));
            }
            Some(Entry::Looking(_) | Entry::Judging(..) | Entry::Closing(_)) | None => {}
        }
    }

    fn forget(&mut self, key: &AssignmentKey) {
        self.forget_due(key);
        self.entries.remove(key);
        self.gone.remove(key);
    }

    fn changed(&mut self, key: AssignmentKey, now: Millis) {
        match self.entries.get_mut(&key) {
            Some(Entry::Looking(asked) | Entry::Judging(_, asked)) => *asked = Asked::Outdated,
            // The version in the multi decides.
            Some(Entry::Closing(_)) => {}
            // It is looked at no later for it.
            Some(Entry::Unlooked { .. }) => {}
            Some(Entry::Standing(_)) | None => self.unlooked(key, now),
        }
    }

    fn looked(&mut self, key: AssignmentKey, stand: Option<(Stand, Duration)>, now: Millis) {
        match (self.entries.get(&key), stand) {
            (Some(Entry::Looking(Asked::Outdated)), _) => self.unlooked(key, now),
            (Some(Entry::Looking(Asked::Fresh)), Some((stand, lease))) => {
                self.put(key, Entry::Standing(Watched { stand, over: now + lease + LEASE_MARGIN }));
            }
            (Some(Entry::Looking(Asked::Fresh)), None) => self.forget(&key),
            // Gone, or gone and back, while it was read.
            (
                Some(Entry::Unlooked { .. } | Entry::Standing(_) | Entry::Judging(..) | Entry::Closing(_))
                | None,
                _,
            ) => {}
        }
    }

    fn unread(&mut self, key: AssignmentKey, now: Millis) {
        match self.entries.get(&key) {
            Some(Entry::Looking(_) | Entry::Judging(_, Asked::Outdated)) => self.unlooked(key, now),
            // Its time stays: what stands as it stood when the answer comes has not changed meanwhile.
            Some(Entry::Judging(watched, Asked::Fresh)) => {
                let watched = *watched;
                self.put(key, Entry::Standing(watched));
            }
            Some(Entry::Unlooked { .. } | Entry::Standing(_) | Entry::Closing(_)) | None => {}
        }
    }

    fn judged(&mut self, cases: Vec<Case>, now: Millis, wall: WallMillis, out: &mut Vec<Effect>) {
        let mut batch = Batch::new(vec![txn::fence(self.epoch)]);
        for case in cases {
            let key = case.key.clone();
            let watched = match self.entries.get(&key) {
                Some(Entry::Judging(watched, Asked::Fresh)) => *watched,
                Some(Entry::Judging(_, Asked::Outdated)) => {
                    self.unlooked(key, now);
                    continue;
                }
                Some(Entry::Unlooked { .. } | Entry::Looking(_) | Entry::Standing(_) | Entry::Closing(_))
                | None => continue,
            };
            let Stored::Value(assignment, version) = &case.assignment else {
                self.forget(&key);
                continue;
            };
            let stand = Stand { created: case.created, version: *version };
            if stand != watched.stand {
                let over = now + assignment.lease + LEASE_MARGIN;
                self.put(key, Entry::Standing(Watched { stand, over }));
                continue;
            }
            let gone = self.gone.get(&key).map_or(&[][..], Vec::as_slice);
            let Some((revocation, ops)) = close::revoke(case, gone, wall) else {
                self.forget(&key);
                continue;
            };
            self.put(key.clone(), Entry::Closing(watched));
            // One that does not fit is due still.
            if batch.push(revocation, ops).is_err() {
                self.put(key, Entry::Standing(watched));
            }
        }
        self.commit(batch, out);
    }

    fn commit(&mut self, batch: Batch<Revocation>, out: &mut Vec<Effect>) {
        if !batch.is_empty() {
            self.committing = true;
            out.push(Effect::Commit(batch));
        }
    }

    fn committed(
        &mut self,
        mut batch: Batch<Revocation>,
        outcome: Outcome<()>,
        now: Millis,
        out: &mut Vec<Effect>,
    ) {
        self.committing = false;
        match outcome {
            Outcome::Applied(()) => {
                for (revocation, _) in batch.into_groups() {
                    self.closed(&revocation.key());
                    out.push(Effect::Revoked(revocation));
                }
            }
            Outcome::Unknown => {
                self.acting = false;
                self.put_back(&batch);
            }
            Outcome::Rejected(rejection) if rejection.is_whole() => {
                self.acting = false;
                self.put_back(&batch);
            }
            Outcome::Rejected(rejection) => match batch.locate(rejection.at) {
                Some(Locus::Group { group, op, .. }) => {
                    let (revocation, ops) = batch.remove(group);
                    let key = revocation.key();
                    if let Some(Entry::Closing(watched)) = self.entries.get(&key) {
                        let watched = *watched;
                        match txn::gone_part(&ops, op, &rejection.reason) {
                            // Record and assignment, which come first, stand as they were judged: its lease is over still.
                            Some(gone) => {
                                self.gone.entry(key.clone()).or_default().push(gone);
                                self.put(key, Entry::Standing(watched));
                            }
                            None => self.unlooked(key, now),
                        }
                    }
                    self.commit(batch, out);
                }
                Some(Locus::Fence(_)) | None => {
                    self.acting = false;
                    if rejection.is_fence() {
                        out.push(Effect::FencedOut);
                    }
                    self.put_back(&batch);
                }
            },
        }
    }

    /// Unless it is back already, as another.
    fn closed(&mut self, key: &AssignmentKey) {
        if matches!(self.entries.get(key), Some(Entry::Closing(_))) {
            self.forget(key);
        }
    }

    fn put_back(&mut self, batch: &Batch<Revocation>) {
        for key in batch.keys().map(Revocation::key) {
            if let Some(Entry::Closing(watched)) = self.entries.get(&key) {
                let watched = *watched;
                self.put(key, Entry::Standing(watched));
            }
        }
    }

    fn advance(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if !self.acting || self.reading || self.committing {
            return;
        }
        let (mut look, mut judge) = (Vec::new(), Vec::new());
        for (_, key) in self.due.iter().take_while(|(due, _)| *due <= now) {
            match self.entries.get(key) {
                Some(Entry::Standing(_)) if judge.len() < CASES => judge.push(key.clone()),
                Some(Entry::Unlooked { .. }) if look.len() < MAX_READ_BATCH => look.push(key.clone()),
                // The next read takes it.
                Some(Entry::Standing(_) | Entry::Unlooked { .. }) => break,
                Some(Entry::Looking(_) | Entry::Judging(..) | Entry::Closing(_)) | None => {}
            }
        }
        // One at a time; what is hung has waited the longer.
        if !judge.is_empty() {
            for key in &judge {
                if let Some(Entry::Standing(watched)) = self.entries.get(key) {
                    let judging = Entry::Judging(*watched, Asked::Fresh);
                    self.put(key.clone(), judging);
                }
            }
            self.reading = true;
            out.push(Effect::Judge(judge));
        } else if !look.is_empty() {
            look.iter().for_each(|key| self.put(key.clone(), Entry::Looking(Asked::Fresh)));
            self.reading = true;
            out.push(Effect::Look(look));
        }
    }
}

#[cfg(test)]
mod tests;
