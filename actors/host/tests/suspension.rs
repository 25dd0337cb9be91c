//! S5, S6: the machine is suspended for a minute. Its timers do not notice it; the clock does.
//!
//! The clock is that of the process, so this binary has one test.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[allow(dead_code, reason = "shared with the tests of elections")]
#[path = "election/stage.rs"]
mod election;
#[allow(dead_code, reason = "shared with the tests of workers")]
#[path = "worker/stage.rs"]
mod worker;

use std::time::Duration;

use bellwether_core::job::{AttemptOutcome, Policy};
use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_host::clock;
use bellwether_testkit::eventually;
use bellwether_zk::clock::testing::suspend;

use self::election::{Node, SOON, stage};
use self::worker::{Stage, policy};

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_machine_trusts_no_session_when_it_wakes() {
    let (namespace, _witness) = stage("suspended").await;
    let leader = Node::start(&namespace, "a", Strategy::Queue).await;
    let (zk, term) = leader.leads().await;
    let workers = Stage::set("suspended-worker").await;
    let id = workers.serving(None).await;
    let laned = workers.submit_laned("laned", "until-told").await;
    assert_eq!(workers.assign(&laned, id).await, Outcome::Applied(()));
    let plain = workers.given("plain", "until-told", policy(), id).await;
    let limited = Policy { timeout: Some(Duration::from_secs(50)), ..policy() };
    let limited = workers.given("limited", "until-told", limited, id).await;
    workers.started(3).await;
    assert!(leader.election.may_act());

    suspend(60_000);
    assert!(zk.trusted_until() < clock::now(), "the session may have expired");
    assert!(!leader.election.may_act());

    let closed = workers.closed(&laned).await;
    assert_eq!(closed.last.unwrap().how, AttemptOutcome::Released, "a run with a lane is stopped");
    let timed_out = workers.closed(&limited).await.last.unwrap();
    assert_eq!(timed_out.how, AttemptOutcome::Failed, "the timeout of a run counts the suspension");
    assert!(workers.exists(path::assignment(id, &plain)).await, "other runs continue");
    // The keeper runs in another process and was not suspended, so the session lives. An applied beat shows that no other
    // node has claimed, and resumes the term.
    eventually("the term is trusted again", SOON, async || leader.election.may_act()).await;
    assert!(leader.leads().await.1.epoch() >= term.epoch());
}
