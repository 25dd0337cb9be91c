//! Tests of the claim of the epoch, with every answer to it.

use super::driver::*;
use crate::machine::election::campaign;
use crate::machine::election::leadership::*;
use crate::outcome::{Outcome, Reason};
use crate::path;
use crate::time::Millis;
use crate::txn::Op;

fn claiming() -> Driver {
    Driver::new().connected().ran(1, None)
}

fn writing(version: i32) -> Driver {
    claiming().epoch(version, None)
}

#[test]
fn the_epoch_is_claimed_before_the_first_candidate_is_active() {
    let run = claiming();
    assert_eq!(run.seen(), "campaigning: watch, read");
    let run = run.epoch(4, None);
    assert_eq!(run.seen(), "campaigning: claim 5");
    let claim = run.claim();
    let run = run.answer(Reply::Claimed(Outcome::Applied(())));
    assert_eq!(run.seen(), "active 5: tell");
    let term = run.term();
    assert_eq!(run.machine.state().term(), Some(&term));
    assert_eq!((term.session(), term.token()), (SESSION, claim.token()));
    assert_eq!(term.candidate(), claim.seat().candidate());
    assert_eq!(term.fence(), Op::Check { path: path::EPOCH.to_owned(), version: 5 });
}

#[test]
fn a_candidate_whose_session_is_not_proven_to_live_does_not_raise_the_epoch() {
    let proof = |until| Event::Trust { session: SESSION, until: Millis(until) };
    let run = claiming().on(proof(5_000)).at(5_000).epoch(4, None);
    assert_eq!(run.seen(), "campaigning");
    let run = run.on(proof(9_000)).at(7_000).on(Event::Tick).looked(Some(1), None).epoch(4, None);
    assert_eq!(run.seen(), "campaigning: claim 5");
}

#[test]
fn the_last_proof_that_a_session_lives_counts_after_its_reconnection() {
    let proven = Event::Trust { session: SESSION, until: Millis(5_000) };
    let run = Driver::new().connected().on(proven).disconnected().connected();
    assert_eq!(run.at(5_000).ran(1, None).epoch(4, None).seen(), "campaigning");
}

/// The read belongs to a claim that a disconnection has ended.
#[test]
fn a_read_of_an_earlier_claim_is_dropped() {
    let old = claiming().asked.clone();
    let again = || claiming().disconnected().connected().looked(Some(1), None);
    assert_eq!(again().awaiting(old.clone()).epoch(4, None).seen(), "campaigning");
    let run = again().epoch(4, None);
    let token = run.claim().token();
    let run = run.answer(Reply::Claimed(Outcome::Unknown));
    assert_eq!(run.awaiting(old).epoch(5, Some(token)).seen(), "campaigning");
}

#[test]
fn a_reply_to_an_ended_campaign_is_dropped() {
    let run = Driver::new().connected();
    let old = run.asked.clone();
    let run = run.on(connected(SESSION + 1));
    assert_eq!(run.seen(), "campaigning: look");
    assert_eq!(run.awaiting(old).looked(None, None).seen(), "campaigning");
}

#[test]
fn a_claim_whose_reply_was_lost_is_read_back() {
    let run = writing(4);
    let token = run.claim().token();
    let run = run.answer(Reply::Claimed(Outcome::Unknown));
    assert_eq!(run.seen(), "campaigning: read");
    assert_eq!(run.epoch(5, Some(token)).seen(), "active 5: tell");
}

#[test]
fn an_unapplied_claim_is_decided_again_with_a_new_token() {
    let run = writing(4);
    let token = run.claim().token();
    let run = run.answer(Reply::Claimed(Outcome::Unknown)).epoch(4, None);
    assert_eq!(run.seen(), "campaigning");
    let run = run.at(2_000).on(Event::Tick).looked(Some(1), None).epoch(4, None);
    assert_eq!(run.seen(), "campaigning: claim 6", "the epoch of the lost claim is not reused");
    assert_ne!(run.claim().token(), token);
}

/// The record was written again with the same token: the version of the claim's fence is not current.
#[test]
fn our_token_at_another_version_is_not_our_claim() {
    let run = writing(4);
    let token = run.claim().token();
    let run = run.answer(Reply::Claimed(Outcome::Unknown)).epoch(6, Some(token));
    assert_eq!(run.seen(), "campaigning");
}

