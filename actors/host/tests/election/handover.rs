//! The handover from one leader to the next.

use std::time::{Duration, Instant};

use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::machine::election::leadership::Inactive;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::txn::{Lifetime, Op};
use bellwether_host::election::Election;
use bellwether_testkit::{eventually_some, shared};

use crate::stage::*;

async fn an_expired_leader_is_replaced(strategy: Strategy) {
    let (namespace, witness) = stage("expired").await;
    let a = Node::start(&namespace, "a", strategy).await;
    let (_, old) = a.leads().await;
    let b = Node::start(&namespace, "b", strategy).await;
    b.is(Inactive::Standby).await;
    a.proxy.refuse();
    a.proxy.expire_session().await;
    let (_, new) = b.leads().await;
    assert!(new.epoch() > old.epoch() && new.session() != old.session());
    assert_eq!(epoch(&witness).await, new.epoch());
    assert!(b.election.may_act() && !a.election.may_act());
    a.proxy.heal();
    a.is(Inactive::Standby).await;
    assert!(b.election.may_act());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_leader_is_replaced_by_the_next_in_the_queue() {
    an_expired_leader_is_replaced(Strategy::Queue).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_leader_is_replaced_by_the_fastest_candidate() {
    an_expired_leader_is_replaced(Strategy::Single).await;
}

/// The trust of such a session is shorter than the time between two beats. If the leader's permission lapsed at its end, the
/// leader would read everything again each time.
#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_extend_the_permission_of_a_leader_before_it_lapses() {
    let (namespace, _witness) = stage("short-timeout").await;
    let proxy = bellwether_testkit::Proxy::to(&namespace);
    let a = Node::with_timeout(proxy, "a", Strategy::Queue, Duration::from_millis(1_500)).await;
    let (_, term) = a.leads().await;
    let mut leadership = a.election.leadership();
    let observed = Instant::now() + Duration::from_secs(5);
    let mut reports = 0;
    while let Ok(changed) = tokio::time::timeout_at(observed.into(), leadership.changed()).await {
        changed.unwrap();
        println!("{}", leadership.borrow_and_update().as_str());
        reports += 1;
    }
    // A busy machine may delay some heartbeats.
    assert!(reports <= 2, "the permission lapsed {reports} times in five beats");
    assert_eq!(a.leads().await.1, term);
}

async fn stepping_down_hands_over_within_a_second(strategy: Strategy) {
    let (namespace, _witness) = stage("step-down").await;
    let a = Node::start(&namespace, "a", strategy).await;
    let (_, old) = a.leads().await;
    let b = Node::start(&namespace, "b", strategy).await;
    b.is(Inactive::Standby).await;
    let start = Instant::now();
    a.election.step_down().await;
    assert!(!a.election.may_act());
    let (_, new) = b.leads().await;
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(new.epoch(), old.epoch() + 1);
    a.is(Inactive::Idle).await;
    a.election.stand();
    a.is(Inactive::Standby).await;
    b.election.step_down().await;
    assert_eq!(a.leads().await.1.epoch(), new.epoch() + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn stepping_down_hands_over_within_a_second_in_the_queue() {
    stepping_down_hands_over_within_a_second(Strategy::Queue).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stepping_down_hands_over_within_a_second_with_one_znode() {
    stepping_down_hands_over_within_a_second(Strategy::Single).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_leaders_write_is_rejected_even_under_a_new_session() {
    let (namespace, witness) = stage("stale").await;
    let a = Node::start(&namespace, "a", Strategy::Queue).await;
    let (_, stale) = a.leads().await;
    let b = Node::start(&namespace, "b", Strategy::Queue).await;
    a.election.step_down().await;
    let (zk, term) = b.leads().await;
    let create =
        |path: &str| Op::Create { path: path.to_owned(), data: Vec::new(), lifetime: Lifetime::Persistent };
    let rejected = Outcome::Rejected(Rejection { at: 0, reason: Reason::BadVersion });
    assert_eq!(witness.commit(vec![stale.fence(), create("/stale")]).await, rejected);
    assert_eq!(witness.get("/stale".to_owned()).await, Ok(None));
    assert_eq!(zk.commit(vec![term.fence(), create("/fresh")]).await, Outcome::Applied(()));
}

/// Checked on the server's list of watches: the next three candidates watch each candidate, and none watches their parent.
#[tokio::test(flavor = "multi_thread")]
async fn each_candidate_watches_the_three_before_it() {
    let (namespace, witness) = stage("herd").await;
    let mut nodes = vec![Node::start(&namespace, "n0", Strategy::Queue).await];
    nodes[0].leads().await;
    for n in 1..6 {
        let node = Node::start(&namespace, &format!("n{n}"), Strategy::Queue).await;
        node.is(Inactive::Standby).await;
        nodes.push(node);
    }
    let chroot = &namespace[namespace.find('/').unwrap()..];
    // The first candidate also watches itself. A candidate that reconnects has no watch for a moment.
    let watchers = eventually_some("each candidate is watched by the next three", SOON, async || {
        let mut names = candidates(&witness).await;
        names.sort_by_key(|name| name.rsplit("-n-").next().unwrap().to_owned());
        let watchers = watchers(chroot);
        let of = |name: &String| {
            let candidate = path::candidate(name);
            watchers.iter().find(|(path, _)| *path == candidate).map_or(0, |(_, n)| *n)
        };
        names.iter().map(of).eq([4, 3, 3, 2, 1, 0]).then_some(watchers)
    })
    .await;
    let mut others = watchers.iter().filter(|(path, _)| !path.starts_with("/election/"));
    assert!(
        others.all(|(path, _)| path == path::LEADING),
        "more than the candidates is watched: {watchers:?}"
    );
    let leader = nodes.remove(0);
    leader.election.step_down().await;
    assert_eq!(nodes[0].leads().await.1.epoch(), 2);
}

/// The watched znodes below a path, each with the number of sessions that watch it.
fn watchers(below: &str) -> Vec<(String, usize)> {
    let listing = shared().four_letter_word("wchp").unwrap();
    let mut watchers: Vec<(String, usize)> = Vec::new();
    for line in listing.lines() {
        if line.starts_with('/') {
            watchers.push((line.to_owned(), 0));
        } else if let Some((_, sessions)) = watchers.last_mut().filter(|_| line.contains("0x")) {
            *sessions += 1;
        }
    }
    let ours = watchers.into_iter().filter_map(|(path, n)| Some((path.strip_prefix(below)?.to_owned(), n)));
    ours.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_actor_continues_with_the_candidate_of_its_predecessor() {
    let (namespace, witness) = stage("restart").await;
    let mut node = Node::start(&namespace, "a", Strategy::Queue).await;
    let (_, old) = node.leads().await;
    let next = Node::start(&namespace, "b", Strategy::Queue).await;
    next.is(Inactive::Standby).await;
    node.election.cell().kill_and_wait(None).await.unwrap();
    assert!(!node.election.may_act(), "the permission ends with the actor");
    node.election = Election::start(node.config.clone(), &node.session, None).await.unwrap();
    let (_, new) = node.leads().await;
    assert_eq!((new.epoch(), new.candidate()), (old.epoch() + 1, old.candidate()));
    assert_eq!(candidates(&witness).await.len(), 2);
}
