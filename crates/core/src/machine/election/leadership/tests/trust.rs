//! Tests of disconnection, reconnection, and time.

use uuid::Uuid;

use super::driver::*;
use crate::machine::election::leadership::*;
use crate::outcome::{Outcome, Reason};
use crate::time::Millis;

fn resuming() -> (Driver, Term) {
    let run = Driver::new().active().at(100).disconnected();
    let term = run.term();
    (run.at(200).connected().looked(Some(1), None), term)
}

fn proof(until: u64) -> Event {
    Event::Trust { session: SESSION, until: Millis(until) }
}

#[test]
fn a_disconnected_leader_pauses_and_continues_with_the_same_term() {
    let (run, term) = resuming();
    assert_eq!(run.seen(), "paused 1 until 9000: watch, beat 1");
    assert!(!run.machine.may_act(run.now));
    let run = run.at(300).beaten();
    assert_eq!(run.seen(), "paused 1 until 9200: tell, read");
    let run = run.ours();
    assert_eq!(run.seen(), "active 1: tell");
    assert_eq!(run.term(), term);
    assert_eq!(run.machine.trusted_until(), Some(Millis(200 + TRUST)));
    assert_eq!(run.machine.term_until(), Some(Millis(200 + LEASE)));
}

/// An operator deleted `/epoch`, and another node claimed the same epoch: a beat does not show that.
#[test]
fn a_paused_leader_resumes_only_if_epoch_and_candidate_are_still_its_own() {
    let read = || resuming().0.beaten();
    let token = Some(Uuid::from_u128(77));
    assert_eq!(read().epoch(1, token).seen(), "leaving: tell, lost 1 (epoch-moved), look");
    assert_eq!(read().read(None).seen(), "leaving: tell, lost 1 (epoch-moved), look");
    let run = read();
    let ours = Sighting { version: 1, token: Some(run.term().token()) };
    let found = Findings { owner: Some(8), epoch: Some(ours), beat: None };
    let run = run.answer(Reply::Read(Outcome::Applied(found)));
    assert_eq!(run.seen(), "campaigning: tell, lost 1 (candidate-gone), look");
}

#[test]
fn an_unanswered_read_of_a_paused_leader_is_followed_by_a_look_and_a_beat() {
    for outcome in [Outcome::Unknown, rejected(0, Reason::NotSent)] {
        let run = resuming().0.beaten().answer(Reply::Read(outcome));
        assert!(run.seen().starts_with("paused 1"), "{}", run.seen());
        let run = run.at(1_000).on(Event::Tick).looked(Some(1), None);
        assert_eq!(run.seen(), "paused 1 until 9200: watch, beat 1");
    }
}

/// The process was frozen while the beat was under way: the next candidate may have claimed before it was applied.
#[test]
fn a_beat_that_is_answered_after_the_trust_has_lapsed_does_not_extend_it() {
    let run = Driver::new().active().on(proof(3 * LEASE)).at(BEAT).on(Event::Tick).at(TRUST).beaten();
    assert_eq!(run.seen(), "paused 1 until 27000: tell, lost 1 (beats-lapsed), read");
    assert_eq!(run.ours().seen(), "active 1: tell");
}

/// The answer to a heartbeat arrives a moment after the trust has lapsed, before the timer. The leader's other parts may
/// have been refused in that moment.
#[test]
fn a_proof_that_arrives_after_the_trust_in_the_session_has_lapsed_publishes_the_active_state_again() {
    let beats = (BEAT..LEASE).step_by(usize::try_from(BEAT).unwrap());
    let run = Driver::new().active().on(proof(LEASE));
    let run = beats.fold(run, |run, at| run.at(at).on(Event::Tick).beaten()).at(LEASE);
    assert!(!run.machine.may_act(run.now));
    let run = run.on(proof(2 * LEASE));
    assert_eq!(run.seen(), "active 1: tell");
    assert_eq!(run.on(proof(3 * LEASE)).seen(), "active 1");
}

