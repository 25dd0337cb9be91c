//! Two or three nodes campaign, claim, pause, resume and lose leadership, on a ZooKeeper that loses replies and ends sessions.
//!
//! Each node is a [`Leadership`] with its campaign. Its connection consists of two queues: requests to the server, and
//! events to the machine. Every step moves one item of one queue. So a frozen node is one that takes no step, a slow
//! request is one that is not served, and an unnoticed cut is one whose event is not handled.
//!
//! | adversity | step |
//! | --- | --- |
//! | lost reply | cut after the request was served, before its reply was handled |
//! | lost or late request | cut before it was served; may be applied until the reconnection, or later if it is fenced |
//! | freeze, delay | time passes before the next item is moved |
//! | expiry | possible, not forced (a ping may have arrived), after a session timeout without requests |
//! | hung leader | its next step is not taken, and its session lives |
//! | lost or late beat | as any request |
//! | stale leader | a node with a term sends a fenced write, which is served at any time |
//! | stepping down and campaigning again | a separate step |
//! | manual delete | an operator deletes the first candidate's znode |
//!
//! Time passes in halves of the session timeout. Both a lease (nine tenths) and a timeout end at the second half, at
//! the same time, which is the worst case for trust. Finer steps add no other order of the deadlines. In the explorations
//! of silent leaders, the trust of a beat and the wait for one both end at the first half; in the others no beat is due. A
//! leader that is hung takes no step, and its session is not made to expire.
//!
//! The bounds limit how often each adversity may happen ([`Bounds`]). All orders of the other steps are explored.

mod model;
mod node;
mod rules;

use bellwether_core::machine::election::campaign::Strategy;

use crate::explore::explore;
use model::{Bounds, Election, Milestone, Start};

#[test]
fn an_election_from_nothing() {
    let bounds = Bounds { faulty: 2, cuts: 1, ..Bounds::default() };
    let milestones = &[Milestone::Active];
    explore("election, from nothing", 5_000, Election::new(Strategy::Queue, Start::Cold, bounds, milestones));
}

#[test]
fn a_leader_is_cut_off_for_longer_and_longer() {
    let bounds = Bounds { faulty: 1, cuts: 1, passes: 3, writes: 1, ..Bounds::default() };
    let milestones = &[
        Milestone::LeadOn,
        Milestone::Lapsed,
        Milestone::ClaimedAgain,
        Milestone::Successor,
        Milestone::Committed,
        Milestone::StaleWrite,
    ];
    explore(
        "election, a leader cut off",
        5_000,
        Election::new(Strategy::Queue, Start::Led, bounds, milestones).of_two(),
    );
}

#[test]
fn a_leader_that_acts_on_is_cut_off() {
    let bounds = Bounds { faulty: 1, cuts: 1, passes: 3, writes: 1, ..Bounds::default() };
    let milestones = &[Milestone::Lapsed, Milestone::Successor, Milestone::Committed, Milestone::StaleWrite];
    let election = Election::new(Strategy::Queue, Start::Led, bounds, milestones).of_two().at_least_one();
    explore("election, at least one", 5_000, election);
}

#[test]
fn a_silent_leader_that_acts_on_is_replaced() {
    let bounds = Bounds { faulty: 1, cuts: 1, passes: 1, ..Bounds::default() };
    let milestones = &[Milestone::LeadOn, Milestone::Replaced, Milestone::StaleBeat, Milestone::Beats];
    let election = Election::new(Strategy::Queue, Start::Led, bounds, milestones).at_least_one().fast();
    explore("election, at least one, silent", 1_000, election);
}

#[test]
fn a_leader_and_its_successor_are_cut_off() {
    let bounds = Bounds { faulty: 2, cuts: 1, passes: 2, ..Bounds::default() };
    let milestones = &[Milestone::LeadOn, Milestone::Lapsed, Milestone::ClaimedAgain, Milestone::Successor];
    explore("election, two cut off", 20_000, Election::new(Strategy::Queue, Start::Led, bounds, milestones));
}

#[test]
fn a_silent_leader_is_replaced() {
    let bounds = Bounds { passes: 2, writes: 1, ..Bounds::default() };
    let milestones = &[
        Milestone::LeadOn,
        Milestone::Replaced,
        Milestone::StaleBeat,
        Milestone::Beats,
        Milestone::StaleWrite,
    ];
    let election = Election::new(Strategy::Queue, Start::Led, bounds, milestones).of_two().fast();
    explore("election, a silent leader", 1_000, election);
}

