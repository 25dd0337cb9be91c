//! Lost connections and lost replies.

use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::machine::election::leadership::Inactive;
use bellwether_testkit::{Cut, Direction, Proxy, Request, eventually, op};

use crate::stage::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnected_leader_pauses_and_resumes_the_same_term() {
    for (strategy, cut, name) in
        [(Strategy::Queue, Cut::Fin, "pause-queue"), (Strategy::Single, Cut::Reset, "pause-single")]
    {
        let (namespace, witness) = stage(name).await;
        let node = Node::start(&namespace, "a", strategy).await;
        let (_, term) = node.leads().await;
        node.proxy.refuse();
        node.proxy.cut(cut);
        assert_eq!(node.pauses().await, term);
        assert!(!node.election.may_act());
        node.proxy.accept();
        assert_eq!(node.leads().await.1, term, "the same term");
        assert!(node.election.may_act());
        assert_eq!(epoch(&witness).await, term.epoch());
        node.election.step_down().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_term_ends_before_the_next_starts_when_the_network_drops_all_packets() {
    let (namespace, _witness) = stage("black-hole").await;
    let a = Node::start(&namespace, "a", Strategy::Queue).await;
    let (_, old) = a.leads().await;
    let b = Node::start(&namespace, "b", Strategy::Queue).await;
    b.is(Inactive::Standby).await;
    a.proxy.black_hole(Direction::Both);
    eventually("one leader at a time, and finally the other node", SOON, async || {
        let (a, b) = (a.election.may_act(), b.election.may_act());
        assert!(!(a && b), "two nodes may act at the same time");
        b
    })
    .await;
    assert!(b.leads().await.1.epoch() > old.epoch());
    a.leads_no_more().await;
    a.proxy.heal();
    a.is(Inactive::Standby).await;
}

async fn a_lost_reply_to(request: fn(&Request<'_>) -> bool, strategy: Strategy, cut: Cut) {
    let (namespace, witness) = stage("lost-reply").await;
    let proxy = Proxy::to(&namespace);
    let fault = proxy.swallow_reply_and_cut(request, cut);
    let a = Node::behind(proxy, "a", strategy).await;
    fault.fired().await;
    let (_, term) = a.leads().await;
    assert_eq!(epoch(&witness).await, term.epoch());
    let b = Node::start(&namespace, "b", strategy).await;
    b.is(Inactive::Standby).await;
    let expected = match strategy {
        Strategy::Queue => 2,
        Strategy::Single => 0,
    };
    assert_eq!(candidates(&witness).await.len(), expected, "a candidate leaked");
    a.election.step_down().await;
    assert_eq!(candidates(&witness).await.len(), expected / 2, "a candidate of a is left");
    // The trust in the session of a may have lapsed before, while it was connected again. Then a has claimed a second term.
    b.leads_above(term.epoch()).await;
}

fn creates_candidate(request: &Request<'_>) -> bool {
    [op::CREATE, op::CREATE2].contains(&request.op) && request.mentions("/election/")
}

fn creates_leader(request: &Request<'_>) -> bool {
    request.op == op::MULTI && request.mentions("/leader") && !request.mentions("/epoch")
}

fn claims(request: &Request<'_>) -> bool {
    request.op == op::MULTI && request.mentions("/epoch") && request.mentions("BW")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_is_found_after_the_lost_reply_of_its_create() {
    for cut in [Cut::Fin, Cut::Reset] {
        a_lost_reply_to(creates_candidate, Strategy::Queue, cut).await;
        a_lost_reply_to(creates_leader, Strategy::Single, cut).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_is_found_after_its_create_timed_out() {
    a_lost_reply_to(creates_candidate, Strategy::Queue, Cut::Silence).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_with_a_lost_reply_is_resolved_by_reading_back() {
    for cut in [Cut::Fin, Cut::Reset] {
        a_lost_reply_to(claims, Strategy::Queue, cut).await;
        a_lost_reply_to(claims, Strategy::Single, cut).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stepping_down_while_disconnected_returns_after_the_candidate_is_deleted() {
    let (namespace, witness) = stage("leave-cut-off").await;
    let a = Node::start(&namespace, "a", Strategy::Queue).await;
    a.leads().await;
    a.proxy.refuse();
    a.proxy.cut(Cut::Fin);
    a.pauses().await;
    let leaving = a.election.step_down();
    tokio::pin!(leaving);
    assert!(futures::poll!(leaving.as_mut()).is_pending());
    a.is(Inactive::Leaving).await;
    assert!(futures::poll!(leaving.as_mut()).is_pending(), "the candidate still exists");
    a.proxy.accept();
    leaving.await;
    assert_eq!(candidates(&witness).await, Vec::<String>::new());
}
