//! SIGTERM: nothing is lost, nothing waits for a timeout.

use std::time::{Duration, Instant};

use bellwether::State;
use bellwether_testkit::eventually;
use nix::sys::signal::Signal;

use crate::process::NodeProcess;
use crate::stage::{SOON, Stage};

/// L1 and L2 after a graceful stop.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Whatever happens within [`AT_ONCE`] did not wait for the end of a session.
const LASTING: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_worker_that_is_stopped_finishes_what_runs_and_others_take_the_rest() {
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
    eventually("it takes nothing new", SOON, async || {
        let workers = stage.client.workers().await.unwrap();
        workers.iter().any(|worker| worker.info.as_ref().is_ok_and(|info| info.draining))
    })
    .await;
    assert!(!stopped.has_ended(), "its jobs run");
    stage.runs.release();
    assert_eq!(stopped.ended(SOON).await.code(), Some(0));
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded), "{jobs:?}");
    let tally = stage.runs.explain(&jobs);
    assert_eq!((tally.succeeded, tally.lost, tally.failed), (30, 0, 0), "{tally:?}");
    assert_eq!(tally.runs, 30, "what ran was let run: {tally:?}");
    stage.settled(1).await;
}

#[tokio::test]
async fn a_worker_that_is_stopped_without_time_hands_its_jobs_back_at_once() {
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
    let gone = Instant::now();
    stage.begun(10).await;
    assert!(gone.elapsed() < AT_ONCE, "{:?}", gone.elapsed());
    stage.runs.release();
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 2), "{jobs:?}");
    let tally = stage.runs.explain(&jobs);
    assert_eq!((tally.released, tally.lost, tally.failed), (5, 0, 0), "{tally:?}");
    stage.settled(1).await;
}

#[tokio::test]
async fn a_leader_that_is_stopped_is_replaced_at_once() {
    let stage = Stage::set("stop-leader").await;
    let mut first = stage.node("first").candidate().session(LASTING).start();
    let epoch = stage.led_by(&first).await.epoch;
    let second = stage.node("second").start();
    stage.workers(1).await;
    eventually("both stand", SOON, async || {
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

/// An open session would hold the node's ephemerals, and whoever stops the node would wait.
#[tokio::test]
async fn a_node_that_is_stopped_closes_its_session_at_once() {
    let stage = Stage::set("stop-session").await;
    let launches = [stage.node("candidate").candidate(), stage.node("worker").worker(), stage.node("both")];
    for launch in launches {
        let mut node = launch.session(LASTING).start();
        let ready =
            |node: &NodeProcess| node.said().contains("elected leader") || node.said().contains("registered");
        eventually("it takes its part", SOON, async || ready(&node)).await;
        node.signal(Signal::SIGTERM);
        let asked = Instant::now();
        assert_eq!(node.ended(SOON).await.code(), Some(0));
        assert!(asked.elapsed() < AT_ONCE, "{} after {:?}", node.name(), asked.elapsed());
        assert!(!node.said().contains("did not confirm"), "{}", node.name());
    }
}
