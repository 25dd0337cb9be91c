//! Tests of disconnection, reconnection, and time.

use super::driver::*;
use crate::machine::election::leadership::*;
use crate::outcome::{Outcome, Reason};
use crate::time::Millis;

fn verifying() -> (Driver, Term) {
    let run = Driver::new().active().at(100).disconnected();
    let term = run.term();
    (run.at(200).connected().looked(Some(1), None), term)
}

#[test]
fn a_disconnected_leader_pauses_and_continues_with_the_same_term() {
    let (run, term) = verifying();
    assert_eq!(run.seen(), "paused 1 until 9000: watch, verify");
    assert!(!run.machine.may_act(run.now));
    let run = run.at(300).confirmed(&term);
    assert_eq!(run.seen(), "active 1: tell");
    assert_eq!(run.term(), term);
    assert_eq!(run.machine.trusted_until(), Some(Millis(200 + LEASE)));
}

#[test]
fn a_paused_leader_that_was_replaced_is_inactive() {
    let (_, term) = verifying();
    let ours = Sighting { version: 1, token: Some(term.token()) };
    let table = [
        (Some(8), Some(ours), "campaigning: tell, lost 1 (candidate-gone), look"),
        (None, Some(ours), "campaigning: tell, lost 1 (candidate-gone), look"),
        (Some(SESSION), None, "leaving: tell, lost 1 (epoch-moved), look"),
        (Some(SESSION), Some(Sighting { version: 2, ..ours }), "leaving: tell, lost 1 (epoch-moved), look"),
        (Some(SESSION), Some(Sighting { token: None, ..ours }), "leaving: tell, lost 1 (epoch-moved), look"),
    ];
    for (owner, epoch, expected) in table {
        let (run, _) = verifying();
        let run = run.answer(Reply::Verified(Outcome::Applied(Findings { owner, epoch })));
        assert_eq!(run.seen(), expected, "{owner:?} {epoch:?}");
    }
}

#[test]
fn a_paused_leader_that_is_no_longer_first_is_inactive() {
    let run = Driver::new().active().disconnected().connected();
    assert_eq!(run.looked(Some(3), Some(2)).seen(), "standby: tell, watch, lost 1 (candidate-gone)");
    let run = Driver::new().active().disconnected().connected();
    let fresh = run.looked(Some(3), None);
    assert_eq!(fresh.seen(), "campaigning: tell, watch, lost 1 (candidate-gone), read epoch");
}

#[test]
fn an_unanswered_verification_is_repeated_until_the_deadline() {
    for outcome in [Outcome::Unknown, rejected(0, Reason::NotSent)] {
        let (run, term) = verifying();
        let run = run.answer(Reply::Verified(outcome));
        assert!(run.seen().starts_with("paused 1"), "{}", run.seen());
        let run = run.at(1_000).on(Event::Tick).looked(Some(1), None);
        assert_eq!(run.seen(), "paused 1 until 9000: watch, verify");
        assert_eq!(run.confirmed(&term).seen(), "active 1: tell");
    }
}

#[test]
fn a_pause_ends_at_the_deadline_and_a_live_session_claims_again() {
    let run = Driver::new().active().disconnected();
    assert_eq!(run.machine.next_wake(), Some(Millis(LEASE)));
    let run = run.at(LEASE).on(Event::Tick);
    assert_eq!(run.seen(), "campaigning: tell, lost 1 (trust-lapsed)");
    let run = run.at(LEASE + 500).connected().looked(Some(1), None);
    assert_eq!(run.seen(), "campaigning: watch, read epoch");
    let run = run.epoch(1, None).answer(Reply::Claimed(Outcome::Applied(())));
    assert_eq!(run.seen(), "active 2: tell");
}

/// SIGSTOP for longer than the lease, then any event first.
#[test]
fn a_leader_that_wakes_from_a_freeze_is_inactive_after_any_first_event() {
    let late = [
        Event::Tick,
        Event::Connected { session: SESSION, timeout: TIMEOUT },
        Event::Disconnected { session: SESSION },
        Event::Stand,
        Event::FencedOut { epoch: 0 },
        Event::Trust { session: SESSION, until: Millis(LEASE + 1) },
        Event::Trust { session: 8, until: Millis(9 * LEASE) },
    ];
    for event in late {
        let run = Driver::new().active().at(LEASE + 5_000);
        assert!(!run.machine.may_act(run.now), "the leader may not act even before the first event");
        let run = run.on(event.clone());
        assert!(run.effects.contains(&Effect::Lost { epoch: 1, why: Why::TrustLapsed }), "{event:?}");
        assert!(run.machine.term().is_none(), "{event:?}");
    }
}