#[test]
fn every_rejection_of_a_claim_leads_to_its_next_step() {
    let other = || Reason::Other("x".into());
    let table = [
        (0, Reason::NoNode, "leaving: tell, look"),
        (0, Reason::BadVersion, "leaving: tell, look"),
        (1, Reason::BadVersion, "campaigning: look"),
        (1, Reason::NoNode, "campaigning: look"),
        (1, Reason::NodeExists, "campaigning: look"),
        (2, Reason::BadVersion, "campaigning: look"),
        (2, Reason::NoNode, "campaigning: look"),
        (0, Reason::NotSent, "campaigning: refused (not sent: the session is not connected)"),
        (0, Reason::NoAuth, "campaigning: refused (not authorised)"),
        (1, other(), "campaigning: refused (ZooKeeper refused it: x)"),
    ];
    for (at, reason, expected) in table {
        let run = writing(4).answer(Reply::Claimed(rejected(at, reason.clone())));
        assert_eq!(run.seen(), expected, "{at} {reason}");
    }
}

#[test]
fn a_changed_epoch_is_claimed_again_only_while_still_first() {
    let run = writing(4).answer(Reply::Claimed(rejected(1, Reason::BadVersion)));
    let first = run.looked(Some(1), Some(2));
    assert_eq!(first.seen(), "campaigning: watch, read");
    assert_eq!(first.epoch(5, None).seen(), "campaigning: claim 6");
    let run = writing(4).answer(Reply::Claimed(rejected(1, Reason::BadVersion)));
    assert_eq!(run.looked(Some(2), Some(1)).seen(), "standby: tell, watch, watch beats, read");
}

#[test]
fn an_unreadable_epoch_is_read_again() {
    let table = [
        (Outcome::Unknown, "campaigning"),
        (rejected(0, Reason::NoAuth), "campaigning: refused (not authorised)"),
    ];
    for (outcome, expected) in table {
        assert_eq!(claiming().answer(Reply::Read(outcome)).seen(), expected);
    }
    let (sighting, error) = Sighting::new(3, b"garbage");
    assert_eq!((sighting, error.is_some()), (Sighting { version: 3, token: None }, true));
    assert_eq!(Sighting::new(3, b"").1, None);
}

#[test]
fn a_deleted_epoch_is_created_again_above_every_epoch_seen() {
    let run = Driver::new().active();
    let run = run.at(BEAT).on(Event::Tick).answer(Reply::Beaten(rejected(0, Reason::NoNode)));
    assert_eq!(run.seen(), "leaving: tell, lost 1 (epoch-moved), look");
    let run = run.looked(None, None).ran(2, None).read(None);
    assert_eq!(run.seen(), "campaigning: claim 2");
}

#[test]
fn a_claim_below_a_used_epoch_does_not_make_a_leader() {
    let mut run = claiming();
    run.machine.highest = 600;
    let run = run.read(None);
    assert_eq!(run.seen(), "campaigning: claim 495");
    let run = run.answer(Reply::Claimed(Outcome::Applied(())));
    assert_eq!(run.seen(), "campaigning: read");
    let run = run.epoch(495, None);
    assert_eq!(run.seen(), "campaigning: claim 601");
    assert_eq!(run.answer(Reply::Claimed(Outcome::Applied(()))).seen(), "active 601: tell");
}

#[test]
fn used_up_epochs_are_reported_and_do_not_wrap() {
    assert_eq!(writing(i32::MAX).seen(), "campaigning: epochs used up");
}

#[test]
fn a_deleted_candidate_ends_the_claim() {
    let run = writing(4);
    let (claim, _) = run.asked.clone().unwrap();
    let run = run.on(connected(SESSION)).looked(None, None);
    assert_eq!(run.seen(), "campaigning: create candidate");
    let run = run.on(Event::Reply(claim, Reply::Claimed(Outcome::Applied(()))));
    assert_eq!(run.seen(), "campaigning", "the applied claim is no longer used");
}

#[test]
fn the_deletion_of_its_own_candidate_ends_a_term() {
    let run = claiming();
    let is_watch = |request: &Request| matches!(request, Request::Campaign(campaign::Request::Watch { .. }));
    let watch = run.effects.iter().find_map(|effect| {
        if let Effect::Send(ticket, request) = effect { is_watch(request).then_some(*ticket) } else { None }
    });
    let run = run.epoch(0, None).answer(Reply::Claimed(Outcome::Applied(())));
    let run = run.on(Event::Reply(watch.unwrap(), Reply::Campaign(campaign::Reply::Changed)));
    assert_eq!(run.seen(), "active 1: look");
    assert_eq!(
        run.looked(None, Some(2)).seen(),
        "campaigning: tell, lost 1 (candidate-gone), create candidate"
    );
}

/// In the strategy `single` another node may have replaced `/leader` since the look.
#[test]
fn a_candidate_of_another_session_does_not_claim() {
    for owner in [None, Some(0), Some(8)] {
        let found = Findings { owner, epoch: Some(Sighting { version: 4, token: None }), beat: beat_of(1) };
        let run = claiming().answer(Reply::Read(Outcome::Applied(found)));
        assert_eq!(run.seen(), "campaigning", "{owner:?}");
    }
}
