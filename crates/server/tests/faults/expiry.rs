//! A node's session expires: another client ends it with its id and password.

use bellwether::State;
use bellwether::metrics as metric;
use bellwether_testkit::{Proxy, eventually};

use crate::stage::{SOON, Stage};

#[tokio::test]
async fn an_expired_worker_registers_again_and_its_old_attempts_never_commit() {
    let stage = Stage::set("expired-worker").await;
    let _leader = stage.node("leader").candidate().start();
    let proxy = Proxy::to(&stage.to);
    let worker = stage.node("worker").worker().behind(&proxy).start();
    let old = stage.worker(&worker, None).await;
    stage.runs.hold();
    let ids = stage.submit((0..6).map(|n| stage.runs.held(&format!("job-{n}")))).await;
    stage.begun(6).await;

    proxy.expire_session().await;
    let new = stage.worker(&worker, Some(old)).await;
    // The leader has taken the jobs back before the worker registered again. Jobs with a loss do not share a worker.
    stage.begun(7).await;
    stage.runs.release();
    let jobs = stage.over(&ids).await;
    for job in &jobs {
        assert_eq!(
            (job.state, job.attempt, job.losses),
            (State::Succeeded, 2, 0),
            "one attempt is lost, and excused when the process closes the next: {job:?}"
        );
        assert_eq!(job.worker, Some(new), "the result is from the new incarnation's attempt: {job:?}");
    }
    stage.runs.explain(&jobs);
    assert_eq!(worker.metric(metric::SESSIONS_EXPIRED), Some(1.0));
    // The worker's last reply may arrive after the client's notification.
    eventually("six completions are counted", SOON, async || worker.attempts("succeeded") == Some(6.0)).await;
    stage.settled(1).await;
    assert_eq!(worker.attempts("succeeded"), Some(6.0));
}

/// S20: the leader takes the job back before the process has registered again, so it counts each loss.
#[tokio::test]
async fn more_expired_sessions_than_permitted_losses_do_not_end_a_job() {
    let stage = Stage::set("excused").await;
    let _leader = stage.node("leader").candidate().start();
    let proxy = Proxy::to(&stage.to);
    let worker = stage.node("worker").worker().behind(&proxy).start();
    let mut id = stage.worker(&worker, None).await;
    stage.runs.hold();
    let ids = stage.submit([stage.runs.held("job")]).await;
    stage.begun(1).await;
    for expired in 1..=4 {
        proxy.expire_session().await;
        id = stage.worker(&worker, Some(id)).await;
        stage.begun(expired + 1).await;
        let job = stage.job("job").await;
        assert_eq!((job.state, job.losses), (State::Running, 1), "only the last loss still counts: {job:?}");
    }
    stage.runs.release();
    let job = stage.over(&ids).await.remove(0);
    assert_eq!((job.state, job.attempt, job.losses), (State::Succeeded, 5, 0), "{job:?}");
    stage.runs.explain(&[job]);
}

#[tokio::test]
async fn an_expired_leader_is_replaced_with_a_higher_epoch() {
    let stage = Stage::set("expired-leader").await;
    let proxy = Proxy::to(&stage.to);
    let first = stage.node("first").candidate().behind(&proxy).start();
    let epoch = stage.led_by(&first).await.epoch;
    let second = stage.node("second").start();
    stage.workers(1).await;
    eventually("both nodes are candidates", SOON, async || {
        stage.zk.children(bellwether_core::path::ELECTION.into()).await.unwrap().unwrap().len() == 2
    })
    .await;

    proxy.expire_session().await;
    let ids = stage.submit((0..20).map(|n| stage.runs.job(&format!("job-{n}")))).await;
    let leader = stage.led_by(&second).await;
    assert!(leader.epoch > epoch);
    let jobs = stage.over(&ids).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 1), "{jobs:?}");
    stage.runs.explain(&jobs);
    eventually("the old leader is inactive", SOON, async || {
        first.metric(metric::LEADERSHIP_STATE) == Some(0.0)
    })
    .await;
    assert_eq!(
        stage.leader().await.epoch,
        leader.epoch,
        "the old leader is a candidate behind the new leader"
    );
}
