//! One job, two workers and two leaders: assignments, runs, closes, recoveries and zombies.
//!
//! A leader consists of its assigner, membership, recovery, lease watcher, expirer and janitor; a worker of its inbox,
//! executor, beats and reporter. The first leader leads from the start, with one waiting job and two registered
//! workers. The second claims at any time, and the first learns of it only from rejected writes. Faults of workers
//! affect the first worker.
//!
//! | adversity | step |
//! | --- | --- |
//! | stale leader | the second leader claims at any time; requests of the first are served at any time |
//! | lost reply | cut after the requests were served |
//! | late application | cut before; each lost write may be applied at any later time |
//! | lost worker | its session ends on the server; the worker learns of it at any later time, and works until then |
//! | zombie | its earlier requests are late writes too, as if sent under a new session |
//! | cancel, failure | a client cancels the job in any place; a handler fails |
//! | expired lease | a leader finds the lease over and revokes the attempt at any time; a handler renews at any time |
//! | expiry | the clocks of each leader and of the workers reach it at any time; slots are granted at any time |
//! | resubmission | a client opens the job, or submits it again; an operator retries it; replies are lost |
//! | removal | a janitor, or a purge, decides a minute after the end, and its write is served at any time |
//! | drain | an operator marks the first worker's registration at any time; its grace ends at any later time |
//! | takeover | a gateway decides that the other worker takes over the attempt; its write is applied at any later time |
//! | manual delete | an operator deletes the ephemeral of a live worker, so that the leader closes its attempts |

mod client;
mod invariants;
mod leader;
mod milestones;
mod model;
mod removal;
mod stage;
mod steps;
mod transitions;
mod worker;

use crate::explore::explore;
use model::{Attempts, Bounds, Milestone};

