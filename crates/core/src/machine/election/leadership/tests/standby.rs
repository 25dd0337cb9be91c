//! Tests of the next candidate, which replaces a silent leader.

use super::driver::*;
use crate::machine::election::leadership::*;
use crate::outcome::{Outcome, Reason};
use crate::time::Millis;
use crate::txn::Seat;

/// The second candidate, which saw beat 1 at time 0.
fn next() -> Driver {
    let run = Driver::new().connected().ran(2, Some(1));
    assert_eq!(run.seen(), "standby: tell, watch, watch beats, read");
    let run = run.heard(beat_of(1));
    assert_eq!(run.machine.next_wake(), Some(Millis(WAIT)));
    run
}

fn changed(run: Driver) -> Driver {
    let watch = run.watch.expect("a watch");
    run.on(Event::Reply(watch, Reply::Changed))
}

#[test]
fn a_leader_without_a_new_beat_for_the_wait_is_replaced() {
    let run = next().at(WAIT - 1).on(Event::Tick);
    assert_eq!(run.seen(), "standby");
    let run = run.at(WAIT).on(Event::Tick);
    assert_eq!(run.seen(), "standby: read", "a lost watch must not depose a leader that beats");
    let run = run.heard(beat_of(1));
    assert_eq!(run.seen(), "campaigning: tell, replace by 5");
    let run = run.answer(Reply::Claimed(Outcome::Applied(())));
    assert_eq!(run.seen(), "active 5: tell");
    assert_eq!(run.machine.trusted_until(), Some(Millis(WAIT + TRUST)));
}

#[test]
fn each_new_beat_starts_the_wait_again() {
    let run = changed(next().at(BEAT));
    assert_eq!(run.seen(), "standby: watch beats, read");
    let run = run.at(BEAT + 5).heard(beat_of(2));
    assert_eq!(run.machine.next_wake(), Some(Millis(BEAT + 5 + WAIT)));
    let run = run.at(BEAT + 5 + WAIT).on(Event::Tick).heard(beat_of(3));
    assert_eq!(run.seen(), "standby", "its watch was lost");
    assert_eq!(run.machine.next_wake(), Some(Millis(BEAT + 5 + 2 * WAIT)));
}

/// The wait begins when the reply arrives: the beat was applied earlier.
#[test]
fn the_wait_counts_from_the_answer_of_the_read() {
    let run = changed(next().at(BEAT)).at(BEAT + 900).heard(beat_of(2));
    assert_eq!(run.machine.next_wake(), Some(Millis(BEAT + 900 + WAIT)));
}

/// An operator deleted `/leading`, and the next leader created it again.
#[test]
fn the_same_version_of_a_new_znode_is_a_new_beat() {
    let again = Some(Beat { written: 9, ..beat_of(1).unwrap() });
    let run = next().at(WAIT).on(Event::Tick).heard(again);
    assert_eq!(run.seen(), "standby");
}

#[test]
fn a_namespace_whose_first_candidate_never_claims_gets_a_leader() {
    let run = Driver::new().connected().ran(2, Some(1)).heard(None);
    let run = run.at(WAIT).on(Event::Tick).heard(None);
    assert_eq!(run.seen(), "campaigning: tell, replace by 5");
}

#[test]
fn a_look_does_not_start_the_wait_again() {
    let run = next().at(BEAT).connected().looked(Some(2), Some(1));
    assert_eq!(run.seen(), "standby: watch");
    assert_eq!(run.machine.next_wake(), Some(Millis(WAIT)));
}

#[test]
fn another_first_candidate_is_watched() {
    let run = next().at(BEAT).connected().looked(Some(2), Some(0));
    assert_eq!(run.seen(), "standby: watch, watch beats, read");
}

#[test]
fn a_refused_watch_is_reported() {
    let run = next();
    let watch = run.watch.expect("a watch");
    let refused = Reply::Watched(rejected(0, Reason::NoAuth));
    assert_eq!(run.on(Event::Reply(watch, refused)).seen(), "standby: refused (not authorised)");
}

