//! Ending what is left of a group that was stopped.
//!
//! The places tell which members are open. One that waits is cancelled, one that runs is asked to end, and one that has
//! ended and whose sub-jobs have not is told by condemning their group. Each is fenced by what was read of it; whatever
//! moved on meanwhile is met by another pass.

use std::collections::{BTreeMap, VecDeque};

use crate::group::End;
use crate::job::{Assignment, JobRecord};
use crate::machine::worker_registry::recovery::Stored;
use crate::name::{GroupId, JobId, WorkerId};
use crate::outcome::Reason;
use crate::time::WallMillis;
use crate::txn::{self, Batch, EntryLocation, Op};

/// Passes in a row: jobs that move under the leader's hands hold still sooner or later, and the next sweep looks again.
const PASSES: u32 = 3;

/// From which member on to look, by chunk and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cursor {
    /// The chunk.
    pub chunk: u32,
    /// The first number in it.
    pub from: u32,
}

/// A member that has a place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rest {
    /// Which job.
    pub job: JobId,
    /// Its record.
    pub record: Stored<JobRecord>,
    /// Where it is.
    pub location: MemberLocation,
}

/// Where an open member is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MemberLocation {
    /// It waits.
    Waits(EntryLocation),
    /// A worker has it: its assignment and that one's version.
    Assigned(WorkerId, Assignment, i32),
    /// It moved while it was looked for, or is set aside.
    Nowhere,
}

/// How far the members that are left have been gone through.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Pass {
    /// What ends those that were found, as far as it is not sent.
    left: VecDeque<(JobId, Vec<Op>)>,
    /// The records of those that wait, as their end leaves them: a page's.
    ended: BTreeMap<JobId, JobRecord>,
    next: Option<Cursor>,
    missed: bool,
    passes: u32,
}

impl Pass {
    /// These were found, and there may be more from `next` on. Gives back the groups of sub-jobs that they wait for.
    pub(super) fn found(&mut self, rest: Vec<Rest>, next: Option<Cursor>, at: WallMillis) -> Vec<GroupId> {
        self.next = next;
        self.ended.clear();
        let mut nested = Vec::new();
        for member in rest {
            match member.cancel(at) {
                Cancel::Waiting(job, ended, ops) => {
                    self.ended.insert(job.clone(), *ended);
                    self.left.push_back((job, ops));
                }
                Cancel::Flag(job, op) => self.left.push_back((job, vec![op])),
                Cancel::Nested(group) => nested.push(group),
                Cancel::Missed => self.missed = true,
                Cancel::Asked => {}
            }
        }
        nested
    }

    /// This one was rejected: it is ended without what an operator's hand took away; else it moved on, and is found again.
    pub(super) fn rejected(&mut self, job: JobId, mut ops: Vec<Op>, at: usize, reason: &Reason) {
        match (txn::gone_part(&ops, at, reason), self.ended.get(&job)) {
            (Some(gone), Some(ended)) => {
                txn::without_part(ended, &gone, &mut ops);
                self.left.push_back((job, ops));
            }
            (Some(_) | None, _) => self.missed = true,
        }
    }

    /// As many of them as a transaction takes; `None` when nothing is left to be sent.
    pub(super) fn batch(&mut self, epoch: i32) -> Option<Batch<JobId>> {
        let mut batch = Batch::new(vec![txn::fence(epoch)]);
        while let Some((job, ops)) = self.left.pop_front() {
            if let Err(full) = batch.push(job, ops) {
                self.left.push_front(full);
                break;
            }
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// Where to go on; `None` when it is over.
    pub(super) fn go_on(&mut self) -> Option<Cursor> {
        if let Some(next) = self.next.take() {
            return Some(next);
        }
        self.passes += 1;
        let again = std::mem::take(&mut self.missed) && self.passes < PASSES;
        again.then(Cursor::default)
    }
}

/// What ends a member.
enum Cancel {
    /// This transaction, which leaves its record so.
    Waiting(JobId, Box<JobRecord>, Vec<Op>),
    /// A word to its worker.
    Flag(JobId, Op),
    /// It has ended: this group of its sub-jobs has not.
    Nested(GroupId),
    /// It has been asked already.
    Asked,
    /// Another pass.
    Missed,
}

impl Rest {
    fn cancel(self, at: WallMillis) -> Cancel {
        let Self { job, record, location } = self;
        let (record, version) = match record {
            Stored::Value(record, version) => (record, version),
            // Somebody must mend it, or has deleted it: its place is theirs.
            Stored::Absent | Stored::Unreadable(_) => return Cancel::Asked,
        };
        if End::of(&record.state).is_some() {
            return if record.spawned {
                Cancel::Nested(GroupId::of_sub_jobs(&job, &record))
            } else {
                // Its place went with its end: the list was older.
                Cancel::Asked
            };
        }
        match location {
            MemberLocation::Waits(waiting) => {
                let ended = record.cancel(at);
                let ops = txn::cancel(&job, version, &ended, waiting);
                Cancel::Waiting(job, Box::new(ended), ops)
            }
            MemberLocation::Assigned(_, assignment, _) if assignment.cancel => Cancel::Asked,
            MemberLocation::Assigned(worker, assignment, version) => {
                let op = txn::flag_cancel(&job, worker, version, &assignment);
                Cancel::Flag(job, op)
            }
            MemberLocation::Nowhere => Cancel::Missed,
        }
    }
}
