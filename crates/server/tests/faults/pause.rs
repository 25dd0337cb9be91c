//! A disconnected leader pauses. It resumes its term if it reconnects in time; otherwise its term ends.

use std::time::Duration;

use bellwether::State;
use bellwether::metrics as metric;
use bellwether_testkit::{Cut, Direction, Proxy, eventually};

use crate::stage::{SOON, Stage};

/// The session timeout of a leader that reconnects: its session must not expire during the pause.
const LASTING: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_leader_that_reconnects_in_time_resumes_its_term() {
    let stage = Stage::set("paused").await;
    let proxy = Proxy::to(&stage.to);
    let leader = stage.node("leader").candidate().behind(&proxy).session(LASTING).start();
    let epoch = stage.led_by(&leader).await.epoch;
    let _standby = stage.node("standby").start();
    stage.workers(1).await;
    let before = stage.submit((0..50).map(|n| stage.runs.job(&format!("before-{n}")))).await;

    proxy.refuse();
    proxy.cut(Cut::Reset);
    eventually("the leader is paused", SOON, async || leader.metric(metric::LEADERSHIP_STATE) == Some(1.0))
        .await;
    let during = stage.submit((0..50).map(|n| stage.runs.job(&format!("during-{n}")))).await;
    proxy.accept();
    eventually("the leader is active", SOON, async || leader.metric(metric::LEADERSHIP_STATE) == Some(2.0))
        .await;

    let jobs = stage.over(&[before, during].concat()).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 1), "{jobs:?}");
    stage.runs.explain(&jobs);
    let now = stage.leader().await;
    assert_eq!((now.node.as_str(), now.epoch), ("leader", epoch), "the same term");
    let log = leader.said();
    assert_eq!(log.matches("the node resumed its leadership term").count(), 1, "{log}");
    assert_eq!(
        log.matches("the node ended its leadership term").count(),
        0,
        "the leader wing was not stopped: {log}"
    );
    assert_eq!(leader.metric(metric::ACTOR_RESTARTS), Some(0.0));
}

#[tokio::test]
async fn a_leader_that_is_disconnected_for_too_long_stops_before_another_leads() {
    let stage = Stage::set("black-hole").await;
    let proxy = Proxy::to(&stage.to);
    let first = stage.node("first").candidate().behind(&proxy).start();
    let epoch = stage.led_by(&first).await.epoch;
    let second = stage.node("second").start();
    stage.workers(1).await;
    assert_eq!(first.metric(metric::LEADERSHIP_STATE), Some(2.0));

    proxy.black_hole(Direction::Both);
    let ids = stage.submit((0..50).map(|n| stage.runs.job(&format!("job-{n}")))).await;
    assert!(stage.led_by(&second).await.epoch > epoch);
    // S5: this is read after the second node became the leader. A term never restarts, so the first node was inactive
    // when the second one started.
    assert_eq!(first.metric(metric::LEADERSHIP_STATE), Some(0.0), "{}", first.said());
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 1), "{jobs:?}");
    stage.runs.explain(&jobs);

    proxy.heal();
    eventually("the first node is a candidate again", SOON, async || {
        stage.zk.children(bellwether_core::path::ELECTION.into()).await.unwrap().unwrap().len() == 2
    })
    .await;
    assert_eq!(stage.leader().await.node.as_str(), "second", "the first node is behind the leader");
}
