//! The public election API on a real server.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::time::{Duration, Instant};

use bellwether::election::{
    CommitError, Election, Inactive, LeadershipState, Lifetime, Op, Policy, StartError, Strategy,
};
use bellwether_core::outcome::{Reason, Rejection};
use bellwether_testkit::{Cut, Proxy, eventually, namespace};

#[allow(dead_code, reason = "the test calls run, not main")]
#[path = "../examples/leader_only.rs"]
mod leader_only;

const TIMEOUT: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(20);

async fn node(to: &str, name: &str) -> Election {
    Election::builder(to).node(name).session_timeout(TIMEOUT).start().await.unwrap()
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
async fn with_at_least_one_a_disconnected_leader_acts_until_it_is_inactive() {
    let proxy = Proxy::to(&namespace("at-least-one"));
    let builder = Election::builder(proxy.connect_string()).node("a").session_timeout(TIMEOUT);
    let a = builder.policy(Policy::AtLeastOne).strategy(Strategy::Single).start().await.unwrap();
    let mut watch = a.watch();
    let epoch = watch.active().await;
    proxy.refuse();
    proxy.cut(Cut::Reset);
    assert_eq!(told(&watch.changed().await), ("paused", Some(epoch)));
    assert!(a.is_leader());
    assert_eq!(told(&watch.changed().await), ("inactive", None));
    assert!(!a.is_leader());
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

/// The only thread of the leader's runtime is blocked, as by a handler that does not yield. The client library has its own
/// thread, so the session lives.
async fn replaces_a_hung_leader(strategy: Strategy) {
    let to = namespace("hung");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let start = |name: &str| Election::builder(&to).node(name).strategy(strategy).start();
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
async fn an_election_that_cannot_start_returns_the_reason() {
    let refused = Election::builder("nowhere:0").start().await.unwrap_err();
    assert!(matches!(refused, StartError::ConnectString(_)), "{refused}");
    let refused = Election::builder("localhost").node("a/b").start().await.unwrap_err();
    assert!(matches!(refused, StartError::Node(_)), "{refused}");
    let unreachable = Election::builder("127.0.0.1:1").within(Duration::from_millis(500));
    let refused = unreachable.session_timeout(TIMEOUT).start().await.unwrap_err();
    assert!(refused.to_string().contains("127.0.0.1:1"), "{refused}");
}
