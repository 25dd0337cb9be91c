//! A group of two members, or of one member with a sub-job; two leaders, and calls with lost replies.
//!
//! A leader consists of its joiner. Members are submitted, sealed and ended with the transactions of clients and
//! workers; the steps before these are covered by `attempts`. A look consists of several reads, each at its own time.
//!
//! | adversity | step |
//! | --- | --- |
//! | stale leader | the second claims at any time (nested: during a request of the first); the first continues |
//! | lost reply | of a call or a leader's request: after it was served, or before |
//! | late application | each lost write may be applied at any later time, even if it was sent again |
//! | failure | a member or a parent ends without success |
//!
//! There are no sweeps except when a leader starts and when its connection is back, so L3 must hold through hints and
//! replies alone. Retries of members, removal, and manual deletes are not included.

mod calls;
mod invariants;
mod leader;
mod model;
mod stage;
mod transitions;

use crate::explore::explore;
use model::{Bounds, Groups, Milestone};

#[test]
fn two_leaders_join_a_group() {
    let bounds = Bounds { claims: 1, ..Bounds::default() };
    let milestones = &[Milestone::Joined, Milestone::Stale];
    explore("groups, two leaders", 10_000, Groups::new(bounds, milestones));
}

#[test]
fn a_leader_of_a_group_is_cut_off() {
    let bounds = Bounds { cuts: 1, ..Bounds::default() };
    let milestones = &[Milestone::Joined, Milestone::LateAdvance, Milestone::LateApplied, Milestone::Raced];
    explore("groups, a leader cut off", 2_000, Groups::new(bounds, milestones));
}

#[test]
fn replies_to_submissions_and_seals_are_lost() {
    let bounds = Bounds { lost_replies: 1, ..Bounds::default() };
    let milestones = &[Milestone::Joined, Milestone::LateSeal];
    explore("groups, lost replies", 10_000, Groups::new(bounds, milestones));
}

#[test]
fn the_reply_to_an_end_is_lost() {
    let bounds =
        Bounds { total: true, submitted: true, begins: 2, lost_ends: 1, cuts: 1, ..Bounds::default() };
    let milestones = &[Milestone::Joined, Milestone::LateEnd, Milestone::LateApplied];
    explore("groups, a lost end", 5_000, Groups::new(bounds, milestones));
}

#[test]
fn a_group_fails_fast() {
    let bounds = Bounds { fail_fast: true, total: true, failures: 1, begins: 1, ..Bounds::default() };
    let milestones = &[Milestone::Stopped, Milestone::Refused, Milestone::Cancelled, Milestone::Asked];
    explore("groups, failing fast", 5_000, Groups::new(bounds, milestones));
}

#[test]
fn a_group_fails_fast_while_it_is_sealed() {
    let bounds = Bounds { fail_fast: true, failures: 1, ..Bounds::default() };
    let milestones = &[Milestone::Joined, Milestone::Stopped, Milestone::Refused, Milestone::Raced];
    explore("groups, failing fast, sealed", 10_000, Groups::new(bounds, milestones));
}

#[test]
fn a_group_fails_fast_under_two_leaders() {
    let first = Some(false);
    let bounds = Bounds {
        fail_fast: true,
        total: true,
        submitted: true,
        first,
        begins: 1,
        claims: 1,
        ..Bounds::default()
    };
    let milestones = &[Milestone::Stopped, Milestone::Stale, Milestone::Cancelled, Milestone::Asked];
    explore("groups, failing fast, two leaders", 10_000, Groups::new(bounds, milestones));
}

#[test]
fn a_submission_is_lost_while_its_group_fails_fast() {
    let bounds = Bounds { fail_fast: true, total: true, failures: 1, lost_replies: 1, ..Bounds::default() };
    let milestones = &[Milestone::Stopped, Milestone::Refused, Milestone::LateMember];
    explore("groups, failing fast, lost replies", 10_000, Groups::new(bounds, milestones));
}

#[test]
fn a_parent_has_sub_jobs() {
    let bounds = Bounds { nested: true, begins: 1, ..Bounds::default() };
    let milestones = &[Milestone::Joined, Milestone::Counted, Milestone::ParentMarked, Milestone::NoSubJobs];
    explore("groups, nested", 2_000, Groups::new(bounds, milestones));
}

#[test]
fn a_parent_has_sub_jobs_under_two_leaders() {
    let bounds = Bounds { nested: true, submitted: true, claims: 1, midway: true, ..Bounds::default() };
    let milestones = &[Milestone::Joined, Milestone::Counted, Milestone::ParentMarked, Milestone::Stale];
    explore("groups, nested, two leaders", 10_000, Groups::new(bounds, milestones));
}

#[test]
fn a_parent_fails_whose_sub_jobs_run_and_a_leader_is_cut_off() {
    let bounds = Bounds { nested: true, submitted: true, failures: 1, cuts: 1, ..Bounds::default() };
    let milestones = &[Milestone::StoppedByParent, Milestone::ParentMarked, Milestone::LateApplied];
    explore("groups, nested, failing", 10_000, Groups::new(bounds, milestones));
}

#[test]
fn replies_to_a_parent_are_lost() {
    let bounds = Bounds { nested: true, lost_replies: 1, ..Bounds::default() };
    let milestones = &[Milestone::ParentMarked, Milestone::NoSubJobs, Milestone::LateMember];
    explore("groups, nested, lost replies", 10_000, Groups::new(bounds, milestones));
}

#[test]
fn the_end_of_a_parent_is_lost() {
    let bounds = Bounds { nested: true, submitted: true, begins: 1, lost_ends: 1, ..Bounds::default() };
    let milestones = &[Milestone::ParentMarked, Milestone::LateEnd];
    explore("groups, nested, a lost end", 5_000, Groups::new(bounds, milestones));
}

#[test]
fn a_parent_has_two_groups() {
    let bounds = Bounds { nested: true, further: true, ..Bounds::default() };
    let milestones =
        &[Milestone::ParentMarked, Milestone::FurtherDone, Milestone::NoFurther, Milestone::NoSubJobs];
    explore("groups, two of a parent", 1_000, Groups::new(bounds, milestones));
}

#[test]
fn a_parent_has_two_groups_under_two_leaders() {
    let bounds = Bounds {
        nested: true,
        further: true,
        submitted: true,
        first: Some(true),
        claims: 1,
        midway: true,
        ..Bounds::default()
    };
    let milestones = &[Milestone::ParentMarked, Milestone::FurtherDone, Milestone::Stale];
    explore("groups, two of a parent, two leaders", 2_000, Groups::new(bounds, milestones));
}

#[test]
fn replies_to_a_parent_with_two_groups_are_lost() {
    let bounds = Bounds { nested: true, further: true, lost_replies: 1, ..Bounds::default() };
    let milestones = &[Milestone::ParentMarked, Milestone::FurtherDone, Milestone::NoFurther];
    explore("groups, two of a parent, lost replies", 2_000, Groups::new(bounds, milestones));
}

#[test]
fn a_parent_with_two_groups_has_failed_and_a_leader_is_cut_off() {
    let bounds = Bounds {
        nested: true,
        further: true,
        submitted: true,
        first: Some(false),
        failures: 1,
        cuts: 1,
        ..Bounds::default()
    };
    let milestones = &[Milestone::StoppedByParent, Milestone::FurtherDone, Milestone::LateApplied];
    explore("groups, two of a parent, failing", 2_000, Groups::new(bounds, milestones));
}
