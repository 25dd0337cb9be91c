//! How a worker runs, reports and hands back its jobs.

use std::time::{Duration, Instant};

use bellwether_core::job::{
    Assignment, Attempt, AttemptOutcome, Ending, JobRecord, JobState, Policy, Verdict,
};
use bellwether_core::outcome::Outcome;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::time::WallMillis;
use bellwether_core::{path, txn};
use bellwether_host::worker::Drained;
use bellwether_testkit::{Cut, eventually};

use crate::stage::{SOON, Stage, policy};

fn verdict(record: &JobRecord) -> Option<&Verdict> {
    match &record.state {
        JobState::Terminal { verdict, .. } => Some(verdict),
        JobState::Open { .. } => None,
    }
}

#[tokio::test]
async fn an_assigned_job_runs_once_and_succeeds_with_its_result() {
    let stage = Stage::set("runs").await;
    let worker = stage.serving(None).await;
    let job = stage.given("a", "echo", policy(), worker).await;
    let record = stage.closed(&job).await;
    assert!(matches!(verdict(&record), Some(Verdict::Succeeded(result)) if result.bytes() == b"[1]"));
    assert_eq!((record.attempts, stage.runs()), (1, 1));
    assert!(!stage.exists(path::assignment(worker, &job)).await);
}

#[tokio::test]
async fn many_jobs_all_run_once() {
    let stage = Stage::with_slots("many", 64).await;
    let worker = stage.serving(None).await;
    let jobs = futures::future::join_all((0..300).map(|n| {
        let stage = &stage;
        async move { stage.given(&format!("job-{n}"), "echo", policy(), worker).await }
    }))
    .await;
    for job in &jobs {
        let record = stage.closed(job).await;
        assert!(matches!(verdict(&record), Some(Verdict::Succeeded(_))), "{record:?}");
    }
    assert_eq!(stage.runs(), 300);
}

#[tokio::test]
async fn a_panic_fails_the_attempt_and_the_worker_lives() {
    let stage = Stage::set("panic").await;
    let worker = stage.serving(None).await;
    let job = stage.given("a", "panic", policy(), worker).await;
    let record = stage.closed(&job).await;
    assert_eq!(record.last_error.as_deref(), Some("panicked: out of cheese"));
    let delay = record.delay().expect("the job is delayed");
    assert!(stage.exists(path::delayed_entry(delay, &job)).await);
    let next = stage.given("b", "echo", policy(), worker).await;
    assert!(matches!(verdict(&stage.closed(&next).await), Some(Verdict::Succeeded(_))));
}

#[tokio::test]
async fn the_last_failure_makes_the_job_dead() {
    let stage = Stage::set("dead").await;
    let worker = stage.serving(None).await;
    let job = stage.given("a", "fail", Policy { max_attempts: 1, ..policy() }, worker).await;
    let record = stage.closed(&job).await;
    assert_eq!((verdict(&record), record.last_error.as_deref()), (Some(&Verdict::Dead), Some("no luck")));
}

#[tokio::test]
async fn an_attempt_that_exceeds_its_timeout_fails() {
    let stage = Stage::with_slots("timeout", 1).await;
    let worker = stage.serving(None).await;
    let timeout = Some(Duration::from_millis(50));
    for (name, kind) in [("a", "forever"), ("b", "stubborn"), ("c", "until-told")] {
        let job = stage.given(name, kind, Policy { timeout, ..policy() }, worker).await;
        assert_eq!(stage.closed(&job).await.last_error.as_deref(), Some("timed out after 50ms"));
    }
}

#[tokio::test]
async fn a_kind_without_a_handler_fails_with_its_name() {
    let stage = Stage::set("unknown-kind").await;
    let worker = stage.serving(None).await;
    let job = stage.given("a", "unheard-of", policy(), worker).await;
    assert_eq!(stage.closed(&job).await.last_error.as_deref(), Some("no handler for kind unheard-of"));
}

#[tokio::test]
async fn a_cancel_flag_ends_a_run_that_ignores_its_token() {
    let stage = Stage::set("cancel").await;
    let worker = stage.serving(None).await;
    for (n, kind) in ["until-told", "forever"].into_iter().enumerate() {
        let job = stage.given(kind, kind, policy(), worker).await;
        stage.started(n as u32 + 1).await;
        stage.flag_cancel(&job, worker).await;
        assert_eq!(verdict(&stage.closed(&job).await), Some(&Verdict::Cancelled));
    }
}

#[tokio::test]
async fn an_attempt_closed_by_another_node_is_stopped_and_its_result_is_dropped() {
    let stage = Stage::with_slots("zombie", 1).await;
    let worker = stage.serving(None).await;
    let job = stage.given("a", "until-told", policy(), worker).await;
    stage.started(1).await;
    let (record, version) = stage.record(&job).await;
    let attempt = Attempt { number: 1, worker };
    let (lost, next) = record.close(attempt, Ending::Lost, WallMillis(2), 0);
    let close = txn::close(&job, worker, version, None, &lost, &next);
    assert_eq!(stage.zk.commit(close).await, Outcome::Applied(()));
    // The only slot is free again, and the record is unchanged.
    let next = stage.given("b", "echo", policy(), worker).await;
    assert!(matches!(verdict(&stage.closed(&next).await), Some(Verdict::Succeeded(_))));
    assert_eq!(stage.record(&job).await, (lost, version + 1));
}

