//! Revokes attempts of live workers that show no sign of life: the handler or the whole runtime hangs.
//!
//! Each change of an assignment is a sign of life, and the assignment states the maximum time to the next one (its
//! *lease*). Clocks of different machines are never compared: a lease starts when this leader *reads* the
//! assignment, by its own monotonic clock, and has expired when the lease and [`LEASE_MARGIN`] have passed without
//! a change. Watches and lists only say which assignments to read, and a new leader restarts every lease.
//!
//! ```text
//!          after READ_AFTER         read          lease + LEASE_MARGIN              unchanged
//!  Unread ──────────────────▶ Reading ──▶ Held ──────────────────────▶ ReadingCase ───────────▶ Closing ──▶ removed
//!     ▲                          │          │  ▲                            │                      │
//!     └── a change was reported ◀┴──────────┘  └─── a changed one was read ◀┘    renewed: Unread ◀─┘
//! ```
//!
//! An attempt that ends within [`READ_AFTER`], as most do, costs no read.
//!
//! | outcome of a revocation | meaning |
//! | --- | --- |
//! | applied | the attempt is closed: a loss, or cancelled if a cancel was requested |
//! | rejected at the assignment or the record | renewed, flagged or closed concurrently: read again |
//! | rejected at the turn or the group's part | an operator changed that part: close immediately without it |
//! | rejected at the epoch | the term is over |
//! | not sent, or no reply | read again once the session is back: a closed attempt has no assignment any longer |
//!
//! The multi deletes the assignment at the version that was read, so a concurrent renewal wins. It also sets the
//! record, so the result of the hung run never commits (S9). If a revocation is applied after its read-back found
//! nothing, the record's version rejects the second one.
//!
//! The multi also sets the inbox ([`txn::shun`]), so that every client can see which worker gets no jobs for a
//! while, and since when.
//!
//! An unreadable assignment or record is left alone: its worker quarantines the job when it wakes, or the recovery
//! does so when the worker dies.
//!
//! A segment has a short lease ([`SEGMENT_LEASE`]), because its worker extracts what has not ended soon. When that lease has
//! expired, its open members are extracted into the inbox, and their leases start.
//!
//! Limits: one entry per job in an inbox, that is, per slot in use; one read or one batch in flight.

mod close;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::budget::MAX_READ_BATCH;
use crate::job::{Assignment, JobRecord};
use crate::machine::inbox_segment::{self, Decision, InboxSegment};
use crate::machine::worker_registry::recovery::Stored;
use crate::name::{JobId, WorkerId};
use crate::outcome::Outcome;
use crate::segment::{SEGMENT_LEASE, SegmentId};
use crate::time::{Millis, WallMillis};
use crate::txn::{self, Batch, Locus};

pub use close::{Revocation, Revoked};

/// Delay from the first sight of an assignment to its first read: no lease is shorter.
pub const READ_AFTER: Duration = crate::budget::MIN_LEASE;

/// Added to each lease. The worker's own clock starts later, when it reads its inbox, and the worker still needs
/// the handler's grace period and a transaction. The worker knows the outcome of the attempt better, so it should
/// write first.
pub const LEASE_MARGIN: Duration = Duration::from_secs(2);

/// Cases per read: each reads two znodes.
pub const CASES: usize = MAX_READ_BATCH / 2;

/// An assignment: its worker and its job.
pub type AssignmentKey = (WorkerId, JobId);

/// Identifies one state of a znode: while it is the same, the znode was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The transaction that created it.
    pub created: i64,
    /// Its version.
    pub version: i32,
}

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A watch reported that an assignment was created or set.
    Changed(AssignmentKey),
    /// A list contained an assignment.
    Seen(AssignmentKey),
    /// A watch reported that an assignment was deleted.
    Gone(AssignmentKey),
    /// The workers that have an inbox were listed.
    Inboxes(Vec<WorkerId>),
    /// Assignments were read: the stamp and the lease of each; `None` is absent or unreadable.
    AssignmentsRead(Vec<(AssignmentKey, Option<(Stamp, Duration)>)>),
    /// Assignments with an expired lease were read.
    CasesRead(Vec<Case>),
    /// The assignment of a segment with an expired lease was read.
    SegmentRead(Box<SegmentCase>),
    /// A read of these assignments was not answered.
    ReadFailed(Vec<AssignmentKey>),
    /// The outcome of a batch.
    Committed(Batch<Revocation>, Outcome<()>),
    /// Time has passed.
    Tick,
    /// The session is usable (again): list everything.
    Resync,
}

