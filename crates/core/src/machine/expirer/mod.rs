//! Ends jobs whose expiry has passed.
//!
//! ```text
//!  Overdue ─▶ unread ─▶ Reading ─▶ Ending ─applied─▶ forgotten
//!                ▲         │          │ └─ rejected: concurrently assigned, cancelled or retried: dropped
//!                └─────────┴──────────┘ no answer, not sent, unknown: read again
//! ```
//!
//! The assigner reports expired jobs ([`assigner`](super::assigner)). The end is written into the job's record, so the
//! record is read first. The transaction is the same as for a cancel, behind the epoch check: it deletes the entry, so
//! exactly one of a concurrent assignment, cancel and expiry wins. A record with another expiry time than the reported
//! one belongs to a later generation and is left alone.
//!
//! **Lost reply.** The record is read again: terminal ⇒ done; open at our version ⇒ it is ended again. If the first
//! write is applied late, it meets another version.
//!
//! A job that expires while it is delayed is ended after it is queued; one that expires in a worker's inbox is ended by
//! the worker. Limits: one read or one batch in flight, [`MAX_READ_BATCH`] jobs each.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::MAX_READ_BATCH;
use crate::job::JobRecord;
use crate::name::{JobId, Kind};
use crate::outcome::{Outcome, Reason};
use crate::ready::ReadyEntry;
use crate::time::WallMillis;
use crate::txn::{self, Batch, EntryLocation, Locus};

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// These jobs wait, with the time of their expiry.
    Overdue(Vec<(JobId, WallMillis)>),
    /// Records were read with their versions; `None` is absent or unreadable.
    Read(Vec<(JobId, Option<(JobRecord, i32)>)>),
    /// A read of these records was not answered.
    ReadFailed(Vec<JobId>),
    /// The outcome of a batch.
    Committed(Batch<Item>, Outcome<()>),
    /// The session is usable (again): resume interrupted work.
    Resync,
}

/// Output of the machine, carried out by the leader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Read these records, at most [`MAX_READ_BATCH`].
    Read(Vec<JobId>),
    /// Commit this batch and return it with its outcome.
    Commit(Batch<Item>),
    /// This job is dead.
    Ended(Item),
    /// Another leader has claimed the epoch.
    FencedOut,
}

/// One job of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// The job.
    pub job: JobId,
    /// Its kind.
    pub kind: Kind,
}

/// A job that must be ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Expired {
    expired_at: WallMillis,
    /// Parts of the end that an operator already deleted or created, learned from rejections: the turn in the lane, the
    /// place in the group, or the mark there. The other parts are still written.
    gone: Vec<String>,
}

/// State machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expirer {
    epoch: i32,
    jobs: BTreeMap<JobId, Expired>,
    unread: BTreeSet<JobId>,
    /// Jobs whose end ZooKeeper rejected without a conflict: tried again at the next sweep.
    refused: BTreeSet<JobId>,
    reading: bool,
    committing: bool,
    acting: bool,
}

impl Expirer {
    /// Creates the machine for the term of `epoch`.
    #[must_use]
    pub fn new(epoch: i32) -> Self {
        Self {
            epoch,
            jobs: BTreeMap::new(),
            unread: BTreeSet::new(),
            refused: BTreeSet::new(),
            reading: false,
            committing: false,
            acting: true,
        }
    }

