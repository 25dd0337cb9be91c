//! Three nodes elect, claim, pause, lead on, and lose it, on a ZooKeeper that loses replies and ends sessions.
//!
//! Each node is [`Leadership`] with its campaign. Its connection is two queues: requests on their way to the server, and
//! what is on its way to the machine. Every step moves one item of one queue, so a node that takes no step is a frozen
//! one, a request that is not served is a slow one, and a cut that is not heard of is a silent one.
//!
//! | adversity | as a step |
//! | --- | --- |
//! | reply lost | cut after the request was served, before its reply was heard |
//! | request lost, or applied late | cut before it was served; what is left of it may be applied until the reconnection, and a write that is fenced at any time, as if under a new session |
//! | freeze, delay | time passes before the next item is moved |
//! | expiry | possible once the server has not heard of a session for its timeout (a ping may always have come between) |
//! | stale leader | a fenced write is sent by whoever has a term, and served at any time |
//! | stepping down, and standing again | a step of its own |
//! | a strange hand | deletes the first candidate's znode |
//!
//! Time is counted in halves of the session timeout: a lease (nine tenths) and a timeout both end at the second one, in
//! the same instant, which is the worst case for trust. Finer steps reach no other order of the deadlines.
//!
//! The bounds are how often each adversity may happen ([`Bounds`]); what lies between is explored in every order.

mod model;
mod node;
mod rules;

use bellwether_core::machine::election::campaign::Strategy;

use crate::explore::explore;
use model::{Bounds, Election, Sight, Start};

#[test]
fn an_election_from_nothing() {
    let bounds = Bounds { faulty: 2, cuts: 1, ..Bounds::default() };
    let sights = &[Sight::Active];
    explore("election, from nothing", 5_000, Election::new(Strategy::Queue, Start::Cold, bounds, sights));
}

#[test]
fn a_leader_is_cut_off_for_longer_and_longer() {
    let bounds = Bounds { faulty: 1, cuts: 1, passes: 3, writes: 1, ..Bounds::default() };
    let sights =
        &[Sight::LeadOn, Sight::Lapsed, Sight::Anew, Sight::Successor, Sight::Committed, Sight::StaleWrite];
    explore("election, a leader cut off", 5_000, Election::new(Strategy::Queue, Start::Led, bounds, sights));
}

#[test]
fn a_leader_and_its_successor_are_cut_off() {
    let bounds = Bounds { faulty: 2, cuts: 1, passes: 2, ..Bounds::default() };
    let sights = &[Sight::LeadOn, Sight::Lapsed, Sight::Anew, Sight::Successor];
    explore("election, two cut off", 20_000, Election::new(Strategy::Queue, Start::Led, bounds, sights));
}

#[test]
fn candidates_of_the_strategy_single_are_cut_off() {
    let bounds = Bounds { faulty: 1, passes: 2, writes: 1, ..Bounds::default() };
    let sights = &[Sight::Lapsed, Sight::Successor, Sight::StaleWrite];
    explore("election, single", 1_000, Election::new(Strategy::Single, Start::Led, bounds, sights));
}

#[test]
fn a_leader_steps_down() {
    let bounds = Bounds { faulty: 1, cuts: 1, passes: 1, writes: 1, leaves: 1, ..Bounds::default() };
    let sights = &[Sight::Released, Sight::LeadOn, Sight::StaleWrite];
    explore("election, stepping down", 1_000, Election::new(Strategy::Queue, Start::Led, bounds, sights));
}

#[test]
fn a_claim_is_answered_late() {
    let bounds = Bounds { faulty: 1, cuts: 1, passes: 2, ..Bounds::default() };
    let sights = &[Sight::LateReply, Sight::Successor];
    explore("election, a late reply", 1_000, Election::new(Strategy::Queue, Start::Claiming, bounds, sights));
}

#[test]
fn a_claim_is_lost_on_the_way() {
    let bounds = Bounds { faulty: 2, cuts: 2, leaves: 1, ..Bounds::default() };
    let sights = &[Sight::Released, Sight::ClaimedBefore];
    explore("election, a late claim", 1_000, Election::new(Strategy::Queue, Start::Led, bounds, sights));
}

#[test]
fn a_strange_hand_deletes_a_candidate() {
    let bounds = Bounds { faulty: 1, writes: 1, leaves: 1, strange: 1, ..Bounds::default() };
    let sights = &[Sight::Vandalised, Sight::StaleWrite];
    explore("election, a strange hand", 1_000, Election::new(Strategy::Queue, Start::Led, bounds, sights));
}
