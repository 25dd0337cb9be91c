//! Closing the attempt of a worker that hangs.

use super::{AssignmentKey, Case};
use crate::job::Ending;
use crate::machine::worker_registry::recovery::{Recovered, Stored};
use crate::name::{JobId, Kind, WorkerId};
use crate::time::WallMillis;
use crate::txn::{self, Op};

/// An attempt that is taken from its worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Revocation {
    /// From whom.
    pub worker: WorkerId,
    /// Which job.
    pub job: JobId,
    /// Its kind.
    pub kind: Kind,
    /// Which attempt.
    pub attempt: u32,
    /// What becomes of the job.
    pub end: Recovered,
}

impl Revocation {
    pub(super) fn key(&self) -> AssignmentKey {
        (self.worker, self.job.clone())
    }
}

/// Nothing for what its worker, or the recovery, has to set right first: an assignment that cannot be read or stands for
/// nothing. `gone` is what of its end an operator's hand did before.
pub(super) fn revoke(case: Case, gone: &[String], wall: WallMillis) -> Option<(Revocation, Vec<Op>)> {
    let Case { key: (worker, job), assignment, record, .. } = case;
    let Stored::Value(assignment, assignment_version) = assignment else { return None };
    let Stored::Value(record, version) = record else { return None };
    if record.is_terminal() || !assignment.agrees(&record) {
        return None;
    }
    let (assigned, read) = ((&assignment, assignment_version), (record, version));
    let (closed, mut ops) = txn::take_back(&job, worker, assigned, read, Ending::LeaseExpired, gone, wall);
    ops.push(txn::shun(worker));
    let end = match (assignment.cancel, closed.is_terminal()) {
        (true, _) => Recovered::Cancelled,
        (false, true) => Recovered::Dead,
        (false, false) => Recovered::Queued,
    };
    Some((Revocation { worker, job, kind: closed.kind, attempt: assignment.attempt, end }, ops))
}
