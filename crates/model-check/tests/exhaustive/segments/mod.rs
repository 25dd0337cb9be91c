//! One segment, two workers, leaders and clients: S22 for every transaction of its life.
//!
//! No process has a state here. A process reads the namespace and sends a transaction of the product ([`requests`]), which is applied at
//! any later time, or never. So a write that is late, a worker that acts on an old read, a leader that was replaced, and a
//! process that reads again after a lost reply are all the same: requests that were sent before others and are applied after them.
//!
//! The check ([`check`]) is the statement of ADR 30: each transaction of a segment is, for its members, the transaction of
//! single jobs or nothing.

mod check;
mod model;
mod requests;

use crate::explore::explore;
use model::{Bounds, Milestone, Segments};

#[test]
fn members_succeed_while_two_leaders_extract_them() {
    let bounds =
        Bounds { submits: 2, assigns: 1, successes: 2, recoveries: 1, claims: 1, ..Bounds::default() };
    let milestones = &[Milestone::Stale, Milestone::Twice, Milestone::Succeeded, Milestone::Zombie];
    explore("segments, two leaders", 10_000, Segments::new(3, 3, bounds, milestones));
}

#[test]
fn members_succeed_while_their_worker_and_a_leader_extract_them() {
    let bounds = Bounds {
        submits: 1,
        assigns: 1,
        successes: 2,
        extractions: 2,
        recoveries: 1,
        ends: 2,
        ..Bounds::default()
    };
    let milestones = &[Milestone::Succeeded, Milestone::Zombie, Milestone::Extracted, Milestone::EndedAlone];
    explore("segments, extracted", 10_000, Segments::new(2, 3, bounds, milestones));
}

#[test]
fn a_worker_is_lost_while_members_succeed_and_are_extracted() {
    let bounds = Bounds {
        submits: 1,
        assigns: 1,
        successes: 1,
        extractions: 1,
        recoveries: 2,
        losses: 1,
        ends: 1,
        ..Bounds::default()
    };
    let milestones = &[Milestone::Lost, Milestone::Zombie, Milestone::Left];
    explore("segments, lost", 10_000, Segments::new(2, 3, bounds, milestones));
}

#[test]
fn waiting_members_are_extracted_while_their_segment_is_assigned() {
    let bounds = Bounds {
        submits: 1,
        assigns: 2,
        successes: 1,
        waiting: 2,
        cancels: 1,
        recoveries: 1,
        ends: 1,
        ..Bounds::default()
    };
    let milestones = &[Milestone::Waiting, Milestone::Cancelled, Milestone::Succeeded, Milestone::EndedAlone];
    explore("segments, cancelled", 5_000, Segments::new(2, 3, bounds, milestones));
}

#[test]
fn ended_members_are_opened_again_while_their_segment_is_removed() {
    let bounds = Bounds {
        submits: 1,
        assigns: 1,
        successes: 2,
        extractions: 1,
        ends: 1,
        retries: 2,
        removals: 2,
        forgets: 1,
        ..Bounds::default()
    };
    let milestones = &[Milestone::Reopened, Milestone::Removed, Milestone::Kept, Milestone::RemovedBeside];
    explore("segments, opened again", 3_000, Segments::new(2, 2, bounds, milestones));
}
