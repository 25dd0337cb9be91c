//! A machine whose wall clock is a year ahead of ZooKeeper's: its node does not lead, the times that its client sets are
//! right, a purge keeps a job that has just ended, and a snapshot names the host until the clock is correct. A worker and a
//! leader decide by ZooKeeper's clock. And a machine that is suspended while a client waits.
//!
//! The clocks are those of the process, so the tests run one at a time. The keeper of the test cluster runs in the same process,
//! but reads the machine's clocks.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::pin::pin;
use std::time::{Duration, Instant, SystemTime};

use bellwether::client::{Purge, SnapshotOptions, State, WaitError, WaitReason};
use bellwether::testing::Cluster;
use bellwether::{Client, HandlerError, Handlers, Job};
use bellwether_host::clock::testing::set_ahead;
use bellwether_testkit::{eventually, eventually_some};
use bellwether_zk::clock::testing::suspend;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(30);
const YEAR_MS: i64 = 365 * 86_400_000;

static MACHINE: Mutex<()> = Mutex::const_new(());

/// The machine, for one test. Its clock is right again when the test ends or fails.
struct Machine {
    _alone: MutexGuard<'static, ()>,
}

impl Machine {
    async fn alone() -> Self {
        Self { _alone: MACHINE.lock().await }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        set_ahead(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_clock_is_a_year_ahead_does_not_lead_and_a_client_sets_the_right_times() {
    let _machine = Machine::alone().await;
    let handlers = Handlers::new().job("echo", |_, n: i64| async move { Ok(n) });
    let cluster = Cluster::builder(handlers).start().await.unwrap();
    let node = cluster.leader().await.unwrap();
    let ended = cluster.client().submit(Job::new("echo", &1)).await.unwrap();
    assert_eq!(ended.wait(SOON).await.unwrap().state, State::Succeeded);

    set_ahead(YEAR_MS);
    node.cut_off();
    eventually("the leader pauses", SOON, async || !node.leads()).await;
    // A new connection reads ZooKeeper's clock.
    node.mend();
    let stands = async || cluster.client().leader().await.unwrap().unwrap().standing;
    eventually("the node withdraws its candidate", SOON, async || !stands().await).await;
    assert!(!node.leads());

    let client = Client::connect(cluster.zookeeper()).await.unwrap();
    let job = Job::new("echo", &7).delay(Duration::from_millis(100)).expires_in(Duration::from_secs(600));
    let job = client.submit(job).await.unwrap();
    let view = client.get(job.id()).await.unwrap().unwrap();
    let near = |at: SystemTime| at < SystemTime::now() + Duration::from_secs(700);
    assert!(near(view.submitted_at.unwrap()) && near(view.expires_at.unwrap()), "{view:?}");
    assert!(near(view.not_before.unwrap()), "{view:?}");
    let purged = client.purge(&Purge::jobs([ended.id().clone()]).remove(true), |_| {}).await.unwrap();
    assert_eq!((purged.removed, purged.too_recent), (0, 1), "the job ended less than a minute ago");

    let reports = async || client.snapshot(SnapshotOptions::default()).await.unwrap().wrong_clocks;
    eventually("the node and the client report the clock", SOON, async || reports().await.len() == 2).await;
    let reported = reports().await;
    assert!(reported.iter().all(|clock| (YEAR_MS / 1_000 - clock.ahead).abs() < 60), "{reported:?}");
    assert_eq!(reported.iter().filter(|clock| clock.node.is_some()).count(), 1, "{reported:?}");

    set_ahead(0);
    // So does a new session.
    assert!(node.expire().await);
    eventually("the node leads again", SOON, async || node.leads()).await;
    assert_eq!(job.wait(SOON).await.unwrap().state, State::Succeeded);
    client.close().await;
    let reports = async || cluster.client().snapshot(SnapshotOptions::default()).await.unwrap().wrong_clocks;
    eventually("the reports end with their sessions", SOON, async || reports().await.is_empty()).await;
    cluster.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_clock_is_a_year_ahead_retries_a_failed_job_after_its_backoff() {
    let _machine = Machine::alone().await;
    let handlers = Handlers::new().job("flaky", |context, (): ()| async move {
        if context.attempt() == 1 { Err(HandlerError::new("not yet")) } else { Ok(()) }
    });
    let mut cluster = Cluster::builder(handlers)
        .configure(|index, node| if index == 0 { node } else { node.candidate(false).tags(["wrong"]) })
        .start()
        .await
        .unwrap();
    // The worker reads ZooKeeper's clock while its own is wrong. Before the retry, the clock is right again, as on the leader's
    // machine.
    set_ahead(YEAR_MS);
    cluster.add().await.unwrap();
    cluster.ready().await.unwrap();
    let backoff = Duration::from_secs(2);
    let job = Job::new("flaky", &()).tags(["wrong"]).backoff(backoff, backoff);
    let job = cluster.client().submit(job).await.unwrap();
    let failed = eventually_some("the first attempt has failed", SOON, async || {
        cluster.client().get(job.id()).await.unwrap().filter(|view| view.failures == 1)
    });
    let failed = failed.await;
    let latest = SystemTime::now() + SOON;
    assert!(failed.not_before.is_none_or(|retry| retry < latest), "{failed:?}");
    set_ahead(0);
    let end = job.wait(SOON).await.unwrap();
    assert_eq!((end.state, end.failures), (State::Succeeded, 1), "{end:?}");
    cluster.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_clock_becomes_wrong_starts_and_expires_jobs_at_the_right_times() {
    let _machine = Machine::alone().await;
    let handlers = Handlers::new().job("echo", |_, n: i64| async move { Ok(n) });
    let cluster = Cluster::builder(handlers).start().await.unwrap();
    let (client, node) = (cluster.client(), cluster.leader().await.unwrap());
    let (soon, later) = (Duration::from_secs(1), Duration::from_secs(3_600));
    for ahead in [YEAR_MS, -YEAR_MS] {
        set_ahead(ahead);
        let submit = async |kind: &str, timed: fn(Job, Duration) -> Job, time| {
            client.submit(timed(Job::new(kind, &7), time)).await.unwrap()
        };
        let delayed = submit("echo", Job::delay, later).await;
        let waits = submit("nobody", Job::expires_in, later).await;
        let submitted = Instant::now();
        let starts = submit("echo", Job::delay, soon).await;
        let expires = submit("nobody", Job::expires_in, soon).await;
        for (job, state) in [(starts, State::Succeeded), (expires, State::Dead)] {
            assert_eq!(job.wait(SOON).await.unwrap().state, state, "{ahead}");
            assert!(submitted.elapsed() > soon / 2, "{ahead}: {state} too early");
        }
        // With a clock that is a year ahead, these jobs are due as well.
        for (job, reason) in [(delayed, WaitReason::NotBefore), (waits, WaitReason::UnknownKind)] {
            let view = client.get(job.id()).await.unwrap().unwrap();
            assert_eq!(view.waiting, Some(reason), "{ahead}: {view:?}");
        }
        assert!(node.leads(), "it has not read ZooKeeper's clock again");
    }
    set_ahead(0);
    cluster.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_whose_deadline_passes_while_the_machine_is_suspended_ends_within_10_seconds() {
    const DEADLINE: Duration = Duration::from_secs(300);
    let _machine = Machine::alone().await;
    let handlers = Handlers::new().job("echo", |_, n: i64| async move { Ok(n) });
    let cluster = Cluster::builder(handlers).start().await.unwrap();
    let job = cluster.client().submit(Job::new("nobody", &())).await.unwrap();
    let mut wait = pin!(job.wait(DEADLINE));
    assert!(timeout(Duration::from_secs(1), &mut wait).await.is_err(), "no worker has the kind");

    suspend(DEADLINE.as_millis().try_into().unwrap());
    let ended = timeout(Duration::from_secs(15), wait).await.expect("the wait ends soon").unwrap_err();
    assert!(matches!(ended, WaitError::TimedOut { .. }), "{ended:?}");
    cluster.stop().await.unwrap();
}
