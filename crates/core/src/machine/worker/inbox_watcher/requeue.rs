//! Handing a job back whose assignment names another attempt than its record has under way.
//!
//! | its transaction | means |
//! | --- | --- |
//! | is applied | the attempt is closed, unrun: the job is queued again, or over if it is cancelled |
//! | is rejected at a part of the job's end | an operator's hand was there before: again at once, without that part |
//! | is rejected elsewhere | it moved on: a hint, or the next listing, has it read again |
//! | was not sent, or has no reply | the next listing tells: what was closed is not there any more |
//!
//! What is sent again has the versions of the one that was rejected, so that one of them commits at most.

use crate::job::Ending;
use crate::machine::worker::{BELIEVED, Start};
use crate::name::{JobId, WorkerId};
use crate::outcome::Outcome;
use crate::time::{Millis, WallMillis};
use crate::txn::{self, Op};

/// A job on its way back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requeue {
    start: Start,
    /// What of its end was taken away, or made, before, as a rejection said.
    gone: Vec<String>,
}

impl Requeue {
    pub(super) fn new(start: Start) -> Self {
        Self { start, gone: Vec::new() }
    }

    /// What was read of it.
    #[must_use]
    pub fn start(&self) -> &Start {
        &self.start
    }

    /// Which job.
    #[must_use]
    pub fn job(&self) -> &JobId {
        &self.start.job
    }

    /// Its transaction, at `wall` for people to read.
    #[must_use]
    pub fn ops(&self, worker: WorkerId, wall: WallMillis) -> Vec<Op> {
        let Start { job, assignment, assignment_version, record, version, asked: _ } = &self.start;
        let assigned = (assignment, *assignment_version);
        let read = (record.clone(), *version);
        txn::take_back(job, worker, assigned, read, Ending::Released, &self.gone, wall).1
    }

    /// What goes instead after this answer to these [`ops`](Self::ops), if anything: the machine is to hear of it.
    #[must_use]
    pub fn answered(mut self: Box<Self>, ops: &[Op], outcome: &Outcome<()>) -> Option<Box<Self>> {
        let Outcome::Rejected(rejection) = outcome else { return None };
        self.gone.push(txn::gone_part(ops, rejection.at, &rejection.reason)?);
        Some(self)
    }

    /// Whether the versions may be another job's by now.
    pub(super) fn is_old(&self, now: Millis) -> bool {
        now.since(self.start.asked) >= BELIEVED
    }
}