/// An assignment whose lease has expired. The assignment is read before the record, so the record
/// is never older than the assignment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Case {
    /// The worker and the job.
    pub key: AssignmentKey,
    /// The transaction that created the assignment; 0 if it is absent.
    pub created: i64,
    /// The assignment.
    pub assignment: Stored<Assignment>,
    /// The record of the job.
    pub record: Stored<JobRecord>,
}

/// A segment whose assignment has an expired lease.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SegmentCase {
    /// The worker and the id of the segment.
    pub key: AssignmentKey,
    /// The segment.
    pub id: SegmentId,
    /// The transaction that created the assignment; 0 if it is absent.
    pub created: i64,
    /// What was read.
    pub found: InboxSegment,
}

/// Output of the machine, carried out by the leader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// List the workers that have an inbox.
    ListInboxes,
    /// List the inbox of this worker.
    List(WorkerId),
    /// Read these assignments, at most [`MAX_READ_BATCH`].
    ReadAssignments(Vec<AssignmentKey>),
    /// Read these assignments and their records, at most [`CASES`].
    ReadCases(Vec<AssignmentKey>),
    /// Read this assignment of a segment, then the segment and the names of its chunks.
    ReadSegment(AssignmentKey, SegmentId),
    /// Commit this batch and return it with its outcome.
    Commit(Batch<Revocation>),
    /// An attempt was revoked.
    Revoked(Revocation),
    /// Another leader has claimed the epoch.
    FencedOut,
}

/// State machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeaseWatcher {
    epoch: i32,
    entries: BTreeMap<AssignmentKey, Entry>,
    /// Assignments that need a first read or a read of the record, by time.
    due: BTreeSet<(Millis, AssignmentKey)>,
    /// Parts of each close that an operator already deleted or created, learned from rejections.
    gone: BTreeMap<AssignmentKey, Vec<String>>,
    reading: bool,
    committing: bool,
    acting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Entry {
    Unread { due: Millis },
    Reading(Reply),
    Held(Watched),
    ReadingCase(Watched, Reply),
    Closing(Watched),
}

/// An assignment that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Watched {
    stamp: Stamp,
    over: Millis,
}

/// A read in flight, and whether its assignment has changed since the read was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reply {
    Current,
    Outdated,
}

impl LeaseWatcher {
    /// Creates the machine for the term of `epoch`.
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

