//! One segment of two members, two workers, and clients: S22 for every transaction of its life.
//!
//! The transactions are those of the product ([`bellwether_core::txn::segment`]). The decisions of leader, worker and client
//! are the rules of their documentation, written here in their simplest form, because their machines do not use segments yet.
//! Each request is decided from what its sender knows at that time, and is served at any later time: answered, applied without a
//! reply, or applied at any time after all later requests. A worker whose session has ended works on and sends requests until
//! the exploration ends.

mod invariants;
mod model;
mod stage;
mod worker;

use crate::explore::explore;
use model::{Bounds, Milestone, Segments};

#[test]
fn a_worker_is_lost_while_members_run_and_wait() {
    let bounds = Bounds { assigns: 3, splits: 1, losses: 1, replies: 2, ..Bounds::default() };
    let milestones = &[Milestone::Succeeded, Milestone::Requeued, Milestone::Lost, Milestone::Zombie];
    explore("segments, lost", 1_000, Segments::new(bounds, milestones));
}

#[test]
fn a_worker_is_lost_under_two_leaders() {
    let bounds = Bounds { assigns: 2, losses: 1, claims: 1, late: 1, ..Bounds::default() };
    let milestones =
        &[Milestone::Stale, Milestone::Requeued, Milestone::LateApplied, Milestone::LateRejected];
    explore("segments, two leaders", 10_000, Segments::new(bounds, milestones));
}

#[test]
fn a_live_worker_loses_its_slice_and_its_writes_are_late() {
    let bounds = Bounds { assigns: 2, revocations: 1, give_backs: 1, late: 2, ..Bounds::default() };
    let milestones =
        &[Milestone::Zombie, Milestone::LateApplied, Milestone::LateRejected, Milestone::Requeued];
    explore("segments, taken away", 10_000, Segments::new(bounds, milestones));
}

#[test]
fn members_are_given_back_by_writes_with_unknown_outcomes() {
    let bounds = Bounds { assigns: 3, give_backs: 2, late: 1, replies: 1, ..Bounds::default() };
    let milestones =
        &[Milestone::GivenBack, Milestone::Requeued, Milestone::LateApplied, Milestone::LateRejected];
    explore("segments, given back", 2_000, Segments::new(bounds, milestones));
}

#[test]
fn members_fail_and_continue_under_their_records_while_a_worker_is_lost() {
    let bounds = Bounds { assigns: 2, losses: 1, failures: 1, extractions: 1, late: 1, ..Bounds::default() };
    let milestones = &[Milestone::Failed, Milestone::Continued, Milestone::Lost, Milestone::LateApplied];
    explore("segments, extracted", 10_000, Segments::new(bounds, milestones));
}

#[test]
fn members_are_cancelled_while_their_slice_is_taken_away() {
    let bounds = Bounds { assigns: 2, losses: 1, cancels: 1, late: 1, ..Bounds::default() };
    let milestones = &[Milestone::Flagged, Milestone::CancelledWaiting, Milestone::LateApplied];
    explore("segments, cancelled", 10_000, Segments::new(bounds, milestones));
}

#[test]
fn members_are_cancelled_while_they_are_given_back() {
    let bounds = Bounds { assigns: 1, give_backs: 1, cancels: 2, late: 1, replies: 1, ..Bounds::default() };
    let milestones = &[Milestone::Flagged, Milestone::CancelledWaiting, Milestone::GivenBack];
    explore("segments, cancelled and given back", 1_000, Segments::new(bounds, milestones));
}

#[test]
fn whole_entries_are_cancelled_and_expire_while_they_are_assigned() {
    let bounds = Bounds { assigns: 1, splits: 1, ends: 2, cancels: 1, late: 1, ..Bounds::default() };
    let milestones = &[Milestone::Ended, Milestone::CancelledWaiting, Milestone::LateRejected];
    explore("segments, ended", 2_000, Segments::new(bounds, milestones));
}

#[test]
fn ended_members_are_opened_again_while_their_segment_is_removed() {
    let bounds =
        Bounds { assigns: 1, splits: 1, ends: 1, retries: 2, removals: 2, late: 2, ..Bounds::default() };
    let milestones = &[
        Milestone::Retried,
        Milestone::RetriedTwice,
        Milestone::Removed,
        Milestone::RemovedBeside,
        Milestone::Kept,
    ];
    explore("segments, opened again", 2_000, Segments::new(bounds, milestones));
}
