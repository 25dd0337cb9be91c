//! A leader that does not know that it was replaced.

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

/// The session timeout of a leader whose session must outlive its leadership, also on a busy machine.
const LASTING: Duration = SOON;

/// The write is in flight when its sender's candidate is deleted and another leader claims. The sender's session is
/// alive, so only the epoch can reject the write (S3).
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

    // The proxy passes a request to its faults before it queues the request. A fault that never matches can observe
    // requests, and the observed request waits behind the stall that the fault starts.
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
    // Only the assignment informs the stale leader: the answer to a beat would end its term, and with it the wait for the assignment's.
    let stalled = Arc::clone(&sent);
    let _beat =
        proxy.hold_reply(move |request: &Request<'_>| stalled.load(Ordering::SeqCst) && step::beat(request));
    let ids = stage.submit([stage.runs.job("job")]).await;
    eventually("the assignment is in flight", SOON, async || sent.load(Ordering::SeqCst)).await;
    // The stale leader also receives no event about the deletion of its candidate.
    proxy.drop_events();
    let remove = Op::Delete { path: path::candidate(candidate), version: None };
    assert_eq!(stage.zk.commit(vec![remove]).await, Outcome::Applied(()));
    let next = stage.node("next").candidate().start();
    let epoch = stage.led_by(&next).await.epoch;
    let jobs = stage.over(&ids).await;
    proxy.heal();

    let fenced = async || stale.metric(metric::LEADERSHIP_TERMS_FENCED) == Some(1.0);
    eventually("the write was fenced", SOON, fenced).await;
    assert_eq!((jobs[0].state, jobs[0].attempt), (State::Succeeded, 1));
    stage.runs.explain(&jobs);
    stage.settled(1).await;
    assert_eq!(stage.leader().await.epoch, epoch);
}

/// S5: both nodes report that they are active for at most 100 ms.
#[tokio::test]
async fn a_leader_that_was_frozen_beyond_its_timeout_does_not_act_when_it_resumes() {
    let stage = Stage::set("frozen").await;
    let first = stage.node("first").candidate().start();
    let epoch = stage.led_by(&first).await.epoch;
    // It keeps its term on a busy machine, too.
    let second = stage.node("second").session(LASTING).start();
    stage.workers(1).await;
    let before = stage.submit((0..100).map(|n| stage.runs.job(&format!("before-{n}")))).await;

    first.signal(Signal::SIGSTOP);
    let frozen = std::time::Instant::now();
    let later = stage.submit((0..100).map(|n| stage.runs.job(&format!("later-{n}")))).await;
    let leader = stage.led_by(&second).await;
    assert!(leader.epoch > epoch);
    eventually("the leader was frozen for three timeouts", SOON, async || frozen.elapsed() > 3 * SESSION)
        .await;
    first.signal(Signal::SIGCONT);
    let woken = std::time::Instant::now();
    let acts = || first.metric(metric::LEADERSHIP_STATE).filter(|state| *state < 2.0);
    let state = eventually_some("the leader has detected the end of its term", SOON, async || acts()).await;
    println!("{state} after {:?}", woken.elapsed());
    let last = stage.submit((0..20).map(|n| stage.runs.job(&format!("last-{n}")))).await;

    let jobs = stage.over(&[before, later, last].concat()).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded && job.attempt == 1), "{jobs:?}");
    stage.runs.explain(&jobs);
    assert_eq!(stage.leader().await.epoch, leader.epoch, "the resumed node did not take leadership back");
    stage.settled(1).await;
}
