//! One job, two workers, two leaders: assigned, run, closed, orphaned, and haunted by zombies.
//!
//! A leader is its assigner, its membership and its recovery; a worker its inbox, its executor and its reporter. The
//! first leader leads from the start, with one job waiting and two workers registered; the second claims whenever it
//! likes, and the first hears of that by its rejected writes only. What befalls workers befalls the first.
//!
//! | adversity | as a step |
//! | --- | --- |
//! | stale leader | the second claims at any time; what the first sent is served at any time |
//! | reply lost | cut after the requests were served |
//! | late application | cut before; each lost write may be applied at any later time |
//! | worker lost | its session ends on the server; it hears of that at any later time, and works on until then |
//! | zombie | what it sent before it heard is a late write too, as if under a new session |
//! | cancel, failure | a client cancels the job wherever it is; a handler fails |
//! | silence | a leader finds the lease of what is assigned over, and takes it, at any time; a handler renews at any time |
//! | a strange hand | deletes the ephemeral of a worker that lives, and so has its attempts closed under it |

mod law;
mod leader;
mod model;
mod notes;
mod stage;
mod steps;
mod worker;

use crate::explore::explore;
use model::{Attempts, Bounds, Sight};

#[test]
fn another_leader_claims_and_a_worker_is_lost() {
    let bounds = Bounds { claims: 1, expiries: 1, ..Bounds::default() };
    let sights = &[
        Sight::Succeeded,
        Sight::Second,
        Sight::Recovered,
        Sight::Removed,
        Sight::Beside,
        Sight::Gone,
        Sight::StaleAssign,
        Sight::StaleRecovery,
        Sight::ZombieLate,
    ];
    explore("attempts, two leaders", 10_000, Attempts::new(bounds, sights));
}

#[test]
fn a_worker_is_cut_off_and_lost() {
    let bounds = Bounds { worker_cuts: 1, expiries: 1, ..Bounds::default() };
    let sights = &[Sight::AppliedUnheard, Sight::NotApplied, Sight::ZombieLate, Sight::Second];
    explore("attempts, a worker cut off", 1_000, Attempts::new(bounds, sights));
}

#[test]
fn a_leader_is_cut_off_and_a_worker_lost() {
    let bounds = Bounds { leader_cuts: 1, expiries: 1, ..Bounds::default() };
    let sights = &[Sight::LateAssign, Sight::Requeued, Sight::Recovered, Sight::Second];
    explore("attempts, a leader cut off", 4_000, Attempts::new(bounds, sights));
}

#[test]
fn a_client_cancels() {
    let bounds = Bounds { cancels: 1, worker_cuts: 1, expiries: 1, ..Bounds::default() };
    let sights = &[Sight::CancelledRunning, Sight::CancelledLost, Sight::CancelTooLate];
    explore("attempts, cancelled", 5_000, Attempts::new(bounds, sights));
}

#[test]
fn a_handler_fails() {
    let bounds = Bounds { failures: 2, worker_cuts: 1, ..Bounds::default() };
    let sights = &[Sight::Promoted, Sight::Dead, Sight::Second, Sight::AppliedUnheard, Sight::NotApplied];
    explore("attempts, failing", 1_000, Attempts::new(bounds, sights));
}

#[test]
fn a_strange_hand_deletes_the_ephemeral_of_a_worker_that_lives() {
    let bounds = Bounds { strange: 1, worker_cuts: 1, ..Bounds::default() };
    let sights = &[Sight::ZombieRejected, Sight::Dropped, Sight::Raced, Sight::Beside];
    explore("attempts, a strange hand", 4_000, Attempts::new(bounds, sights));
}

#[test]
fn a_lease_is_renewed_and_found_to_be_over() {
    let bounds = Bounds { renewals: 1, revocations: 1, ..Bounds::default() };
    let sights = &[
        Sight::Revoked,
        Sight::RenewedInTime,
        Sight::RevokedInTime,
        Sight::DoneInTime,
        Sight::ZombieRejected,
        Sight::Beside,
        Sight::Second,
    ];
    explore("attempts, silent and renewed", 1_000, Attempts::new(bounds, sights));
}

#[test]
fn a_lease_is_over_and_a_client_cancels() {
    let bounds = Bounds { cancels: 1, revocations: 1, ..Bounds::default() };
    let sights = &[Sight::Revoked, Sight::CancelledSilent, Sight::CancelTooLate];
    explore("attempts, silent and cancelled", 1_000, Attempts::new(bounds, sights));
}

#[test]
fn a_lease_is_over_under_two_leaders() {
    let bounds = Bounds { claims: 1, revocations: 1, ..Bounds::default() };
    let sights = &[Sight::Revoked, Sight::StaleRecovery];
    explore("attempts, silent, two leaders", 1_000, Attempts::new(bounds, sights));
}
