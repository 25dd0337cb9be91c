//! Hands back a job whose assignment names another attempt than the record's current one.
//!
//! | outcome | meaning |
//! | --- | --- |
//! | applied | the attempt is closed without a run: the job is requeued, or terminal if it was cancelled |
//! | rejected at a part of the job's end | an operator changed that part: send again immediately without it |
//! | rejected elsewhere | the job has moved on: a hint or the next list causes another read |
//! | not sent, or no reply | the next list resolves it: a closed attempt has no assignment any longer |
//!
//! A retry uses the versions of the rejected transaction, so at most one of them commits.

use crate::job::{Ending, JobRecord};
use crate::machine::worker::{BELIEVED, Start};
use crate::name::{JobId, WorkerId};
use crate::outcome::Outcome;
use crate::time::{Millis, WallMillis};
use crate::txn::{self, Op};

/// The pending hand-back of a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requeue {
    start: Start,
    /// Parts of the close that an operator already deleted or created, learned from rejections.
    gone: Vec<String>,
}

impl Requeue {
    pub(super) fn new(start: Start) -> Self {
        Self { start, gone: Vec::new() }
    }

    /// Returns the data that was read.
    #[must_use]
    pub fn start(&self) -> &Start {
        &self.start
    }

    /// Returns the job.
    #[must_use]
    pub fn job(&self) -> &JobId {
        &self.start.job
    }

    /// Returns the transaction. `wall` is stored for display.
    #[must_use]
    pub fn ops(&self, worker: WorkerId, wall: WallMillis) -> Vec<Op> {
        let Start { job, assignment, assignment_version, record, version, asked: _, packed: _ } = &self.start;
        let assigned = (assignment, *assignment_version);
        let read = (JobRecord::clone(record), *version);
        txn::reclaim(job, worker, assigned, read, Ending::Released, &self.gone, wall).1
    }

    /// Returns the hand-back to send after this answer to these [`ops`](Self::ops), if any: pass it to the machine.
    #[must_use]
    pub fn answered(mut self: Box<Self>, ops: &[Op], outcome: &Outcome<()>) -> Option<Box<Self>> {
        let Outcome::Rejected(rejection) = outcome else { return None };
        self.gone.push(txn::gone_part(ops, rejection.at, &rejection.reason)?);
        Some(self)
    }

    /// Whether the versions may belong to another job by now.
    pub(super) fn is_old(&self, now: Millis) -> bool {
        now.since(self.start.asked) >= BELIEVED
    }
}