#[test]
fn every_rejection_of_a_beat_leads_to_its_next_step() {
    let other = || Reason::Other("x".into());
    let table = [
        (0, Reason::BadVersion, "leaving: tell, lost 1 (epoch-moved), look"),
        (0, Reason::NoNode, "leaving: tell, lost 1 (epoch-moved), look"),
        (1, Reason::NoNode, "campaigning: tell, lost 1 (candidate-gone), look"),
        (1, Reason::BadVersion, "campaigning: tell, lost 1 (candidate-gone), look"),
        (2, Reason::NoNode, "campaigning: tell, lost 1 (beat-refused), look"),
    ];
    for (at, reason, expected) in table {
        let active = Driver::new().active().at(BEAT).on(Event::Tick);
        for run in [resuming().0, active] {
            let run = run.answer(Reply::Beaten(rejected(at, reason.clone())));
            assert_eq!(run.seen(), expected, "{at} {reason}");
        }
    }
    for (at, reason) in [(2, Reason::NoAuth), (0, other())] {
        let run = Driver::new().active().at(BEAT).on(Event::Tick);
        let run = run.answer(Reply::Beaten(rejected(at, reason.clone())));
        assert_eq!(run.seen(), format!("active 1: refused ({reason})"));
        let run = resuming().0.answer(Reply::Beaten(rejected(at, reason.clone())));
        assert_eq!(run.seen(), format!("campaigning: tell, refused ({reason}), lost 1 (beat-refused)"));
    }
}

#[test]
fn a_paused_leader_that_is_no_longer_first_is_inactive() {
    let run = Driver::new().active().disconnected().connected();
    let behind = run.looked(Some(3), Some(2));
    assert_eq!(behind.seen(), "standby: tell, watch, lost 1 (candidate-gone), watch beats, read");
    let run = Driver::new().active().disconnected().connected();
    let fresh = run.looked(Some(3), None);
    assert_eq!(fresh.seen(), "campaigning: tell, watch, lost 1 (candidate-gone), read");
}

#[test]
fn an_unanswered_beat_is_repeated_until_the_deadline() {
    for outcome in [Outcome::Unknown, rejected(0, Reason::NotSent)] {
        let (run, _) = resuming();
        let run = run.answer(Reply::Beaten(outcome));
        assert!(run.seen().starts_with("paused 1"), "{}", run.seen());
        let run = run.at(1_000).on(Event::Tick).looked(Some(1), None);
        assert_eq!(run.seen(), "paused 1 until 9000: watch, beat 1");
        assert_eq!(run.beaten().ours().seen(), "active 1: tell");
    }
}

#[test]
fn a_pause_ends_at_the_deadline_and_a_live_session_claims_again() {
    let run = Driver::new().active().disconnected();
    assert_eq!(run.machine.next_wake(), Some(Millis(LEASE)));
    let run = run.at(LEASE).on(Event::Tick);
    assert_eq!(run.seen(), "campaigning: tell, lost 1 (trust-lapsed)");
    let run = run.at(LEASE + 500).connected().looked(Some(1), None);
    assert_eq!(run.seen(), "campaigning: watch, read");
    let run = run.epoch(1, None).answer(Reply::Claimed(Outcome::Applied(())));
    assert_eq!(run.seen(), "active 2: tell");
}