    /// Handles one event at the wall time `now`.
    pub fn handle(&mut self, now: WallMillis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Overdue(jobs) => {
                for (job, expired_at) in jobs {
                    // This report is the newest; a request in flight for an earlier generation detects the change.
                    self.jobs.insert(job.clone(), Expired { expired_at, gone: Vec::new() });
                    self.unread.insert(job);
                }
            }
            Event::Read(records) => {
                self.reading = false;
                self.read(now, records, out);
            }
            Event::ReadFailed(jobs) => {
                self.reading = false;
                self.acting = false;
                self.again(jobs);
            }
            Event::Committed(batch, outcome) => {
                self.committing = false;
                self.committed(batch, outcome, out);
            }
            Event::Resync => {
                self.acting = true;
                let refused = std::mem::take(&mut self.refused);
                self.again(refused);
            }
        }
        self.ask(out);
    }

    /// Returns the number of jobs to end.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Returns whether there is no job to end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn ask(&mut self, out: &mut Vec<Effect>) {
        // One request at a time: jobs that were read are ended before more are read, so that few records are held.
        if !self.acting || self.reading || self.committing {
            return;
        }
        let mut jobs = Vec::new();
        while jobs.len() < MAX_READ_BATCH
            && let Some(job) = self.unread.pop_first()
        {
            jobs.push(job);
        }
        if !jobs.is_empty() {
            self.reading = true;
            out.push(Effect::Read(jobs));
        }
    }

    fn read(
        &mut self,
        now: WallMillis,
        records: Vec<(JobId, Option<(JobRecord, i32)>)>,
        out: &mut Vec<Effect>,
    ) {
        let mut batch = Batch::new(vec![txn::fence(self.epoch)]);
        for (job, record) in records {
            let Some(expired) = self.jobs.get(&job) else { continue };
            // Reported again since the read was sent: read it again.
            if self.unread.contains(&job) {
                continue;
            }
            let record = record
                .filter(|(record, _)| !record.is_terminal() && record.expires_at == Some(expired.expired_at));
            let Some((record, version)) = record else {
                self.jobs.remove(&job);
                continue;
            };
            let kind = record.kind.clone();
            let entry = EntryLocation::Ready(ReadyEntry::of_record(&job, &record));
            let ended = record.expire(now);
            let mut ops = txn::cancel(&job, version, &ended, &entry);
            expired.gone.iter().for_each(|gone| txn::without_part(&job, &ended, gone, &mut ops));
            if let Err((item, _)) = batch.push(Item { job, kind }, ops) {
                self.unread.insert(item.job);
            }
        }
        if !batch.is_empty() {
            self.committing = true;
            out.push(Effect::Commit(batch));
        }
    }

    fn committed(&mut self, mut batch: Batch<Item>, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        match outcome {
            Outcome::Applied(()) => {
                for (item, _) in batch.into_groups() {
                    // If it was reported again, the new report belongs to another generation.
                    if !self.unread.contains(&item.job) {
                        self.jobs.remove(&item.job);
                    }
                    out.push(Effect::Ended(item));
                }
                return;
            }
            Outcome::Unknown => self.acting = false,
            Outcome::Rejected(rejection) if rejection.is_whole() => self.acting = false,
            Outcome::Rejected(rejection) => match batch.locate(rejection.at) {
                Some(Locus::Group { group, op, .. }) => {
                    let (item, ops) = batch.remove(group);
                    match txn::gone_part(&ops, op, &rejection.reason) {
                        Some(gone) => self.without(item.job, gone),
                        None => self.one_rejected(item.job, &rejection.reason),
                    }
                }
                Some(Locus::Fence(_)) | None => {
                    self.acting = false;
                    if rejection.is_fence() {
                        out.push(Effect::FencedOut);
                    }
                }
            },
        }
        self.again(batch.into_groups().into_iter().map(|(item, _)| item.job));
    }

    /// The rejection concerns the lane or the group, not the job: the job is ended without that part.
    fn without(&mut self, job: JobId, gone: String) {
        if let Some(expired) = self.jobs.get_mut(&job) {
            expired.gone.push(gone);
            self.unread.insert(job);
        }
    }

    fn one_rejected(&mut self, job: JobId, reason: &Reason) {
        match reason {
            // Assigned, cancelled or retried concurrently. If the job is queued again, the assigner reports it again.
            Reason::NoNode | Reason::BadVersion | Reason::NodeExists | Reason::NotEmpty => {
                if !self.unread.contains(&job) {
                    self.jobs.remove(&job);
                }
            }
            Reason::NoAuth
            | Reason::NotSent
            | Reason::OverBudget(_)
            | Reason::Refused(_)
            | Reason::Other(_) => {
                self.refused.insert(job);
            }
        }
    }

    fn again(&mut self, jobs: impl IntoIterator<Item = JobId>) {
        self.unread.extend(jobs.into_iter().filter(|job| self.jobs.contains_key(job)));
    }
}

#[cfg(test)]
mod tests;
