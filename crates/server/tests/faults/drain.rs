//! SIGTERM: no job is lost, and no takeover waits for a timeout.

use std::time::{Duration, Instant};

use bellwether::State;
use bellwether_testkit::eventually;
use nix::sys::signal::Signal;

use crate::process::NodeProcess;
use crate::stage::{SOON, Stage};

/// The limit for L1 and L2 after a graceful stop.
const AT_ONCE: Duration = Duration::from_secs(1);
/// A session timeout that is much longer than [`AT_ONCE`], so a takeover within that limit did not wait for an expiry.
const LASTING: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_stopped_worker_finishes_its_runs_and_others_take_the_rest() {
    let stage = Stage::set("drain").await;
    let _leader = stage.node("leader").candidate().start();
    let mut stopped = stage.node("stopped").worker().slots(5).session(LASTING).start();
    stage.workers(1).await;
    stage.runs.hold();
    let ids = stage.submit((0..30).map(|n| stage.runs.held(&format!("job-{n}")))).await;
    stage.begun(5).await;
    let _spare = stage.node("spare").worker().slots(5).start();
    stage.begun(10).await;

    stopped.signal(Signal::SIGTERM);
    eventually("the worker is draining", SOON, async || {
        let workers = stage.client.workers().await.unwrap();
        workers.iter().any(|worker| worker.info.as_ref().is_ok_and(|info| info.draining))
    })
    .await;
    assert!(!stopped.has_ended(), "the node waits for its jobs");
    stage.runs.release();
    assert_eq!(stopped.ended(SOON).await.code(), Some(0));
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded), "{jobs:?}");
    let counts = stage.runs.explain(&jobs);
    assert_eq!((counts.succeeded, counts.lost, counts.failed), (30, 0, 0), "{counts:?}");
    assert_eq!(counts.runs, 30, "running jobs were not interrupted: {counts:?}");
    stage.settled(1).await;
}

#[tokio::test]
async fn a_worker_stopped_with_a_short_grace_period_hands_its_jobs_back_immediately() {
    let stage = Stage::set("hand-back").await;
    let _leader = stage.node("leader").candidate().start();
    let grace = Duration::from_millis(100);
    let mut stopped = stage.node("stopped").worker().slots(5).session(LASTING).grace(grace).start();
    stage.workers(1).await;
    stage.runs.hold();
    let ids = stage.submit((0..5).map(|n| stage.runs.held(&format!("job-{n}")))).await;
    stage.begun(5).await;
    let _spare = stage.node("spare").worker().slots(5).start();
    stage.workers(2).await;

    stopped.signal(Signal::SIGTERM);
    assert_eq!(stopped.ended(SOON).await.code(), Some(0));
    let ended = Instant::now();
    stage.begun(10).await;
    assert!(ended.elapsed() < AT_ONCE, "{:?}", ended.elapsed());
    stage.runs.release();
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 2), "{jobs:?}");
    let counts = stage.runs.explain(&jobs);
    assert_eq!((counts.released, counts.lost, counts.failed), (5, 0, 0), "{counts:?}");
    stage.settled(1).await;
}

#[tokio::test]
async fn a_stopped_leader_is_replaced_immediately() {
    let stage = Stage::set("stop-leader").await;
    let mut first = stage.node("first").candidate().session(LASTING).start();
    let epoch = stage.led_by(&first).await.epoch;
    let second = stage.node("second").start();
    stage.workers(1).await;
    eventually("both nodes are candidates", SOON, async || {
        stage.zk.children(bellwether_core::path::ELECTION.into()).await.unwrap().unwrap().len() == 2
    })
    .await;

    first.signal(Signal::SIGTERM);
    let asked = Instant::now();
    let ids = stage.submit((0..20).map(|n| stage.runs.job(&format!("job-{n}")))).await;
    assert!(stage.led_by(&second).await.epoch > epoch);
    assert!(asked.elapsed() < AT_ONCE, "{:?}", asked.elapsed());
    assert_eq!(first.ended(SOON).await.code(), Some(0));
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 1), "{jobs:?}");
    stage.runs.explain(&jobs);
}

/// An open session would keep the node's ephemerals, and the takeover would wait for its expiry.
#[tokio::test]
async fn a_stopped_node_closes_its_session_immediately() {
    let stage = Stage::set("stop-session").await;
    let launches = [stage.node("candidate").candidate(), stage.node("worker").worker(), stage.node("both")];
    for launch in launches {
        let mut node = launch.session(LASTING).start();
        let ready = |node: &NodeProcess| {
            node.said().contains("the node became leader") || node.said().contains("the worker registered")
        };
        eventually("the node is active", SOON, async || ready(&node)).await;
        node.signal(Signal::SIGTERM);
        let asked = Instant::now();
        assert_eq!(node.ended(SOON).await.code(), Some(0));
        assert!(asked.elapsed() < AT_ONCE, "{} after {:?}", node.name(), asked.elapsed());
        assert!(!node.said().contains("did not confirm"), "{}", node.name());
    }
}
