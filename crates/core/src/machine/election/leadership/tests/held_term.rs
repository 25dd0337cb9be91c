//! Tests of a term that is held under `AtLeastOne`.

use std::time::Duration;

use uuid::Uuid;

use super::driver::*;
use crate::machine::election::leadership::*;
use crate::outcome::Outcome;

const FOREVER: Policy = Policy::AtLeastOne { paused_at_most: None };

/// A leader whose session has ended. Its next session is connected.
fn expired() -> Driver {
    let run = Driver::with(FOREVER).active().at(100).disconnected().at(2 * LEASE).on(Event::Tick);
    assert_eq!(run.seen(), "paused 1: lost 1 (trust-lapsed)");
    let run = run.on(Event::Expired { session: SESSION });
    assert_eq!(run.seen(), "paused 1");
    run.on(connected(SESSION + 1))
}

fn may_act(run: &Driver) -> bool {
    run.machine.may_act(run.now)
}

#[test]
fn a_leader_whose_session_has_ended_claims_again_without_a_gap() {
    let run = expired();
    let ours = Sighting { version: 1, token: Some(run.term().token()) };
    let run = run.looked(None, None);
    assert!(may_act(&run), "{}", run.seen());
    let run = run.ran(1, None);
    assert_eq!(run.seen(), "paused 1: watch, read");
    let run = run.read_of(SESSION + 1, Some(ours));
    assert_eq!(run.seen(), "paused 1: claim 2");
    assert!(may_act(&run));
    let run = run.answer(Reply::Claimed(Outcome::Applied(())));
    assert_eq!(run.seen(), "active 2: tell");
    assert!(may_act(&run));
}

#[test]
fn a_held_term_ends_when_the_epoch_shows_another_claim() {
    let run = expired().ran(1, None);
    assert!(may_act(&run));
    let run = run.read_of(SESSION + 1, Some(Sighting { version: 2, token: Some(Uuid::from_u128(77)) }));
    assert_eq!(run.seen(), "campaigning: tell, lost 1 (epoch-moved), claim 3");
    assert!(!may_act(&run));
}

/// An operator deleted `/epoch`, and another node claimed the same number; or wrote the record of this term again.
#[test]
fn a_held_term_ends_when_the_epoch_is_not_its_own_or_has_moved() {
    for other in [false, true] {
        let run = expired().ran(1, None);
        let own = run.term().token();
        let (version, token) = if other { (1, Uuid::from_u128(77)) } else { (2, own) };
        let run = run.read_of(SESSION + 1, Some(Sighting { version, token: Some(token) }));
        assert!(run.seen().starts_with("campaigning: tell, lost 1 (epoch-moved)"), "{}", run.seen());
    }
}

#[test]
fn an_own_claim_whose_reply_was_lost_does_not_end_a_held_term() {
    let run = expired().ran(1, None);
    let ours = Sighting { version: 1, token: Some(run.term().token()) };
    let run = run.read_of(SESSION + 1, Some(ours));
    let token = run.claim().token();
    let run = run.on(Event::Disconnected { session: SESSION + 1 }).on(connected(SESSION + 1)).ran(1, None);
    assert_eq!(run.seen(), "paused 1: watch, read");
    let run = run.read_of(SESSION + 1, Some(Sighting { version: 2, token: Some(token) }));
    assert_eq!(run.seen(), "paused 1: claim 3");
    assert!(may_act(&run));
}

#[test]
fn a_candidate_far_behind_reads_the_epoch_until_another_node_claims() {
    let run = expired().behind(3);
    assert!(may_act(&run), "{}", run.seen());
    let run = run.on(Event::Tick);
    assert_eq!(run.seen(), "paused 1: read");
    let ours = Sighting { version: 1, token: Some(run.term().token()) };
    let run = run.read_of(0, Some(ours));
    assert_eq!(run.seen(), "paused 1");
    let now = run.now.0;
    assert_eq!(run.machine.next_wake().map(|at| at.0), Some(now + BEAT));
    let run = run.at(now + BEAT).on(Event::Tick);
    assert_eq!(run.seen(), "paused 1: read");
    let run = run.read_of(0, Some(Sighting { version: 2, token: None }));
    assert_eq!(run.seen(), "standby: tell, lost 1 (epoch-moved)");
    assert_eq!(run.machine.may_act_until(), None);
}

#[test]
fn a_read_for_a_held_term_that_a_disconnection_interrupts_is_sent_again() {
    let run = expired().behind(3).on(Event::Tick);
    assert_eq!(run.seen(), "paused 1: read");
    let run = run.on(Event::Disconnected { session: SESSION + 1 }).on(connected(SESSION + 1));
    assert_eq!(run.looked_behind(3).on(Event::Tick).seen(), "paused 1: read");
}

#[test]
fn a_pause_ends_after_its_limit_whether_the_session_lives_or_not() {
    let limit = Duration::from_millis(LEASE / 2);
    let run =
        Driver::with(Policy::AtLeastOne { paused_at_most: Some(limit) }).active().at(100).disconnected();
    let until = 100 + LEASE / 2;
    assert_eq!(run.seen(), format!("paused 1 until {until}: tell, lost 1 (disconnected)"));
    assert_eq!(run.machine.next_wake().map(|at| at.0), Some(until));
    assert!(may_act(&run) && !run.machine.may_act(crate::time::Millis(until)));
    let run = run.at(until).on(Event::Tick);
    assert_eq!(run.seen(), "campaigning: tell, lost 1 (paused-too-long)");

    let limit = Duration::from_millis(3 * LEASE);
    let run =
        Driver::with(Policy::AtLeastOne { paused_at_most: Some(limit) }).active().at(100).disconnected();
    let run =
        run.at(LEASE).on(Event::Tick).on(Event::Expired { session: SESSION }).at(3 * LEASE).on(Event::Tick);
    assert!(may_act(&run));
    let run = run.at(100 + 3 * LEASE).on(Event::Tick);
    assert_eq!(run.seen(), "idle: tell, lost 1 (paused-too-long)");
}

#[test]
fn a_node_that_steps_down_or_is_fenced_out_holds_no_term() {
    let run = expired().on(Event::StepDown);
    assert!(!may_act(&run), "{}", run.seen());
    let run = expired().on(Event::FencedOut { epoch: 1 });
    assert_eq!(run.machine.may_act_until(), None, "{}", run.seen());
}
