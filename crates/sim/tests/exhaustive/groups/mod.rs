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

mod act;
mod calls;
mod law;
mod leader;
mod model;
mod stage;

use crate::explore::explore;
use model::{Bounds, Groups, Sight};

#[test]
fn two_leaders_join_a_group() {
    let bounds = Bounds { claims: 1, ..Bounds::default() };
    let sights = &[Sight::Joined, Sight::Stale];
    explore("groups, two leaders", 10_000, Groups::new(bounds, sights));
}

#[test]
fn a_leader_of_a_group_is_cut_off() {
    let bounds = Bounds { cuts: 1, ..Bounds::default() };
    let sights = &[Sight::Joined, Sight::LateAdvance, Sight::LateApplied, Sight::Raced];
    explore("groups, a leader cut off", 2_000, Groups::new(bounds, sights));
}

#[test]
fn replies_to_submissions_and_seals_are_lost() {
    let bounds = Bounds { lost_replies: 1, ..Bounds::default() };
    let sights = &[Sight::Joined, Sight::LateSeal];
    explore("groups, lost replies", 10_000, Groups::new(bounds, sights));
}

#[test]
fn the_reply_to_an_end_is_lost() {
    let bounds =
        Bounds { total: true, submitted: true, begins: 2, lost_ends: 1, cuts: 1, ..Bounds::default() };
    let sights = &[Sight::Joined, Sight::LateEnd, Sight::LateApplied];
    explore("groups, a lost end", 5_000, Groups::new(bounds, sights));
}

#[test]
fn a_group_fails_fast() {
    let bounds = Bounds { fail_fast: true, total: true, failures: 1, begins: 1, ..Bounds::default() };
    let sights = &[Sight::Stopped, Sight::Refused, Sight::Cancelled, Sight::Asked];
    explore("groups, failing fast", 5_000, Groups::new(bounds, sights));
}

#[test]
fn a_group_fails_fast_while_it_is_sealed() {
    let bounds = Bounds { fail_fast: true, failures: 1, ..Bounds::default() };
    let sights = &[Sight::Joined, Sight::Stopped, Sight::Refused, Sight::Raced];
    explore("groups, failing fast, sealed", 10_000, Groups::new(bounds, sights));
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
    let sights = &[Sight::Stopped, Sight::Stale, Sight::Cancelled, Sight::Asked];
    explore("groups, failing fast, two leaders", 10_000, Groups::new(bounds, sights));
}

#[test]
fn a_submission_is_lost_while_its_group_fails_fast() {
    let bounds = Bounds { fail_fast: true, total: true, failures: 1, lost_replies: 1, ..Bounds::default() };
    let sights = &[Sight::Stopped, Sight::Refused, Sight::LateMember];
    explore("groups, failing fast, lost replies", 10_000, Groups::new(bounds, sights));
}

#[test]
fn a_parent_has_sub_jobs() {
    let bounds = Bounds { nested: true, begins: 1, ..Bounds::default() };
    let sights = &[Sight::Joined, Sight::Counted, Sight::Told, Sight::NoSubJobs];
    explore("groups, nested", 2_000, Groups::new(bounds, sights));
}

#[test]
fn a_parent_has_sub_jobs_under_two_leaders() {
    let bounds = Bounds { nested: true, submitted: true, claims: 1, midway: true, ..Bounds::default() };
    let sights = &[Sight::Joined, Sight::Counted, Sight::Told, Sight::Stale];
    explore("groups, nested, two leaders", 10_000, Groups::new(bounds, sights));
}

#[test]
fn a_parent_fails_whose_sub_jobs_run_and_a_leader_is_cut_off() {
    let bounds = Bounds { nested: true, submitted: true, failures: 1, cuts: 1, ..Bounds::default() };
    let sights = &[Sight::StoppedByParent, Sight::Told, Sight::LateApplied];
    explore("groups, nested, failing", 10_000, Groups::new(bounds, sights));
}

#[test]
fn replies_to_a_parent_are_lost() {
    let bounds = Bounds { nested: true, lost_replies: 1, ..Bounds::default() };
    let sights = &[Sight::Told, Sight::NoSubJobs, Sight::LateMember];
    explore("groups, nested, lost replies", 10_000, Groups::new(bounds, sights));
}

#[test]
fn the_end_of_a_parent_is_lost() {
    let bounds = Bounds { nested: true, submitted: true, begins: 1, lost_ends: 1, ..Bounds::default() };
    let sights = &[Sight::Told, Sight::LateEnd];
    explore("groups, nested, a lost end", 5_000, Groups::new(bounds, sights));
}

#[test]
fn a_parent_has_two_groups() {
    let bounds = Bounds { nested: true, further: true, ..Bounds::default() };
    let sights = &[Sight::Told, Sight::FurtherDone, Sight::NoFurther, Sight::NoSubJobs];
    explore("groups, two of a parent", 1_000, Groups::new(bounds, sights));
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
    let sights = &[Sight::Told, Sight::FurtherDone, Sight::Stale];
    explore("groups, two of a parent, two leaders", 2_000, Groups::new(bounds, sights));
}

#[test]
fn replies_to_a_parent_with_two_groups_are_lost() {
    let bounds = Bounds { nested: true, further: true, lost_replies: 1, ..Bounds::default() };
    let sights = &[Sight::Told, Sight::FurtherDone, Sight::NoFurther];
    explore("groups, two of a parent, lost replies", 2_000, Groups::new(bounds, sights));
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
    let sights = &[Sight::StoppedByParent, Sight::FurtherDone, Sight::LateApplied];
    explore("groups, two of a parent, failing", 2_000, Groups::new(bounds, sights));
}