#[test]
fn the_wait_continues_across_a_lost_connection() {
    let run = next().at(BEAT).disconnected().at(WAIT).connected().looked(Some(2), Some(1));
    assert_eq!(run.seen(), "standby: tell, watch, watch beats, read");
    assert_eq!(run.heard(beat_of(1)).seen(), "campaigning: tell, replace by 5");
}

#[test]
fn a_third_candidate_replaces_both_predecessors_if_the_second_one_does_not_claim() {
    let run = Driver::new().connected().behind(2);
    assert_eq!(run.seen(), "standby: tell, watch, watch, watch beats, read");
    let run = run.heard(beat_of(1));
    let head_start = WAIT / 15;
    assert_eq!(run.machine.next_wake(), Some(Millis(WAIT + head_start)));
    let run = run.at(WAIT + head_start).on(Event::Tick).heard(beat_of(1));
    assert_eq!(run.seen(), "campaigning: tell, replace by 5");
    assert!(matches!(run.claim().seat(), Seat::Queued { silent, .. } if silent.len() == 2));
    assert_eq!(run.answer(Reply::Claimed(Outcome::Applied(()))).seen(), "active 5: tell");
}

/// The second candidate has claimed: its beat is a new one.
#[test]
fn a_third_candidate_does_not_replace_a_second_one_that_claims() {
    let run = Driver::new().connected().behind(2).heard(beat_of(1));
    let run = run.at(WAIT + WAIT / 15).on(Event::Tick).heard(beat_of(2));
    assert_eq!(run.seen(), "standby");
}

#[test]
fn a_candidate_behind_three_others_reads_no_beats() {
    let run = Driver::new().connected().behind(3);
    assert_eq!(run.seen(), "standby: tell, watch, watch, watch");
    let run = run.at(WAIT).on(Event::Tick);
    assert_eq!(run.seen(), "standby");
}

#[test]
fn a_rejected_replacement_leads_to_another_look() {
    let replacing = || next().at(WAIT).on(Event::Tick).heard(beat_of(1));
    let table = [
        (0, Reason::NoNode, "leaving: tell, look"),
        (1, Reason::NoNode, "campaigning: look"),
        (2, Reason::BadVersion, "campaigning: look"),
        (3, Reason::BadVersion, "campaigning: look"),
    ];
    for (at, reason, expected) in table {
        let run = replacing().answer(Reply::Claimed(rejected(at, reason.clone())));
        assert_eq!(run.seen(), expected, "{at} {reason}");
    }
    let run = replacing().answer(Reply::Claimed(rejected(3, Reason::BadVersion)));
    let run = run.looked(Some(2), Some(1)).heard(beat_of(2));
    assert_eq!(run.machine.next_wake(), Some(Millis(2 * WAIT)));
}

/// The list was requested before the claim was sent.
#[test]
fn a_look_that_shows_the_silent_leader_does_not_end_the_claim() {
    let run = next().at(WAIT).connected();
    assert_eq!(run.seen(), "standby: look");
    let look = run.asked.clone().unwrap();
    let run = run.on(Event::Tick).heard(beat_of(1));
    assert_eq!(run.seen(), "campaigning: tell, replace by 5");
    let claim = run.asked.clone();
    let run = run.awaiting(Some(look)).looked(Some(2), Some(1));
    assert_eq!(run.seen(), "campaigning: watch");
    assert_eq!(run.awaiting(claim).answer(Reply::Claimed(Outcome::Applied(()))).seen(), "active 5: tell");
}

#[test]
fn an_unanswered_read_is_repeated_after_a_beat() {
    for outcome in [Outcome::Unknown, rejected(0, Reason::NoAuth)] {
        let run = Driver::new().connected().ran(2, Some(1)).answer(Reply::Read(outcome));
        assert!(run.seen().starts_with("standby"), "{}", run.seen());
        assert_eq!(run.machine.next_wake(), Some(Millis(BEAT)));
        assert_eq!(run.at(BEAT).on(Event::Tick).seen(), "standby: read");
    }
}
