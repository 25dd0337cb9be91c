//! A leader that does not know that it is none any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether::State;
use bellwether_core::outcome::Outcome;
use bellwether_core::txn::Op;
use bellwether_core::{metric, path};
use bellwether_testkit::{Direction, Proxy, Request, eventually, eventually_some};
use nix::sys::signal::Signal;

use crate::stage::{SESSION, SOON, Stage, step};

/// Of a leader whose session shall outlive its leadership.
const LASTING: Duration = Duration::from_secs(10);

/// The write is on its way when its sender's candidate is removed and another claims; the sender's session lives, so
/// that nothing but the epoch stands between the write and the jobs (S3).
#[tokio::test]
async fn an_assignment_that_arrives_after_another_leader_has_claimed_is_fenced() {
    let stage = Stage::set("stale-write").await;
    let proxy = Proxy::to(&stage.to);
    let stale = stage.node("stale").candidate().behind(&proxy).session(LASTING).start();
    stage.led_by(&stale).await;
    let _worker = stage.node("worker").worker().start();
    stage.workers(1).await;
    let warm = stage.submit([stage.runs.job("warm")]).await;
    stage.over(&warm).await;
    let candidates = stage.zk.children(path::ELECTION.into()).await.unwrap().unwrap();
    let [candidate] = candidates.as_slice() else { panic!("{candidates:?}") };

    // The proxy shows a request to its faults before it queues it: one that never matches is an eye, and what it
    // sees waits behind the stall that it orders.
    let sent = Arc::new(AtomicBool::new(false));
    let (eye, hand) = (Arc::clone(&sent), Mutex::new(Some(proxy.clone())));
    let _never = proxy.hold_reply(move |request: &Request<'_>| {
        if step::assign(request)
            && let Some(proxy) = hand.lock().unwrap().take()
        {
            proxy.stall(Direction::ToServer);
            eye.store(true, Ordering::SeqCst);
        }
        false
    });
    let ids = stage.submit([stage.runs.job("job")]).await;
    eventually("the assignment is on its way", SOON, async || sent.load(Ordering::SeqCst)).await;
    // Nor does it hear that its candidate is gone.
    proxy.drop_events();
    let remove = Op::Delete { path: path::candidate(candidate), version: None };
    assert_eq!(stage.zk.commit(vec![remove]).await, Outcome::Applied(()));
    let next = stage.node("next").candidate().start();
    let epoch = stage.led_by(&next).await.epoch;
    let jobs = stage.over(&ids).await;
    proxy.heal();

    eventually("the write was fenced", SOON, async || stale.metric(metric::FENCED) == Some(1.0)).await;
    assert_eq!((jobs[0].state, jobs[0].attempt), (State::Succeeded, 1));
    stage.runs.explain(&jobs);
    stage.settled(1).await;
    assert_eq!(stage.leader().await.epoch, epoch);
}

/// S5: at most 100 ms in which both say that they are active.
#[tokio::test]
async fn a_leader_that_was_frozen_beyond_its_timeout_acts_no_more_when_it_wakes() {
    let stage = Stage::set("frozen").await;
    let first = stage.node("first").candidate().start();
    let epoch = stage.led_by(&first).await.epoch;
    let second = stage.node("second").start();
    stage.workers(1).await;
    let before = stage.submit((0..100).map(|n| stage.runs.job(&format!("before-{n}")))).await;

    first.signal(Signal::SIGSTOP);
    let frozen = std::time::Instant::now();
    let later = stage.submit((0..100).map(|n| stage.runs.job(&format!("later-{n}")))).await;
    let leader = stage.led_by(&second).await;
    assert!(leader.epoch > epoch);
    eventually("it was frozen for three timeouts", SOON, async || frozen.elapsed() > 3 * SESSION).await;
    first.signal(Signal::SIGCONT);
    let woken = std::time::Instant::now();
    let acts = || first.metric(metric::LEADERSHIP_STATE).filter(|state| *state < 2.0);
    let state = eventually_some("it knows", SOON, async || acts()).await;
    println!("{state} after {:?}", woken.elapsed());
    let last = stage.submit((0..20).map(|n| stage.runs.job(&format!("last-{n}")))).await;

    let jobs = stage.over(&[before, later, last].concat()).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 1), "{jobs:?}");
    stage.runs.explain(&jobs);
    assert_eq!(stage.leader().await.epoch, leader.epoch, "the woken one took nothing back");
    stage.settled(1).await;
}