#[test]
fn evidence_that_the_session_lives_counts_before_the_lapse() {
    let until = Millis(3 * LEASE);
    let run = Driver::new().active().at(LEASE + 1).on(Event::Trust { session: SESSION, until });
    assert_eq!(run.seen(), "active 1");
    assert!(run.machine.may_act(run.now));
}

#[test]
fn an_active_leader_renews_its_trust_by_verifying() {
    let run = Driver::new().active();
    let term = run.term();
    assert_eq!(run.machine.next_wake(), Some(Millis(LEASE / 4)));
    let run = run.at(LEASE / 4).on(Event::Tick);
    assert_eq!(run.seen(), "active 1: verify");
    let run = run.at(LEASE / 4 + 10).confirmed(&term);
    assert_eq!(run.seen(), "active 1");
    assert_eq!(run.machine.trusted_until(), Some(Millis(LEASE / 4 + LEASE)));
    assert_eq!(run.machine.next_wake(), Some(Millis(LEASE / 2)));
}

#[test]
fn with_proofs_of_the_session_claims_and_verifications_extend_no_trust() {
    let proof = |until| Event::Trust { session: SESSION, until: Millis(until) };
    let claiming = |until| Driver::new().connected().on(proof(until)).ran(1, None).epoch(0, None);
    let claimed = || Reply::Claimed(Outcome::Applied(()));
    let run = claiming(5_000).at(1_000).answer(claimed());
    assert_eq!(run.machine.trusted_until(), Some(Millis(5_000)));
    let term = run.term();
    let run = run.at(LEASE / 4 + 1_000).on(Event::Tick).confirmed(&term);
    assert_eq!(run.machine.trusted_until(), Some(Millis(5_000)));
    let run = run.on(proof(7_000));
    assert_eq!(run.machine.trusted_until(), Some(Millis(7_000)));
    let late = claiming(5_000).at(5_000).answer(claimed());
    assert_eq!(late.machine.term(), None, "the proof is over");
}

#[test]
fn an_unanswered_renewal_is_repeated_and_does_not_end_the_term() {
    for outcome in [Outcome::Unknown, rejected(0, Reason::NotSent)] {
        let run = Driver::new().active().at(LEASE / 4).on(Event::Tick);
        let run = run.answer(Reply::Verified(outcome));
        assert!(run.seen().starts_with("active 1"), "{}", run.seen());
        assert_eq!(run.at(LEASE / 2).on(Event::Tick).seen(), "active 1: verify");
    }
}

#[test]
fn a_claim_that_took_longer_than_the_lease_does_not_make_a_leader() {
    let run = Driver::new().connected().ran(1, None).epoch(0, None).at(LEASE);
    let run = run.answer(Reply::Claimed(Outcome::Applied(())));
    assert_eq!(run.seen(), "campaigning");
}

#[test]
fn a_claim_in_flight_at_a_disconnection_is_repeated() {
    let run = Driver::new().connected().ran(1, None).epoch(0, None);
    let (ticket, _) = run.asked.clone().unwrap();
    let run = run.disconnected().on(Event::Reply(ticket, Reply::Claimed(Outcome::Applied(()))));
    assert_eq!(run.seen(), "campaigning");
    let run = run.connected().looked(Some(1), None).epoch(1, None);
    assert_eq!(run.seen(), "campaigning: claim 2");
}

#[test]
fn the_policy_decides_whether_a_paused_leader_acts() {
    let may_act = |run: &Driver| run.machine.may_act(run.now);
    let most = Driver::with(Policy::AtMostOne).active();
    let least = Driver::with(Policy::AtLeastOne).active();
    assert!(may_act(&most) && may_act(&least));
    let (most, least) = (most.disconnected(), least.disconnected());
    assert!(!may_act(&most) && may_act(&least));
    assert!(!may_act(&least.at(LEASE).on(Event::Tick)), "the term has ended");
}
