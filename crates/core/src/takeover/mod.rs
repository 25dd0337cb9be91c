//! Decides whether a worker takes over an attempt from a worker whose process may have died.
//!
//! The code that runs the attempt is alive in a third process, which proves that it owns the attempt: it names the job, the
//! submission, the generation, the number and the fencing token. The submission is needed because an id is free again after
//! the record was removed: the attempt of another job can have the same number and the same token. The caller reads the four
//! znodes of [`Seen`], with the old assignment before the record, and commits the [`take_over`](crate::txn::take_over) that
//! [`decide`] returns.
//!
//! The process also has to be the one for which the former worker was registered: see [`Owner`].
//!
//! | answer to the transaction | next step |
//! | --- | --- |
//! | applied | the attempt is moved |
//! | rejected, or no reply | read and decide again; a move that was applied is recognised by the new assignment |
//!
//! The new assignment names the token before the move ([`Assignment::moved_from`]), so a process that did not hear of the move
//! can repeat its request, also at a third worker. After two moves without an answer it owns neither token, and the attempt is
//! refused. A refused attempt is closed by the leader's recovery: a loss.
//!
//! An attempt with sub-jobs is refused: their submission is fenced by the attempt's worker.
//!
//! **A worker takes over only while it offers no slot**, between its registration and its first offer: so it never had the
//! attempt. A worker recognises its own close after a lost reply by attempt number and worker id, so an earlier close could be
//! taken for a later one. The offer sets the registration, whose version the transaction checks: a move that is applied late is
//! rejected, so the leader, which reads the inbox after the first offer, knows every moved assignment (S20).

use crate::job::{Assignment, JobRecord};
use crate::machine::worker::Lookup;
use crate::name::{JobId, WorkerId};
use crate::txn::{self, Op};
use crate::worker::WorkerInfo;
use uuid::Uuid;

/// The owner of a worker, in its registration: a digest of what only the process knows for which the worker was registered.
/// Only a worker of the same owner moves attempts away from it. Ordinary workers have no owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner(pub [u8; 16]);

/// An attempt, as the process that runs it names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HeldAttempt {
    /// The job.
    pub job: JobId,
    /// The submission of the job: the token of its record.
    pub submission: Uuid,
    /// The generation of the attempt.
    pub generation: u32,
    /// The number of the attempt.
    pub attempt: u32,
    /// The fencing token that the process has.
    pub fencing_token: i32,
}

/// The state in ZooKeeper.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Seen {
    /// The registration of the new worker.
    pub registration: Lookup<WorkerInfo>,
    /// The assignment to the new worker.
    pub new: Lookup<Assignment>,
    /// The assignment to the former worker.
    pub old: Lookup<Assignment>,
    /// The record, read after the old assignment.
    pub record: Lookup<JobRecord>,
}

/// What to do about an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The new worker has the attempt, with this token.
    Moved(i32),
    /// Commit this transaction. The attempt then has this token.
    Commit(i32, Vec<Op>),
    /// The attempt is not moved, and the process must stop it.
    Refuse(Refusal),
}

/// Why an attempt is not moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The attempt is closed, or the process does not own it.
    NotHeld,
    /// The new worker is not registered, drains, does not take such jobs, offers slots already, or has no slot left.
    NotServed,
    /// The attempt has sub-jobs.
    HasSubJobs,
    /// The former worker was registered for another process, or is no worker of this kind.
    NotOwner,
    /// The znodes could not be read, or changed at each attempt to move.
    Failed,
}

/// Decides whether the worker `to` takes over an attempt of the worker `from`.
#[must_use]
pub fn decide(held: &HeldAttempt, from: WorkerId, to: WorkerId, seen: &Seen) -> Decision {
    let Lookup::Found(record, version) = &seen.record else { return Decision::Refuse(Refusal::NotHeld) };
    if let Lookup::Found(assignment, _) = &seen.new {
        let moved = owns(held, assignment, record, *version);
        return if moved {
            Decision::Moved(assignment.fencing_token)
        } else {
            Decision::Refuse(Refusal::NotHeld)
        };
    }
    let Lookup::Found(assignment, assignment_version) = &seen.old else {
        return Decision::Refuse(Refusal::NotHeld);
    };
    if !owns(held, assignment, record, *version) {
        return Decision::Refuse(Refusal::NotHeld);
    }
    if assignment.spawned || record.spawned {
        return Decision::Refuse(Refusal::HasSubJobs);
    }
    let Lookup::Found(info, registration) = &seen.registration else {
        return Decision::Refuse(Refusal::NotServed);
    };
    if info.slots > 0 || info.draining || !info.can_run(&record.kind, &record.placement) {
        return Decision::Refuse(Refusal::NotServed);
    }
    let assigned = (assignment, *assignment_version);
    let (moved, ops) = txn::take_over(&held.job, from, (to, *registration), assigned, (record, *version));
    Decision::Commit(moved.fencing_token, ops)
}

/// Whether the assignment is that of the attempt that the process names, and the attempt is open.
fn owns(held: &HeldAttempt, assignment: &Assignment, record: &JobRecord, version: i32) -> bool {
    let named = (held.generation, held.attempt) == (assignment.generation, assignment.attempt)
        && held.submission == record.token;
    let token =
        held.fencing_token == assignment.fencing_token || Some(held.fencing_token) == assignment.moved_from;
    let open = !record.is_terminal()
        && assignment.agrees(record)
        && (record.generation, version) == (assignment.generation, assignment.fencing_token);
    named && token && open
}

#[cfg(test)]
mod tests;