    /// Handles one event. `wall` is only stored in the record, for display.
    pub fn handle(&mut self, now: Millis, wall: WallMillis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Changed(key) => self.changed(key, now),
            Event::Seen(key) => {
                if !self.entries.contains_key(&key) {
                    self.schedule_read(key, now);
                }
            }
            Event::Gone(key) => self.forget(&key),
            Event::Inboxes(workers) => out.extend(workers.into_iter().map(Effect::List)),
            Event::AssignmentsRead(stamps) => {
                self.reading = false;
                for (key, stamp) in stamps {
                    self.assignment_read(key, stamp, now);
                }
            }
            Event::CasesRead(cases) => {
                self.reading = false;
                self.case_read(cases, now, wall, out);
            }
            Event::SegmentRead(case) => {
                self.reading = false;
                self.segment_read(*case, now, out);
            }
            Event::ReadFailed(keys) => {
                self.reading = false;
                self.acting = false;
                keys.into_iter().for_each(|key| self.read_failed(key, now));
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

    /// Returns when the next read is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Millis> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Returns the number of known assignments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether no assignment is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn schedule_read(&mut self, key: AssignmentKey, now: Millis) {
        let due = now + READ_AFTER;
        self.put(key, Entry::Unread { due });
    }

    /// Replaces an entry and updates `due`.
    fn put(&mut self, key: AssignmentKey, entry: Entry) {
        self.forget_due(&key);
        match entry {
            Entry::Unread { due } | Entry::Held(Watched { over: due, .. }) => {
                self.due.insert((due, key.clone()));
            }
            Entry::Reading(_) | Entry::ReadingCase(..) | Entry::Closing(_) => {}
        }
        self.entries.insert(key, entry);
    }

    fn forget_due(&mut self, key: &AssignmentKey) {
        match self.entries.get(key) {
            Some(Entry::Unread { due } | Entry::Held(Watched { over: due, .. })) => {
                self.due.remove(&(*due, key.clone()));
            }
            Some(Entry::Reading(_) | Entry::ReadingCase(..) | Entry::Closing(_)) | None => {}
        }
    }

    fn forget(&mut self, key: &AssignmentKey) {
        self.forget_due(key);
        self.entries.remove(key);
        self.gone.remove(key);
    }

    fn changed(&mut self, key: AssignmentKey, now: Millis) {
        match self.entries.get_mut(&key) {
            Some(Entry::Reading(reply) | Entry::ReadingCase(_, reply)) => *reply = Reply::Outdated,
            // The version in the multi decides.
            Some(Entry::Closing(_)) => {}
            // The read stays due at the same time.
            Some(Entry::Unread { .. }) => {}
            Some(Entry::Held(_)) | None => self.schedule_read(key, now),
        }
    }

    fn assignment_read(&mut self, key: AssignmentKey, stamp: Option<(Stamp, Duration)>, now: Millis) {
        match (self.entries.get(&key), stamp) {
            (Some(Entry::Reading(Reply::Outdated)), _) => self.schedule_read(key, now),
            (Some(Entry::Reading(Reply::Current)), Some((stamp, lease))) => {
                let over = over(&key, lease, now);
                self.put(key, Entry::Held(Watched { stamp, over }));
            }
            (Some(Entry::Reading(Reply::Current)), None) => self.forget(&key),
            // The assignment was deleted, or deleted and created again, during the read.
            (
                Some(Entry::Unread { .. } | Entry::Held(_) | Entry::ReadingCase(..) | Entry::Closing(_))
                | None,
                _,
            ) => {}
        }
    }

    fn read_failed(&mut self, key: AssignmentKey, now: Millis) {
        match self.entries.get(&key) {
            Some(Entry::Reading(_) | Entry::ReadingCase(_, Reply::Outdated)) => self.schedule_read(key, now),
            // Keep the due time: if the next read shows the same stamp, the assignment has not changed in between.
            Some(Entry::ReadingCase(watched, Reply::Current)) => {
                let watched = *watched;
                self.put(key, Entry::Held(watched));
            }
            Some(Entry::Unread { .. } | Entry::Held(_) | Entry::Closing(_)) | None => {}
        }
    }

    /// A batch that commits only in this term.
    fn fenced(&self) -> Batch<Revocation> {
        Batch::new(vec![txn::fence(self.epoch)])
    }

    fn case_read(&mut self, cases: Vec<Case>, now: Millis, wall: WallMillis, out: &mut Vec<Effect>) {
        let mut batch = self.fenced();
        for case in cases {
            let key = case.key.clone();
            let Some(watched) = self.expired(&key, case.created, &case.assignment, now) else { continue };
            let gone = self.gone.get(&key).map_or(&[][..], Vec::as_slice);
            let Some((revocation, ops)) = close::revoke(case, gone, wall) else {
                self.forget(&key);
                continue;
            };
            self.put(key.clone(), Entry::Closing(watched));
            // A revocation that does not fit stays due.
            if batch.push(revocation, ops).is_err() {
                self.put(key, Entry::Held(watched));
            }
        }
        self.commit(batch, out);
    }

    /// Returns the assignment if its lease has still expired, as read now.
    fn expired(
        &mut self,
        key: &AssignmentKey,
        created: i64,
        found: &Stored<Assignment>,
        now: Millis,
    ) -> Option<Watched> {
        let watched = match self.entries.get(key)? {
            Entry::ReadingCase(watched, Reply::Current) => *watched,
            Entry::ReadingCase(_, Reply::Outdated) => {
                self.schedule_read(key.clone(), now);
                return None;
            }
            Entry::Unread { .. } | Entry::Reading(_) | Entry::Held(_) | Entry::Closing(_) => return None,
        };
        let Stored::Value(assignment, version) = found else {
            self.forget(key);
            return None;
        };
        let stamp = Stamp { created, version: *version };
        if stamp != watched.stamp {
            let over = over(key, assignment.lease, now);
            self.put(key.clone(), Entry::Held(Watched { stamp, over }));
            return None;
        }
        Some(watched)
    }

    /// Extracts the members of a segment. Their assignments have leases of their own.
    fn segment_read(&mut self, case: SegmentCase, now: Millis, out: &mut Vec<Effect>) {
        let SegmentCase { key, id, created, found } = case;
        let Some(watched) = self.expired(&key, created, &found.assignment, now) else { return };
        let (worker, job) = key.clone();
        let (members, ops) = match inbox_segment::decide(worker, id, found) {
            Decision::Extract(members, ops) => (members, ops),
            Decision::Stale(ops) => (0, ops),
            // Its worker or the recovery repairs it.
            Decision::Gone | Decision::Unreadable(_) => return self.forget(&key),
        };
        self.put(key, Entry::Closing(watched));
        let mut batch = self.fenced();
        let pushed = batch.push(Revocation { worker, job, revoked: Revoked::Members(members) }, ops);
        debug_assert!(pushed.is_ok(), "the first group always fits");
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
                            // Record and assignment come first in the multi and were unchanged: the lease is still
                            // expired.
                            Some(gone) => {
                                self.gone.entry(key.clone()).or_default().push(gone);
                                self.put(key, Entry::Held(watched));
                            }
                            None => self.schedule_read(key, now),
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

    /// Forgets a closed assignment, unless it exists again as another one.
    fn closed(&mut self, key: &AssignmentKey) {
        if matches!(self.entries.get(key), Some(Entry::Closing(_))) {
            self.forget(key);
        }
    }

    fn put_back(&mut self, batch: &Batch<Revocation>) {
        for key in batch.keys().map(Revocation::key) {
            if let Some(Entry::Closing(watched)) = self.entries.get(&key) {
                let watched = *watched;
                self.put(key, Entry::Held(watched));
            }
        }
    }

    fn advance(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if !self.acting || self.reading || self.committing {
            return;
        }
        let (mut assignments, mut cases, mut segment) = (Vec::new(), Vec::new(), None);
        for (_, key) in self.due.iter().take_while(|(due, _)| *due <= now) {
            match self.entries.get(key) {
                Some(Entry::Held(watched)) if SegmentId::of_job(&key.1).is_some() => {
                    segment = segment.or(SegmentId::of_job(&key.1).map(|id| (key.clone(), id, *watched)));
                }
                Some(Entry::Held(_)) if cases.len() < CASES => cases.push(key.clone()),
                Some(Entry::Unread { .. }) if assignments.len() < MAX_READ_BATCH => {
                    assignments.push(key.clone())
                }
                // The next read includes it.
                Some(Entry::Held(_) | Entry::Unread { .. }) => break,
                Some(Entry::Reading(_) | Entry::ReadingCase(..) | Entry::Closing(_)) | None => {}
            }
        }
        // One read at a time; expired leases have waited longer, so they come first.
        if let Some((key, id, watched)) = segment {
            self.put(key.clone(), Entry::ReadingCase(watched, Reply::Current));
            self.reading = true;
            out.push(Effect::ReadSegment(key, id));
        } else if !cases.is_empty() {
            for key in &cases {
                if let Some(Entry::Held(watched)) = self.entries.get(key) {
                    self.put(key.clone(), Entry::ReadingCase(*watched, Reply::Current));
                }
            }
            self.reading = true;
            out.push(Effect::ReadCases(cases));
        } else if !assignments.is_empty() {
            assignments.iter().for_each(|key| self.put(key.clone(), Entry::Reading(Reply::Current)));
            self.reading = true;
            out.push(Effect::ReadAssignments(assignments));
        }
    }
}

/// When the lease of an assignment ends that was read now.
fn over((_, job): &AssignmentKey, lease: Duration, now: Millis) -> Millis {
    let lease = if SegmentId::of_job(job).is_some() { SEGMENT_LEASE } else { lease };
    now + lease + LEASE_MARGIN
}

#[cfg(test)]
mod tests;
