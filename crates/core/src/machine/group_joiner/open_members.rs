//! Ends the open members of a stopped group.
//!
//! The places show which members are open. A waiting member is cancelled, a running one is asked to end, and for one
//! that has ended while its sub-jobs have not, the group of these sub-jobs is stopped. Each write is fenced by the
//! versions that were read; members that have changed in the meantime are handled by another pass.

use std::collections::{BTreeMap, VecDeque};

use crate::group::End;
use crate::job::{Assignment, JobRecord};
use crate::machine::worker_registry::recovery::Stored;
use crate::name::{GroupId, JobId, WorkerId};
use crate::outcome::Reason;
use crate::time::WallMillis;
use crate::txn::{self, Batch, EntryLocation, Op};

/// Maximum passes in a row: jobs that change during a pass become stable sooner or later, and the next sweep tries
/// again.
const PASSES: u32 = 3;

/// The position of the next member, by chunk and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cursor {
    /// The chunk.
    pub chunk: u32,
    /// The first number within the chunk.
    pub from: u32,
}

/// A member that has a place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OpenMember {
    /// The job.
    pub job: JobId,
    /// Its record.
    pub record: Stored<JobRecord>,
    /// Where it is.
    pub location: MemberLocation,
}

/// The location of an open member.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MemberLocation {
    /// The job waits.
    Waits(EntryLocation),
    /// A worker has the job: the assignment and its version.
    Assigned(WorkerId, Assignment, i32),
    /// The job moved during the search, or is in quarantine.
    Nowhere,
}

/// Progress through the open members.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Pass {
    /// Unsent operations that end the members found.
    left: VecDeque<(JobId, Vec<Op>)>,
    /// The final records of the waiting members of one page.
    ended: BTreeMap<JobId, JobRecord>,
    next: Option<Cursor>,
    missed: bool,
    passes: u32,
}

impl Pass {
    /// Handles members that were found; more may follow from `next` on. Returns the groups of sub-jobs that they wait
    /// for.
    pub(super) fn found(
        &mut self,
        rest: Vec<OpenMember>,
        next: Option<Cursor>,
        at: WallMillis,
    ) -> Vec<GroupId> {
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

    /// Handles a rejection: the job is ended without the part that an operator changed; otherwise it has changed and is
    /// found again.
    pub(super) fn rejected(&mut self, job: JobId, mut ops: Vec<Op>, at: usize, reason: &Reason) {
        match (txn::gone_part(&ops, at, reason), self.ended.get(&job)) {
            (Some(gone), Some(ended)) => {
                txn::without_part(&job, ended, &gone, &mut ops);
                self.left.push_back((job, ops));
            }
            (Some(_) | None, _) => self.missed = true,
        }
    }

    /// Returns as many ends as fit into a transaction; `None` if there are none.
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

    /// Returns the position to continue from; `None` when the passes are finished.
    pub(super) fn go_on(&mut self) -> Option<Cursor> {
        if let Some(next) = self.next.take() {
            return Some(next);
        }
        self.passes += 1;
        let again = std::mem::take(&mut self.missed) && self.passes < PASSES;
        again.then(Cursor::default)
    }
}

/// How a member is ended.
enum Cancel {
    /// By this transaction, with this final record.
    Waiting(JobId, Box<JobRecord>, Vec<Op>),
    /// By the cancel flag for its worker.
    Flag(JobId, Op),
    /// The member has ended; this group of its sub-jobs has not.
    Nested(GroupId),
    /// It was asked before.
    Asked,
    /// It needs another pass.
    Missed,
}

impl OpenMember {
    fn cancel(self, at: WallMillis) -> Cancel {
        let Self { job, record, location } = self;
        let (record, version) = match record {
            Stored::Value(record, version) => (record, version),
            // An operator must repair it, or has deleted it, and is responsible for its place.
            Stored::Absent | Stored::Unreadable(_) => return Cancel::Asked,
        };
        if End::of(&record.state).is_some() {
            return if record.spawned {
                Cancel::Nested(GroupId::of_sub_jobs(&job, &record))
            } else {
                // Its end deleted its place after the list was made.
                Cancel::Asked
            };
        }
        match location {
            MemberLocation::Waits(waiting) => {
                let ended = record.cancel(at);
                let ops = txn::cancel(&job, version, &ended, &waiting);
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