#[test]
fn another_leader_claims_and_a_worker_is_lost() {
    let bounds = Bounds { claims: 1, expiries: 1, ..Bounds::default() };
    let milestones = &[
        Milestone::Succeeded,
        Milestone::Second,
        Milestone::Recovered,
        Milestone::Removed,
        Milestone::Beside,
        Milestone::Gone,
        Milestone::StaleAssign,
        Milestone::StaleRecovery,
        Milestone::ZombieLate,
    ];
    explore("attempts, two leaders", 10_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_worker_is_cut_off_and_lost() {
    let bounds = Bounds { worker_cuts: 1, expiries: 1, ..Bounds::default() };
    let milestones =
        &[Milestone::AppliedUnheard, Milestone::NotApplied, Milestone::ZombieLate, Milestone::Second];
    explore("attempts, a worker cut off", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_leader_is_cut_off_and_a_worker_lost() {
    let bounds = Bounds { leader_cuts: 1, expiries: 1, ..Bounds::default() };
    let milestones = &[Milestone::LateAssign, Milestone::Recovered, Milestone::Second];
    explore("attempts, a leader cut off", 4_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_client_cancels() {
    let bounds = Bounds { cancels: 1, worker_cuts: 1, expiries: 1, ..Bounds::default() };
    let milestones = &[Milestone::CancelledRunning, Milestone::CancelledLost, Milestone::CancelTooLate];
    explore("attempts, cancelled", 5_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_handler_fails() {
    let bounds = Bounds { failures: 2, worker_cuts: 1, ..Bounds::default() };
    let milestones = &[
        Milestone::Promoted,
        Milestone::Dead,
        Milestone::Second,
        Milestone::AppliedUnheard,
        Milestone::NotApplied,
    ];
    explore("attempts, failing", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn another_client_deletes_the_ephemeral_of_a_live_worker() {
    let bounds = Bounds { strange: 1, worker_cuts: 1, ..Bounds::default() };
    let milestones = &[Milestone::ZombieRejected, Milestone::Dropped, Milestone::Raced, Milestone::Beside];
    explore("attempts, a deleted ephemeral", 4_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_lease_is_renewed_and_found_to_be_over() {
    let bounds = Bounds { renewals: 1, revocations: 1, ..Bounds::default() };
    let milestones = &[
        Milestone::Revoked,
        Milestone::RenewedInTime,
        Milestone::RevokedInTime,
        Milestone::DoneInTime,
        Milestone::ZombieRejected,
        Milestone::Beside,
        Milestone::Second,
    ];
    explore("attempts, silent and renewed", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_lease_is_over_and_a_client_cancels() {
    let bounds = Bounds { cancels: 1, revocations: 1, ..Bounds::default() };
    let milestones = &[Milestone::Revoked, Milestone::CancelledSilent, Milestone::CancelTooLate];
    explore("attempts, silent and cancelled", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_lease_is_over_under_two_leaders() {
    let bounds = Bounds { claims: 1, revocations: 1, ..Bounds::default() };
    let milestones = &[Milestone::Revoked, Milestone::StaleRecovery];
    explore("attempts, silent, two leaders", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn an_operator_drains_a_worker_and_a_client_cancels() {
    let bounds = Bounds { drains: 1, cancels: 1, ..Bounds::default() };
    let milestones = &[Milestone::Marked, Milestone::HandedBack, Milestone::NotEmpty, Milestone::Retired];
    explore("attempts, draining and cancelled", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn an_operator_drains_a_worker_while_a_leader_is_cut_off() {
    let bounds = Bounds { drains: 1, leader_cuts: 1, ..Bounds::default() };
    let milestones = &[Milestone::Marked, Milestone::HandedBack, Milestone::LateAssign, Milestone::Retired];
    explore("attempts, draining, a leader cut off", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn an_operator_drains_a_worker_while_it_is_cut_off() {
    let bounds = Bounds { drains: 1, worker_cuts: 1, ..Bounds::default() };
    let milestones =
        &[Milestone::HandedBack, Milestone::AppliedUnheard, Milestone::SaidLate, Milestone::Retired];
    explore("attempts, draining, a worker cut off", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_job_expires_while_it_is_assigned_and_cancelled_and_a_leader_is_cut_off() {
    let bounds = Bounds { expires: true, cancels: 1, leader_cuts: 1, ..Bounds::default() };
    let milestones = &[Milestone::Expired, Milestone::Overdue];
    explore("attempts, expiring, a leader cut off", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_job_expires_while_a_worker_that_is_cut_off_holds_it() {
    let bounds = Bounds { expires: true, cancels: 1, worker_cuts: 1, ..Bounds::default() };
    let milestones = &[Milestone::Overdue];
    explore("attempts, expiring, a worker cut off", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_job_expires_under_two_leaders() {
    let bounds = Bounds { expires: true, cancels: 1, claims: 1, ..Bounds::default() };
    let milestones = &[Milestone::Expired, Milestone::Overdue, Milestone::StaleExpiry];
    explore("attempts, expiring, two leaders", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_job_is_submitted_again_while_a_silent_worker_closes_its_attempt() {
    let bounds = Bounds { submissions: 1, revocations: 1, ..Bounds::default() };
    let milestones = &[Milestone::Again, Milestone::ZombieRejected];
    explore("attempts, again, silent", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_job_is_submitted_again_while_a_lost_close_is_applied_late() {
    let bounds = Bounds { submissions: 1, cancels: 1, worker_cuts: 1, lone: true, ..Bounds::default() };
    let milestones = &[Milestone::Again, Milestone::ZombieLate];
    explore("attempts, again, a worker cut off", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn the_reply_to_a_submission_that_opens_a_job_again_is_lost() {
    let bounds = Bounds { submissions: 1, lost_replies: 1, cancels: 1, lone: true, ..Bounds::default() };
    let milestones = &[Milestone::Again, Milestone::ClientTooLate];
    explore("attempts, again, a lost reply", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_record_is_removed_while_its_job_is_retried_and_submitted_again() {
    let bounds = Bounds {
        cancels: 1,
        minutes: 1,
        tidies: 1,
        retries: 1,
        submissions: 1,
        lone: true,
        ..Bounds::default()
    };
    let milestones = &[
        Milestone::Deleted,
        Milestone::KeptAfterAll,
        Milestone::ClientTooLate,
        Milestone::Retried,
        Milestone::SubmittedAfterRemoval,
    ];
    explore("attempts, removed and retried", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_record_is_purged_while_its_job_is_retried_and_a_leader_removes_it() {
    let bounds = Bounds {
        cancels: 1,
        minutes: 1,
        tidies: 1,
        purges: 1,
        retries: 1,
        claims: 1,
        lone: true,
        ..Bounds::default()
    };
    let milestones =
        &[Milestone::Deleted, Milestone::KeptAfterAll, Milestone::Retried, Milestone::StaleRemoval];
    explore("attempts, purged and removed", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn a_silent_worker_continues_when_its_job_was_removed_and_submitted_again() {
    let bounds = Bounds {
        revocations: 1,
        minutes: 1,
        tidies: 1,
        submissions: 1,
        after_removal: true,
        ..Bounds::default()
    };
    let milestones = &[Milestone::Deleted, Milestone::SubmittedAfterRemoval, Milestone::Haunted];
    explore("attempts, silent and removed", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn an_attempt_is_taken_over_while_its_worker_is_lost() {
    let bounds = Bounds { moves: 1, expiries: 1, ..Bounds::default() };
    let milestones = &[
        Milestone::Moved,
        Milestone::MovedTooLate,
        Milestone::Recovered,
        Milestone::Removed,
        Milestone::Second,
    ];
    explore("attempts, taken over and lost", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn an_attempt_is_taken_over_while_its_worker_is_cut_off() {
    let bounds = Bounds { moves: 1, worker_cuts: 1, ..Bounds::default() };
    let milestones =
        &[Milestone::Moved, Milestone::MovedTooLate, Milestone::LeftBehind, Milestone::AppliedUnheard];
    explore("attempts, taken over, a worker cut off", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn an_attempt_is_taken_over_twice_while_a_client_cancels() {
    let bounds = Bounds { moves: 2, cancels: 1, ..Bounds::default() };
    let milestones =
        &[Milestone::Moved, Milestone::MovedTooLate, Milestone::LeftBehind, Milestone::CancelledRunning];
    explore("attempts, taken over and cancelled", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn an_attempt_is_taken_over_while_its_lease_is_found_to_be_over() {
    let bounds = Bounds { moves: 1, revocations: 1, ..Bounds::default() };
    let milestones = &[Milestone::Moved, Milestone::MovedTooLate, Milestone::Revoked, Milestone::LeftBehind];
    explore("attempts, taken over and silent", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn an_attempt_is_taken_over_while_a_worker_drains() {
    let bounds = Bounds { moves: 1, drains: 1, ..Bounds::default() };
    let milestones = &[Milestone::Moved, Milestone::MovedTooLate, Milestone::HandedBack, Milestone::Retired];
    explore("attempts, taken over and draining", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn an_attempt_is_taken_over_under_two_leaders() {
    let bounds = Bounds { moves: 1, claims: 1, ..Bounds::default() };
    let milestones = &[Milestone::Moved, Milestone::MovedTooLate, Milestone::StaleAssign];
    explore("attempts, taken over, two leaders", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn an_attempt_is_taken_over_while_its_job_expires() {
    let bounds = Bounds { moves: 1, expires: true, ..Bounds::default() };
    let milestones = &[Milestone::Moved, Milestone::Overdue];
    explore("attempts, taken over and expiring", 1_000, Attempts::new(bounds, milestones));
}

#[test]
fn an_attempt_is_taken_over_while_its_handler_fails() {
    let bounds = Bounds { moves: 1, failures: 1, ..Bounds::default() };
    let milestones = &[Milestone::Moved, Milestone::MovedTooLate, Milestone::Promoted, Milestone::Second];
    explore("attempts, taken over and failing", 1_000, Attempts::new(bounds, milestones));
}
