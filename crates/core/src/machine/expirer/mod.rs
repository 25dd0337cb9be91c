//! Ending jobs whose time to start has passed.
//!
//! ```text
//!  Overdue ─▶ unread ─▶ Reading ─▶ Ending ─applied─▶ forgotten
//!                ▲         │          │ └─ rejected: it was assigned, cancelled or retried meanwhile: not ours
//!                └─────────┴──────────┘ not answered, not sent, unknown: read again
//! ```
//!
//! The assigner tells of what it may not assign any more ([`assigner`](super::assigner)). What is written is the job's
//! end, so its record is read first. The transaction is that of a cancel behind the epoch's fence: it takes the queue
//! entry away, so that of an assignment, a cancel and an expiry that race one wins. A record that expires at another
//! time than the entry that was overdue is that of a later generation, and is let alone.
//!
//! **What if the reply is lost?** The record is read again: terminal ⇒ done; open at our version ⇒ it is ended again. A
//! copy that is applied late meets another version.
//!
//! A job that is overdue while it is delayed is ended once it is queued; one that is overdue in a worker's inbox is
//! refused there. Limits: one read and one batch in flight, [`MAX_READ_BATCH`] jobs each.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::MAX_READ_BATCH;
use crate::job::JobRecord;
use crate::name::{JobId, Kind};
use crate::outcome::{Outcome, Reason};
use crate::time::WallMillis;
use crate::txn::{self, Batch, EntryLocation, Locus};

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// These wait, and expired then.
    Overdue(Vec<(JobId, WallMillis)>),
    /// Records were read with their versions; `None` is absent or unreadable.
    Read(Vec<(JobId, Option<(JobRecord, i32)>)>),
    /// A read of these was not answered.
    ReadFailed(Vec<JobId>),
    /// A batch was answered.
    Committed(Batch<Item>, Outcome<()>),
    /// The session serves (again): take up what was interrupted.
    Resync,
}

/// What the leader shall do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Read these records, at most [`MAX_READ_BATCH`].
    Read(Vec<JobId>),
    /// Commit this and hand it back with its outcome.
    Commit(Batch<Item>),
    /// This job is dead.
    Ended(Item),
    /// Another leader has claimed.
    FencedOut,
}

/// One job of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// Which.
    pub job: JobId,
    /// Its kind.
    pub kind: Kind,
}

/// A job that is to be ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Expired {
    expired_at: WallMillis,
    /// What of its end was taken away, or made, before, as a rejection said: its turn in its lane, its place in its group or
    /// its mark there. The rest of its end stands.
    gone: Vec<String>,
}

/// The machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expirer {
    epoch: i32,
    jobs: BTreeMap<JobId, Expired>,
    unread: BTreeSet<JobId>,
    /// ZooKeeper refused to end these for no reason of theirs: tried again at the next sweep.
    refused: BTreeSet<JobId>,
    reading: bool,
    committing: bool,
    acting: bool,
}

impl Expirer {
    /// A machine for the term of `epoch`.
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
                    // What is under way for an earlier generation finds out by itself; this is the latest word.
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

    /// How many are to be ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn ask(&mut self, out: &mut Vec<Effect>) {
        // One after the other: what is read is ended before more is read, so that few records are held.
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
            // Told of anew since it was asked for: it is read again.
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
            let ended = record.expire(now);
            let mut ops = txn::cancel(&job, version, &ended, EntryLocation::Queued);
            expired.gone.iter().for_each(|gone| txn::without_part(&ended, gone, &mut ops));
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
                    // Unless it was told of anew: then it is another generation's.
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

    /// What was refused is not about the job itself but about its lane or its group: it is ended without that.
    fn without(&mut self, job: JobId, gone: String) {
        if let Some(expired) = self.jobs.get_mut(&job) {
            expired.gone.push(gone);
            self.unread.insert(job);
        }
    }

    fn one_rejected(&mut self, job: JobId, reason: &Reason) {
        match reason {
            // Assigned, cancelled or retried meanwhile. Whoever queues it again tells of it again.
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
