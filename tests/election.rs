//! The public election API on a real server.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::time::{Duration, Instant};

use bellwether::election::{
    Candidate, Candidates, CandidatesError, CommitError, Election, Inactive, LeadershipState, Lifetime, Op,
    Policy, StartError, Strategy,
};
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_testkit::{Cut, Proxy, eventually, namespace, shared};

#[allow(dead_code, reason = "the test calls run, not main")]
#[path = "../examples/leader_only.rs"]
mod leader_only;

const TIMEOUT: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(20);

async fn node(to: &str, name: &str) -> Election {
    Election::builder(to).node_id(name).session_timeout(TIMEOUT).start().await.unwrap()
}

fn create(path: &str) -> Op {
    Op::Create { path: path.to_owned(), data: Vec::new(), lifetime: Lifetime::Persistent }
}

/// Returns the name of the state and its epoch.
fn told(state: &LeadershipState) -> (&'static str, Option<i32>) {
    (state.as_str(), state.term().map(|term| term.epoch()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_prints_the_expected_output() {
    let story = leader_only::run(&namespace("leader-only")).await.unwrap();
    assert_eq!(story, leader_only::EXPECTED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_reports_each_state_and_the_epoch_survives_a_pause() {
    let proxy = Proxy::to(&namespace("watch"));
    let a = node(&proxy.connect_string(), "a").await;
    let mut watch = a.watch();
    let epoch = watch.active().await;
    assert_eq!(told(&a.leadership()), ("active", Some(epoch)));
    proxy.refuse();
    proxy.cut(Cut::Fin);
    assert_eq!(told(&watch.changed().await), ("paused", Some(epoch)));
    assert!(!a.is_leader() && a.fence().is_none());
    assert_eq!(a.commit(epoch, vec![create("/x")]).await, Err(CommitError::NotLeader(epoch)));
    proxy.accept();
    assert_eq!(told(&watch.changed().await), ("active", Some(epoch)));
    assert_eq!(a.commit(epoch, vec![create("/x")]).await, Ok(()));
    proxy.refuse();
    proxy.expire_session().await;
    // Paused may be skipped: of changes in quick succession only the last is seen.
    eventually("inactive", SOON, async || told(&watch.changed().await) == ("inactive", None)).await;
    proxy.heal();
    assert!(watch.active().await > epoch);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_at_least_one_a_leader_acts_while_it_is_cut_off_and_claims_again_without_a_gap() {
    let proxy = Proxy::to(&namespace("at-least-one"));
    let builder = Election::builder(proxy.connect_string()).node_id("a").session_timeout(TIMEOUT);
    let policy = Policy::AtLeastOne { paused_at_most: None };
    let a = builder.policy(policy).election(Strategy::Single).start().await.unwrap();
    let mut watch = a.watch();
    let epoch = watch.active().await;
    proxy.refuse();
    proxy.expire_session().await;
    assert_eq!(told(&watch.changed().await), ("paused", Some(epoch)));
    assert!(a.is_leader());
    proxy.heal();
    // The next state is the new term: the node is never inactive.
    let next = watch.changed().await;
    assert_eq!(next.as_str(), "active");
    assert!(next.term().unwrap().epoch() > epoch);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_at_least_one_a_cut_off_leader_acts_until_it_sees_its_successor() {
    let to = namespace("at-least-one-replaced");
    let proxy = Proxy::to(&to);
    let builder = Election::builder(proxy.connect_string()).node_id("a").session_timeout(TIMEOUT);
    let a = builder.policy(Policy::AtLeastOne { paused_at_most: None }).start().await.unwrap();
    let mut watch = a.watch();
    let epoch = watch.active().await;
    let b = node(&to, "b").await;
    proxy.refuse();
    proxy.cut(Cut::Reset);
    assert_eq!(told(&watch.changed().await), ("paused", Some(epoch)));
    assert!(b.watch().active().await > epoch);
    assert!(a.is_leader(), "it cannot know of the successor");
    proxy.accept();
    assert_eq!(told(&watch.changed().await), ("inactive", None));
    assert!(!a.is_leader());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_at_least_one_a_pause_lasts_as_long_as_the_policy_permits() {
    let proxy = Proxy::to(&namespace("at-least-one-limit"));
    let builder = Election::builder(proxy.connect_string()).node_id("a").session_timeout(TIMEOUT);
    let policy = Policy::AtLeastOne { paused_at_most: Some(Duration::from_secs(1)) };
    let a = builder.policy(policy).election(Strategy::Single).start().await.unwrap();
    let mut watch = a.watch();
    let epoch = watch.active().await;
    proxy.refuse();
    proxy.cut(Cut::Reset);
    assert_eq!(told(&watch.changed().await), ("paused", Some(epoch)));
    assert!(a.is_leader());
    assert_eq!(told(&watch.changed().await), ("inactive", None));
    assert!(!a.is_leader());
}

/// The names of the candidates, and the one that leads.
fn members(candidates: &Candidates) -> (Vec<&str>, Option<&str>) {
    fn of(candidate: &Candidate) -> &str {
        candidate.node.as_ref().map_or("?", |node| node.as_str())
    }
    (candidates.list.iter().map(of).collect(), candidates.list.iter().find(|it| it.leads).map(of))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_candidates_are_listed_in_their_order_and_foreign_znodes_are_counted() {
    let to = namespace("candidates");
    let a = node(&to, "a").await;
    a.watch().active().await;
    let b = node(&to, "b").await;
    let mut changes = b.watch_candidates();
    let both = async || members(&changes.changed().await.unwrap()) == (vec!["a", "b"], Some("a"));
    eventually("both nodes are candidates, and a leads", SOON, both).await;

    let zk = bellwether_zk::connect(&to.parse().unwrap(), SOON).await.unwrap();
    let fake = format!("/election/{}-n-0000000000", uuid::Uuid::nil());
    let hostile = |path: &str| Op::Create {
        path: path.to_owned(),
        data: vec![0xff; 200],
        lifetime: Lifetime::Persistent,
    };
    let epoch = a.watch().active().await;
    a.step_down().await;
    assert!(b.watch().active().await > epoch);
    zk.commit(vec![hostile("/election/foreign"), hostile(&fake)]).await;
    let found = b.candidates().await.unwrap();
    assert_eq!((members(&found), found.unreadable), ((vec!["?", "b"], Some("b")), 1));
    assert_eq!(found.list[0].session, 0);
    assert!(found.list[1].since.elapsed().unwrap() < Duration::from_secs(60), "{found:?}");
    a.close().await;
    b.clone().close().await;
    assert_eq!(b.candidates().await, Err(CandidatesError::Disconnected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_of_the_candidates_reports_changes_made_while_it_was_disconnected() {
    let to = namespace("candidates-watch");
    let proxy = Proxy::to(&to);
    let a = node(&proxy.connect_string(), "a").await;
    a.watch().active().await;
    let mut changes = a.watch_candidates();
    let alone = async || members(&changes.changed().await.unwrap()) == (vec!["a"], Some("a"));
    eventually("a leads", SOON, alone).await;
    proxy.refuse();
    proxy.cut(Cut::Fin);
    let b = node(&to, "b").await;
    proxy.accept();
    let names = async || members(&changes.changed().await.unwrap()).0 == ["a", "b"];
    eventually("b is a candidate", SOON, names).await;
    b.close().await;
    let names = async || members(&changes.changed().await.unwrap()).0 == ["a"];
    eventually("b has left", SOON, names).await;
    a.close().await;
    assert_eq!(changes.changed().await, Err(CandidatesError::Closed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_of_the_candidates_reports_no_list_twice() {
    let to = namespace("candidates-twice");
    let a = node(&to, "a").await;
    a.watch().active().await;
    let mut changes = a.watch_candidates();
    let alone = async || members(&changes.changed().await.unwrap()) == (vec!["a"], Some("a"));
    eventually("a leads", SOON, alone).await;
    let other = bellwether_zk::connect(&to.parse().unwrap(), SOON).await.unwrap();
    let foreign = "/election/foreign".to_owned();
    other.commit(vec![create(&foreign)]).await;
    assert_eq!(changes.changed().await.unwrap().unreadable, 1);
    for version in 0..3 {
        let set = Op::Set { path: foreign.clone(), data: Vec::new(), version };
        assert_eq!(other.commit(vec![set]).await, Outcome::Applied(()));
    }
    let _b = node(&to, "b").await;
    assert_eq!(members(&changes.changed().await.unwrap()).0, ["a", "b"]);
}

/// Checked on the server's list of watches.
#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_candidates_is_watched_on_request_only() {
    let to = namespace("candidates-request");
    let a = node(&to, "a").await;
    a.watch().active().await;
    let b = node(&to, "b").await;
    let standby = LeadershipState::Inactive(Inactive::Standby);
    eventually("b waits behind a", SOON, async || b.leadership() == standby).await;
    let list = format!("{}/election", &to[to.find('/').unwrap()..]);
    let is_watched = || shared().four_letter_word("wchp").unwrap().lines().any(|line| line == list);
    assert!(!is_watched());
    let mut changes = b.watch_candidates();
    changes.changed().await.unwrap();
    assert!(is_watched());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_one_znode_only_its_owner_is_a_known_candidate() {
    let to = namespace("candidates-single");
    let single = |name: &str| {
        let builder = Election::builder(&to).node_id(name).session_timeout(TIMEOUT);
        builder.election(Strategy::Single).start()
    };
    let a = single("a").await.unwrap();
    a.watch().active().await;
    let b = single("b").await.unwrap();
    assert_eq!(members(&b.candidates().await.unwrap()), (vec!["a"], Some("a")));
    let mut changes = b.watch_candidates();
    assert_eq!(members(&changes.changed().await.unwrap()), (vec!["a"], Some("a")));
    a.close().await;
    let replaced = async || members(&changes.changed().await.unwrap()) == (vec!["b"], Some("b"));
    eventually("b leads", SOON, replaced).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_distinguishes_a_rejected_fence_from_a_rejected_operation() {
    let to = namespace("commit");
    let a = node(&to, "a").await;
    let epoch = a.watch().active().await;
    let fence = a.fence().unwrap();
    let chroot = &to[to.find('/').unwrap()..];
    assert_eq!((fence.path, fence.version), (format!("{chroot}/epoch"), epoch));
    assert_eq!(a.commit(epoch, vec![create("/x")]).await, Ok(()));
    let later = a.commit(epoch + 1, vec![create("/never")]).await;
    assert_eq!(later, Err(CommitError::NotLeader(epoch + 1)), "it leads under another epoch");
    let exists = Rejection { at: 1, reason: Reason::NodeExists };
    let twice = a.commit(epoch, vec![create("/y"), create("/x")]).await;
    assert_eq!(twice, Err(CommitError::Rejected(exists)));

    let raise = Op::Set { path: "/epoch".to_owned(), data: Vec::new(), version: epoch };
    let other = bellwether_zk::connect(&to.parse().unwrap(), SOON).await.unwrap();
    other.commit(vec![raise]).await;
    let stale = a.commit(epoch, vec![create("/z")]).await;
    assert_eq!(stale, Err(CommitError::FencedOut(epoch)));
    assert_eq!(other.get("/z".to_owned()).await, Ok(None));
    eventually("a later epoch", SOON, async || a.watch().active().await > epoch).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_hands_over_within_a_second() {
    let to = namespace("close");
    let a = node(&to, "a").await;
    let epoch = a.watch().active().await;
    let b = node(&to, "b").await;
    let (keeps_nothing_alive, start) = (a.watch(), Instant::now());
    a.close().await;
    assert_eq!(b.watch().active().await, epoch + 1);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    drop(keeps_nothing_alive);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_election_that_is_dropped_hands_over() {
    let to = namespace("drop");
    let a = node(&to, "a").await;
    let epoch = a.watch().active().await;
    let b = node(&to, "b").await;
    drop(a);
    let next = tokio::time::timeout(SOON, async { b.watch().active().await });
    assert_eq!(next.await, Ok(epoch + 1));
}

/// The only thread of the leader's runtime is blocked, as by a handler that does not yield. The client library has its own
/// thread, so the session lives.
async fn replaces_a_hung_leader(strategy: Strategy) {
    let to = namespace("hung");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let start = |name: &str| Election::builder(&to).node_id(name).election(strategy).start();
    let a = runtime.spawn(start("a")).await.unwrap().unwrap();
    let epoch = a.watch().active().await;
    let b = start("b").await.unwrap();
    let zk = bellwether_zk::connect(&to.parse().unwrap(), SOON).await.unwrap();
    let version = async |path: &str| zk.get(path.to_owned()).await.unwrap().unwrap().version;
    let seen = version("/leading").await;
    eventually("two more beats", SOON, async || version("/leading").await >= seen + 2).await;

    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let hung = Instant::now();
    runtime.spawn(async move { blocked.recv() });
    eventually("b leads", SOON, async || {
        assert!(!(a.is_leader() && b.is_leader()), "both lead");
        b.is_leader()
    })
    .await;
    eprintln!("{strategy:?}: replaced {:?} after the leader's runtime hung", hung.elapsed());
    assert!(hung.elapsed() < Duration::from_secs(6), "{:?}", hung.elapsed());
    assert!(b.watch().active().await > epoch);
    assert!(!a.is_leader());
    drop(release);
    let standby = LeadershipState::Inactive(Inactive::Standby);
    eventually("a waits behind b", SOON, async || a.leadership() == standby).await;
    assert!(b.is_leader());
    drop(a);
    runtime.shutdown_background();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_runtime_hangs_is_replaced_while_its_session_lives() {
    replaces_a_hung_leader(Strategy::Queue).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_one_znode_a_leader_whose_runtime_hangs_is_replaced_while_its_session_lives() {
    replaces_a_hung_leader(Strategy::Single).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_election_with_another_strategy_than_the_namespace_is_refused() {
    let to = namespace("strategies");
    let single =
        || Election::builder(&to).node_id("b").election(Strategy::Single).session_timeout(TIMEOUT).start();
    let a = node(&to, "a").await;
    a.watch().active().await;
    let refused = single().await.unwrap_err();
    assert!(refused.to_string().contains("use the election strategy queue, not single"), "{refused}");
    a.close().await;
    let refused = single().await.unwrap_err();
    assert!(matches!(refused, StartError::Namespace(_)), "the strategy outlives its candidates: {refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_election_that_cannot_start_returns_the_reason() {
    let refused = Election::builder("nowhere:0").start().await.unwrap_err();
    assert!(matches!(refused, StartError::Connection(_)), "{refused}");
    let refused = Election::builder("localhost").node_id("a/b").start().await.unwrap_err();
    assert!(matches!(refused, StartError::Node(_)), "{refused}");
    let unreachable = Election::builder("127.0.0.1:1").deadline(Duration::from_millis(500));
    let refused = unreachable.session_timeout(TIMEOUT).start().await.unwrap_err();
    assert!(refused.to_string().contains("127.0.0.1:1"), "{refused}");
}