#[tokio::test]
async fn a_job_with_a_corrupt_record_is_quarantined_and_others_run() {
    let stage = Stage::set("corrupt").await;
    let worker = stage.serving(None).await;
    let bad = stage.submit("bad", "echo", policy()).await;
    for (name, bytes) in
        [("bad", b"BW\x01\x01\x01\x00rubbish".to_vec()), ("newer", b"BW\x01\x01\x63\x00".to_vec())]
    {
        let bad = if name == "bad" { bad.clone() } else { stage.submit(name, "echo", policy()).await };
        let entry = stage.waits(&bad).await;
        let assign = txn::assign(&entry, worker, &Assignment::new(1, 1, WallMillis(1)), None);
        let overwrite = txn::Op::Set { path: path::record(&bad), data: bytes.clone(), version: 0 };
        let ops = std::iter::once(overwrite).chain(assign).collect();
        assert_eq!(stage.zk.commit(ops).await, Outcome::Applied(()));
        eventually("the job is quarantined", SOON, async || {
            stage.exists(path::quarantine(&bad)).await && !stage.exists(path::assignment(worker, &bad)).await
        })
        .await;
        let record = stage.zk.get(path::record(&bad)).await.unwrap().unwrap();
        assert_eq!(record.data, bytes, "the record itself is unchanged");
    }
    let good = stage.given("good", "echo", policy(), worker).await;
    assert!(matches!(verdict(&stage.closed(&good).await), Some(Verdict::Succeeded(_))));
    assert_eq!(stage.runs(), 1);
}

#[tokio::test]
async fn a_drained_worker_hands_back_its_jobs_and_leaves() {
    let stage = Stage::with_slots("drain", 1).await;
    let worker = stage.serving(None).await;
    let running = stage.given("running", "forever", policy(), worker).await;
    stage.started(1).await;
    let waiting = stage.given("waiting", "echo", policy(), worker).await;
    assert_eq!(stage.worker.drain(Duration::ZERO).await, Drained::Empty);
    for handed_back in [&running, &waiting] {
        let (record, _) = stage.record(handed_back).await;
        assert_eq!(record.last.as_ref().unwrap().how, AttemptOutcome::Released, "{record:?}");
        assert!(stage.exists(path::ready_entry(&ReadyEntry::of_record(handed_back, &record))).await);
    }
    assert!(stage.info(worker).await.is_none() && !stage.exists(path::inbox(worker)).await);
    assert_eq!(stage.runs(), 1);
}

#[tokio::test]
async fn a_drain_lets_running_jobs_finish_within_the_grace_period() {
    let stage = Stage::set("drain-grace").await;
    let worker = stage.serving(None).await;
    let timeout = Some(Duration::from_millis(300));
    let job = stage.given("a", "until-told", Policy { timeout, ..policy() }, worker).await;
    stage.started(1).await;
    let since = Instant::now();
    assert_eq!(stage.worker.drain(Duration::from_secs(10)).await, Drained::Empty);
    assert!(since.elapsed() < Duration::from_secs(5), "a drain ends when no job is left");
    assert_eq!(stage.record(&job).await.0.last.unwrap().how, AttemptOutcome::Failed);
}

#[tokio::test]
async fn a_drain_with_the_longest_grace_period_ends_when_no_job_is_left() {
    let stage = Stage::set("drain-max").await;
    let worker = stage.serving(None).await;
    let timeout = Some(Duration::from_millis(100));
    let job = stage.given("a", "until-told", Policy { timeout, ..policy() }, worker).await;
    stage.started(1).await;
    assert_eq!(stage.worker.drain(Duration::MAX).await, Drained::Empty);
    assert_eq!(stage.record(&job).await.0.last.unwrap().how, AttemptOutcome::Failed);
}

#[tokio::test]
async fn a_job_whose_watch_event_is_lost_with_the_connection_is_found() {
    let stage = Stage::set("lost-event").await;
    let worker = stage.serving(None).await;
    stage.proxy.drop_events();
    let job = stage.given("a", "echo", policy(), worker).await;
    // After the assignment, so that the new connection sees it in its list: it gets no events, either.
    stage.proxy.cut(Cut::Fin);
    assert_eq!(stage.closed(&job).await.attempts, 1);
}

/// S6, L3: the leader assigned the job from an outdated record, the job was cancelled, and an operator deleted its
/// turn.
#[tokio::test]
async fn a_cancelled_job_whose_turn_was_deleted_is_handed_back() {
    let stage = Stage::set("hand-back").await;
    let worker = stage.serving(None).await;
    let job = stage.submit_laned("a", "echo").await;
    let turn = path::turn(&stage.record(&job).await.0.turn().expect("it has a lane"), &job);
    let assignment = Assignment { cancel: true, ..Assignment::new(9, 1, WallMillis(1)) };
    let mut hand = vec![txn::Op::Delete { path: turn, version: None }];
    hand.extend(txn::assign(&stage.waits(&job).await, worker, &assignment, None));
    assert_eq!(stage.zk.commit(hand).await, Outcome::Applied(()));
    let record = stage.closed(&job).await;
    assert_eq!((verdict(&record), record.attempts, stage.runs()), (Some(&Verdict::Cancelled), 1, 0));
    assert!(!stage.exists(path::assignment(worker, &job)).await);
}
