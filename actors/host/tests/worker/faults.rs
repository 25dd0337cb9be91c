//! A worker under faults of ZooKeeper, the connection, or its own actors.

use std::time::Duration;

use bellwether_core::job::{AttemptOutcome, JobState, Policy, Verdict};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::txn::Op;
use bellwether_host::session::SessionStatus;
use bellwether_host::worker::{Drained, Stage as Life};
use bellwether_testkit::{Cut, Request, eventually, op};

use crate::stage::{SOON, Stage, policy};

fn closes(job: &str) -> impl Fn(&Request<'_>) -> bool + Send + 'static {
    let path = format!("/{job}");
    move |request| request.op == op::MULTI && request.mentions("/jobs/") && request.mentions(&path)
}

#[tokio::test]
async fn a_close_with_a_lost_reply_is_one_attempt_and_one_run() {
    for cut in [Cut::Fin, Cut::Reset] {
        let stage = Stage::set("lost-close").await;
        let worker = stage.serving(None).await;
        let fault = stage.proxy.swallow_reply_and_cut(closes("the-job"), cut);
        let job = stage.given("the-job", "echo", policy(), worker).await;
        fault.fired().await;
        let next = stage.given("next", "echo", policy(), worker).await;
        assert_eq!(stage.closed(&next).await.attempts, 1);
        let (record, version) = stage.record(&job).await;
        assert!(matches!(record.state, JobState::Terminal { verdict: Verdict::Succeeded(_), .. }));
        assert_eq!((record.attempts, version, stage.runs()), (1, 1, 2));
        assert_eq!(stage.serving(None).await, worker, "the incarnation outlived the connection");
    }
}

#[tokio::test]
async fn a_close_that_never_arrived_is_sent_again() {
    let stage = Stage::set("unsent-close").await;
    let worker = stage.serving(None).await;
    let fault = stage.proxy.drop_request_and_cut(closes("the-job"), Cut::Reset);
    let job = stage.given("the-job", "fail", policy(), worker).await;
    fault.fired().await;
    assert_eq!(stage.closed(&job).await.last.unwrap().how, AttemptOutcome::Failed);
    assert_eq!(stage.runs(), 1);
}

#[tokio::test]
async fn a_registration_with_a_lost_reply_is_resolved_by_reading_back() {
    let stage = Stage::set("lost-register").await;
    let first = stage.serving(None).await;
    let fault = stage.proxy.swallow_reply_and_cut(
        |request: &Request<'_>| request.op == op::MULTI && request.mentions("/workers/"),
        Cut::Reset,
    );
    stage.proxy.expire_session().await;
    fault.fired().await;
    let second = stage.serving(Some(first)).await;
    let job = stage.given("a", "echo", policy(), second).await;
    assert_eq!(stage.closed(&job).await.attempts, 1);
    let workers = stage.zk.children(path::WORKERS.into()).await.unwrap().unwrap();
    assert_eq!(workers, [second.to_string()]);
}

#[tokio::test]
async fn an_expired_session_ends_the_incarnation_and_discards_its_results() {
    let stage = Stage::set("expired").await;
    let first = stage.serving(None).await;
    let job = stage.given("a", "until-told", policy(), first).await;
    stage.started(1).await;
    stage.proxy.expire_session().await;
    let second = stage.serving(Some(first)).await;
    assert!(stage.info(first).await.is_none() && stage.info(second).await.is_some());
    // Only a leader may change the znodes of the dead incarnation.
    let next = stage.given("b", "echo", policy(), second).await;
    assert_eq!(stage.closed(&next).await.attempts, 1);
    assert_eq!(stage.record(&job).await.1, 0);
    assert!(stage.assignment(&job, first).await.is_some());
    assert_eq!(stage.runs(), 2);
}

#[tokio::test]
async fn a_run_continues_while_disconnected_and_its_result_is_reported_later() {
    let stage = Stage::set("disconnected").await;
    let worker = stage.serving(None).await;
    let timeout = Some(Duration::from_millis(200));
    let policy = Policy { timeout, ..policy() };
    let job = stage.given("a", "forever", policy, worker).await;
    stage.started(1).await;
    stage.proxy.refuse();
    stage.proxy.cut(Cut::Reset);
    let mut status = stage.session.status();
    let lost = status.wait_for(|now| matches!(now, SessionStatus::Disconnected));
    tokio::time::timeout(SOON, lost).await.expect("the cut is noticed").unwrap();
    stage.proxy.accept();
    let record = stage.closed(&job).await;
    assert_eq!(record.last.unwrap().attempt.worker, worker);
    assert_eq!(record.last_error.as_deref(), Some("timed out after 200ms"));
}

#[tokio::test]
async fn the_death_of_any_child_ends_the_incarnation() {
    let stage = Stage::set("child").await;
    let mut old = stage.serving(None).await;
    for child in 0..3 {
        let job = stage.given(&format!("job-{child}"), "forever", policy(), old).await;
        stage.started(child * 2 + 1).await;
        let children = stage.worker.cell().get_children();
        assert_eq!(children.len(), 3);
        children[child as usize].kill();
        let new = stage.serving(Some(old)).await;
        assert!(stage.info(old).await.is_none(), "the registration must be deleted for the leader");
        assert!(stage.assignment(&job, old).await.is_some(), "the assignment must remain for the leader");
        let next = stage.given(&format!("next-{child}"), "echo", policy(), new).await;
        assert_eq!(stage.closed(&next).await.attempts, 1);
        old = new;
    }
}

#[tokio::test]
async fn the_next_registration_recreates_deleted_parents() {
    let stage = Stage::set("parents").await;
    let first = stage.serving(None).await;
    let delete = |path: String| Op::Delete { path, version: None };
    let deleted = [path::worker(first), path::WORKERS.into(), path::inbox(first), path::ASSIGNMENTS.into()];
    let deletions = deleted.into_iter().map(delete).collect();
    assert_eq!(stage.zk.commit(deletions).await, Outcome::Applied(()));
    let second = stage.serving(Some(first)).await;
    let job = stage.given("a", "echo", policy(), second).await;
    assert_eq!(stage.closed(&job).await.attempts, 1);
}

#[tokio::test]
async fn a_wing_that_stops_deletes_its_registration() {
    let stage = Stage::set("stops").await;
    let worker = stage.serving(None).await;
    stage.worker.cell().kill();
    eventually("the ephemeral is deleted", SOON, async || stage.info(worker).await.is_none()).await;
}

#[tokio::test]
async fn a_drain_survives_a_lost_reply_of_each_of_its_writes() {
    for path in ["/workers/", "/assignments/"] {
        let stage = Stage::set("lost-drain").await;
        let worker = stage.serving(None).await;
        let job = stage.given("a", "forever", policy(), worker).await;
        stage.started(1).await;
        let fault = stage.proxy.swallow_reply_and_cut(
            move |request: &Request<'_>| request.op == op::MULTI && request.mentions(path),
            Cut::Fin,
        );
        assert_eq!(stage.worker.drain(Duration::ZERO).await, Drained::Empty);
        fault.fired().await;
        let (record, _) = stage.record(&job).await;
        assert!(stage.exists(path::ready_entry(&ReadyEntry::of_record(&job, &record))).await);
        assert!(!stage.exists(path::inbox(worker)).await);
        assert_eq!(stage.worker.status().borrow().stage, Life::Over);
    }
}