#[test]
fn a_silent_leader_and_its_successor_are_replaced() {
    let bounds = Bounds { passes: 2, ..Bounds::default() };
    let milestones = &[Milestone::Replaced, Milestone::ReplacedAgain, Milestone::StaleBeat, Milestone::Beats];
    let election = Election::new(Strategy::Queue, Start::Led, bounds, milestones).fast();
    explore("election, two silent leaders", 1_000, election);
}

#[test]
fn a_silent_leader_is_cut_off() {
    let bounds = Bounds { faulty: 1, cuts: 1, passes: 1, ..Bounds::default() };
    let milestones = &[Milestone::LeadOn, Milestone::Replaced, Milestone::StaleBeat, Milestone::Beats];
    let election = Election::new(Strategy::Queue, Start::Led, bounds, milestones).fast();
    explore("election, silent and cut off", 1_000, election);
}

#[test]
fn the_successor_of_a_silent_leader_is_cut_off() {
    let bounds = Bounds { faulty: 2, cuts: 1, passes: 1, ..Bounds::default() };
    let milestones = &[Milestone::LeadOn, Milestone::Replaced, Milestone::StaleBeat, Milestone::Beats];
    let election = Election::new(Strategy::Queue, Start::Led, bounds, milestones).fast();
    explore("election, silent, two cut off", 1_000, election);
}

#[test]
fn a_silent_leader_of_the_strategy_single_is_replaced() {
    let bounds = Bounds { passes: 1, ..Bounds::default() };
    let milestones = &[Milestone::LeadOn, Milestone::Replaced, Milestone::StaleBeat, Milestone::Beats];
    let election = Election::new(Strategy::Single, Start::Led, bounds, milestones).fast();
    explore("election, single, silent", 1_000, election);
}

#[test]
fn a_first_candidate_that_never_claims_is_replaced() {
    let bounds = Bounds { passes: 2, ..Bounds::default() };
    let milestones = &[Milestone::Active, Milestone::Replaced, Milestone::Vandalised];
    let election = Election::new(Strategy::Queue, Start::Claiming, bounds, milestones).of_two().fast();
    explore("election, no claim", 1_000, election);
}

#[test]
fn candidates_of_the_strategy_single_are_cut_off() {
    let bounds = Bounds { faulty: 1, passes: 2, writes: 1, ..Bounds::default() };
    let milestones = &[Milestone::Lapsed, Milestone::Successor, Milestone::StaleWrite];
    let election = Election::new(Strategy::Single, Start::Led, bounds, milestones).of_two();
    explore("election, single", 1_000, election);
}

#[test]
fn a_leader_steps_down() {
    let bounds = Bounds { faulty: 1, cuts: 1, passes: 1, writes: 1, leaves: 1, ..Bounds::default() };
    let milestones = &[Milestone::Released, Milestone::LeadOn, Milestone::StaleWrite];
    explore(
        "election, stepping down",
        1_000,
        Election::new(Strategy::Queue, Start::Led, bounds, milestones).of_two(),
    );
}

#[test]
fn a_claim_is_answered_late() {
    let bounds = Bounds { faulty: 1, cuts: 1, passes: 2, ..Bounds::default() };
    let milestones = &[Milestone::LateReply, Milestone::Successor];
    explore(
        "election, a late reply",
        1_000,
        Election::new(Strategy::Queue, Start::Claiming, bounds, milestones).of_two(),
    );
}

#[test]
fn a_claim_is_lost_on_the_way() {
    let bounds = Bounds { faulty: 2, cuts: 2, leaves: 1, ..Bounds::default() };
    let milestones = &[Milestone::Released, Milestone::ClaimedBefore];
    explore(
        "election, a late claim",
        1_000,
        Election::new(Strategy::Queue, Start::Led, bounds, milestones).of_two(),
    );
}

#[test]
fn an_operator_deletes_a_candidate() {
    let bounds = Bounds { faulty: 1, writes: 1, leaves: 1, strange: 1, ..Bounds::default() };
    let milestones = &[Milestone::Vandalised, Milestone::StaleWrite];
    explore(
        "election, a deleted candidate",
        1_000,
        Election::new(Strategy::Queue, Start::Led, bounds, milestones).of_two(),
    );
}
