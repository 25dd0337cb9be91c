//! Jobs of one lane, concurrent leaders of the same epoch, and stale lists.
//!
//! Two jobs of a lane wait, submitted in one multi; a third may be submitted. The leaders are assigners of one epoch,
//! so that only the turns keep them apart. A list of the lane and a read of its turns have the state of the time when
//! they were requested, and are handled at any later time, before or after any hint. Attempts end with the complete
//! transactions of a worker or a recovery; the steps before these are covered by `attempts`.

mod leader;
mod model;
mod stage;

use crate::explore::explore;
use model::{Bounds, Lanes, Milestone};

#[test]
fn two_leaders_at_the_same_time() {
    let bounds = Bounds { leaders: 2, ..Bounds::default() };
    let milestones = &[Milestone::Second, Milestone::EntryRejected, Milestone::Empty];
    explore("lanes, two leaders", 2_000, Lanes::new(bounds, milestones));
}

#[test]
fn a_leader_is_cut_off_while_jobs_are_cancelled_and_retried() {
    let bounds = Bounds { leaders: 1, cuts: 1, cancels: 1, retries: 1, ..Bounds::default() };
    let milestones =
        &[Milestone::EntryRejected, Milestone::Retried, Milestone::LateApplied, Milestone::Empty];
    explore("lanes, cancelled and retried", 2_000, Lanes::new(bounds, milestones));
}

#[test]
fn attempts_fail_and_are_lost_while_another_job_comes() {
    let bounds = Bounds { leaders: 1, failures: 1, losses: 1, submissions: 1, ..Bounds::default() };
    let milestones = &[Milestone::Waits, Milestone::Second, Milestone::Empty];
    explore("lanes, failing", 2_000, Lanes::new(bounds, milestones));
}
