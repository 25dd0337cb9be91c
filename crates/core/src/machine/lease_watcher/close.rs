//! Closes the attempt of a worker that hangs.

use super::{AssignmentKey, Case};
use crate::job::{ClosedAttempt, Ending};
use crate::machine::worker_registry::recovery::Stored;
use crate::name::{JobId, Kind, WorkerId};
use crate::time::WallMillis;
use crate::txn::{self, Op};

/// An attempt or a segment that is revoked from its worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Revocation {
    /// The worker.
    pub worker: WorkerId,
    /// The job, or the id of the segment.
    pub job: JobId,
    /// What is revoked.
    pub revoked: Revoked,
}

/// What is revoked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Revoked {
    /// An attempt.
    Attempt {
        /// The job's kind.
        kind: Kind,
        /// The attempt number.
        attempt: u32,
        /// What the close did.
        closed: ClosedAttempt,
    },
    /// A segment. This number of members are jobs of the same inbox now.
    Members(usize),
}

impl Revocation {
    pub(super) fn key(&self) -> AssignmentKey {
        (self.worker, self.job.clone())
    }
}

/// Builds the revocation. Returns `None` if the worker or the recovery must repair the state first: the assignment
/// cannot be read, or belongs to no open attempt. `gone` lists the parts of the close that an operator already did.
pub(super) fn revoke(case: Case, gone: &[String], wall: WallMillis) -> Option<(Revocation, Vec<Op>)> {
    let Case { key: (worker, job), assignment, record, .. } = case;
    let Stored::Value(assignment, assignment_version) = assignment else { return None };
    let Stored::Value(record, version) = record else { return None };
    if record.is_terminal() || !assignment.agrees(&record) {
        return None;
    }
    let (assigned, read) = ((&assignment, assignment_version), (record, version));
    let (record, mut ops) = txn::reclaim(&job, worker, assigned, read, Ending::LeaseExpired, gone, wall);
    ops.push(txn::shun(worker));
    let closed = ClosedAttempt::of(&record);
    let revoked = Revoked::Attempt { kind: record.kind, attempt: assignment.attempt, closed };
    Some((Revocation { worker, job, revoked }, ops))
}