/// SIGSTOP for longer than the lease, then any event first.
#[test]
fn a_leader_that_wakes_from_a_freeze_is_inactive_after_any_first_event() {
    let late = [
        Event::Tick,
        connected(SESSION),
        Event::Disconnected { session: SESSION },
        Event::Stand,
        Event::FencedOut { epoch: 0 },
        proof(LEASE + 1),
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
    let run = Driver::new().active().at(LEASE + 1).on(proof(3 * LEASE));
    assert!(run.seen().starts_with("paused 1 until 27000"), "{}", run.seen());
    assert!(!run.machine.may_act(run.now), "but the beat is too old");
}

/// A server grants a shorter session timeout: the session may end earlier than it was proven to live before.
#[test]
fn a_shorter_proof_ends_the_term_earlier() {
    let run = Driver::new().active().on(proof(3 * LEASE)).on(proof(BEAT));
    assert_eq!((run.seen().as_str(), run.machine.term_until()), ("active 1", Some(Millis(BEAT))));
    assert!(!run.machine.may_act(Millis(BEAT)));
    let run = run.at(BEAT).on(Event::Tick);
    assert_eq!(run.seen(), "campaigning: tell, lost 1 (trust-lapsed)");
}

#[test]
fn an_active_leader_beats_once_a_period_with_one_beat_in_flight() {
    let run = Driver::new().active();
    assert_eq!(run.machine.next_wake(), Some(Millis(BEAT)));
    let run = run.at(BEAT).on(Event::Tick);
    assert_eq!(run.seen(), "active 1: beat 1");
    let run = run.at(2 * BEAT).on(Event::Tick);
    assert_eq!(run.seen(), "active 1");
    let run = run.beaten();
    assert_eq!(run.seen(), "active 1");
    assert_eq!(run.machine.trusted_until(), Some(Millis(BEAT + TRUST)), "counted from the sending");
    assert_eq!(run.machine.next_wake(), Some(Millis(2 * BEAT)));
    assert_eq!(run.on(Event::Tick).seen(), "active 1: beat 1");
}

#[test]
fn a_leader_without_applied_beats_pauses_and_resumes_with_the_next_one() {
    let run = Driver::new().active().on(proof(3 * LEASE));
    assert!(run.machine.may_act(Millis(TRUST - 1)));
    assert!(!run.machine.may_act(Millis(TRUST)), "even before the event");
    let run = run.at(BEAT).on(Event::Tick).at(TRUST).on(Event::Tick);
    assert_eq!(run.seen(), "paused 1 until 27000: tell, lost 1 (beats-lapsed)");
    assert_eq!(run.machine.next_wake(), Some(Millis(3 * LEASE)));
    let run = run.at(BEAT + TRUST).beaten().ours();
    assert_eq!(run.seen(), "paused 1 until 27000: beat 1", "the answers were too late");
    let run = run.beaten().ours();
    assert_eq!(run.seen(), "active 1: tell");
    assert_eq!(run.machine.trusted_until(), Some(Millis(BEAT + 2 * TRUST)));
}

#[test]
fn a_leader_that_could_not_beat_in_time_sends_a_beat_when_it_pauses() {
    let run = Driver::new().active().on(proof(3 * LEASE)).at(TRUST).on(Event::Stand);
    assert_eq!(run.seen(), "paused 1 until 27000: tell, lost 1 (beats-lapsed), beat 1");
    let run = run.answer(Reply::Beaten(rejected(0, Reason::BadVersion)));
    assert_eq!(run.seen(), "leaving: tell, lost 1 (epoch-moved), look");
}

#[test]
fn with_proofs_of_the_session_claims_and_beats_do_not_extend_its_trust() {
    let claiming = |until| Driver::new().connected().on(proof(until)).ran(1, None).epoch(0, None);
    let claimed = || Reply::Claimed(Outcome::Applied(()));
    let run = claiming(2_000).at(500).answer(claimed());
    assert_eq!(run.machine.trusted_until(), Some(Millis(2_000)));
    let run = run.at(BEAT).on(Event::Tick).beaten();
    assert_eq!(run.machine.trusted_until(), Some(Millis(2_000)));
    let run = run.on(proof(7_000));
    assert_eq!(run.machine.trusted_until(), Some(Millis(BEAT + TRUST)));
    let late = claiming(2_000).at(2_000).answer(claimed());
    assert_eq!(late.machine.term(), None, "the proof is over");
}

#[test]
fn an_unanswered_beat_does_not_end_the_term() {
    for outcome in [Outcome::Unknown, rejected(0, Reason::NotSent)] {
        let run = Driver::new().active().at(BEAT).on(Event::Tick);
        let run = run.answer(Reply::Beaten(outcome));
        assert!(run.seen().starts_with("active 1"), "{}", run.seen());
        assert_eq!(run.machine.trusted_until(), Some(Millis(TRUST)), "it extends no trust");
        assert_eq!(run.at(2 * BEAT).on(Event::Tick).seen(), "active 1: beat 1");
    }
}

#[test]
fn a_claim_that_took_longer_than_the_trust_does_not_make_a_leader() {
    let run = Driver::new().connected().ran(1, None).epoch(0, None).at(TRUST);
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
    let least = Driver::with(Policy::AtLeastOne { paused_at_most: None }).active();
    assert!(may_act(&most) && may_act(&least));
    let (most, least) = (most.disconnected(), least.disconnected());
    assert!(!may_act(&most) && may_act(&least));
}
