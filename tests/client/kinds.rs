//! Pausing kinds, draining workers, and explaining why a job is not running.

use std::time::{Duration, SystemTime};

use bellwether::client::{Cause, DrainedWorker, Error, Shunned, WaitReason};
use bellwether::{Job, JobId, Kind};
use bellwether_core::job::{Ending, Payload};
use bellwether_core::path;
use bellwether_core::txn::{self, Lifetime, Op};
use bellwether_testkit::{Cut, Proxy, Request, eventually, namespace, op};

use crate::fake_cluster::{FakeCluster, SOON, client, id};

fn kind(name: &str) -> Kind {
    Kind::new(name).unwrap()
}

#[tokio::test]
async fn a_kind_is_paused_once_and_listed_with_its_workers_and_pause() {
    let to = namespace("kinds");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let (one, two) = (fake.worker(&["echo", "sum"], 2, &[]).await, fake.worker(&["sum"], 3, &[]).await);
    assert_eq!(client.pause_kind(&kind("sum"), "ops").await, Ok(true));
    assert_eq!(client.pause_kind(&kind("sum"), "others").await, Ok(false), "the first pause is kept");
    assert_eq!(
        client.pause_kind(&kind("nobody"), "").await,
        Ok(true),
        "a kind without workers can be paused"
    );
    // An unreadable pause is a pause, too.
    let path = path::pause(&kind("odd"));
    fake.apply(vec![Op::Create { path, data: b"?".to_vec(), lifetime: Lifetime::Persistent }]).await;
    let kinds = client.kinds().await.unwrap();
    let told = kinds.iter().map(|view| {
        let paused = view.paused.as_ref().map(|pause| (pause.since.is_some(), pause.note.as_deref()));
        (view.kind.as_str(), view.workers.clone(), (view.slots, view.assigned), paused)
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ("echo", vec![one], (2, 0), None),
            ("nobody", vec![], (0, 0), Some((true, None))),
            ("odd", vec![], (0, 0), Some((false, None))),
            ("sum", vec![one, two], (5, 0), Some((true, Some("ops")))),
        ]
    );
    assert_eq!(client.resume_kind(&kind("sum")).await, Ok(true));
    assert_eq!(client.resume_kind(&kind("sum")).await, Ok(false));
    let long = client.pause_kind(&kind("sum"), &"x".repeat(257)).await.unwrap_err();
    assert_eq!(long.to_string(), "note must be at most 256 bytes, not 257 bytes");
}

#[tokio::test]
async fn a_worker_is_marked_as_draining_once_and_keeps_its_registration() {
    let to = namespace("drain");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["echo"], 2, &["gpu"]).await;
    let mut expected = client.workers().await.unwrap().remove(0).info.unwrap();
    expected.draining = true;
    assert_eq!(client.drain_worker(worker).await, Ok(DrainedWorker::Marked));
    assert_eq!(client.drain_worker(worker).await, Ok(DrainedWorker::Already));
    let after = client.workers().await.unwrap().remove(0).info.unwrap();
    assert_eq!(after, expected);
    let path = path::worker(worker);
    fake.apply(vec![Op::Set { path: path.clone(), data: b"?".to_vec(), version: 1 }]).await;
    let unreadable = client.drain_worker(worker).await.unwrap_err();
    assert!(matches!(unreadable, Error::WorkerUnreadable { .. }), "{unreadable}");
    fake.apply(vec![Op::Delete { path, version: None }]).await;
    assert_eq!(client.drain_worker(worker).await, Ok(DrainedWorker::NotFound));
}

/// What if the reply is lost, after the mark was set and before?
#[tokio::test]
async fn a_drain_with_a_lost_reply_counts_as_done_by_this_call() {
    let to = namespace("drain-lost");
    let proxy = Proxy::to(&to);
    let (client, fake) = (client(&proxy.connect_string()).await, FakeCluster::new(&to).await);
    let change = |request: &Request<'_>| request.op == op::MULTI && request.mentions("/workers/");
    let (one, two) = (fake.worker(&["echo"], 2, &[]).await, fake.worker(&["echo"], 2, &[]).await);
    let lost = proxy.swallow_reply_and_cut(change, Cut::Fin);
    assert_eq!(client.drain_worker(one).await, Ok(DrainedWorker::Marked));
    assert!(lost.has_fired());
    let lost = proxy.drop_request_and_cut(change, Cut::Fin);
    assert_eq!(client.drain_worker(two).await, Ok(DrainedWorker::Marked));
    assert!(lost.has_fired());
    assert!(client.workers().await.unwrap().iter().all(|worker| worker.info.as_ref().unwrap().draining));
}

/// What if the reply is lost?
#[tokio::test]
async fn a_pause_with_a_lost_reply_counts_as_done_by_this_call() {
    let to = namespace("pause-lost");
    let proxy = Proxy::to(&to);
    let client = client(&proxy.connect_string()).await;
    let change = |request: &Request<'_>| request.op == op::MULTI && request.mentions("/pauses/sum");
    for _ in 0..2 {
        let lost = proxy.swallow_reply_and_cut(change, Cut::Fin);
        assert_eq!(client.pause_kind(&kind("sum"), "ops").await, Ok(true));
        assert!(lost.has_fired());
        let lost = proxy.swallow_reply_and_cut(change, Cut::Fin);
        assert_eq!(client.resume_kind(&kind("sum")).await, Ok(true));
        assert!(lost.has_fired());
    }
}

struct Explained {
    client: bellwether::Client,
}

impl Explained {
    async fn why(&self, job: &JobId) -> Cause {
        self.client.explain(job).await.unwrap().cause
    }
}

#[tokio::test]
async fn explain_shows_why_a_job_waits_in_each_state() {
    let to = namespace("explain");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let explained = Explained { client: client.clone() };
    let sum = || Job::new("sum", &1);
    let job = client.submit(sum().id("a").tags(["eu", "gpu"]).lane("l")).await.unwrap();
    let job = job.id();
    assert_eq!(explained.why(job).await.to_string(), "no live worker has a handler for kind sum");
    fake.worker(&["sum"], 1, &["eu"]).await;
    assert_eq!(explained.why(job).await.to_string(), "no live worker of kind sum has the tag gpu");
    let worker = fake.worker(&["sum"], 1, &["eu", "gpu"]).await;
    assert_eq!(explained.why(job).await, Cause::NoLeader);
    fake.lead().await;
    assert_eq!(explained.why(job).await, Cause::Assignment);
    client.pause_kind(&kind("sum"), "ops").await.unwrap();
    let paused = explained.why(job).await.to_string();
    assert!(paused.starts_with("kind sum is paused since 20") && paused.ends_with(": ops"), "{paused}");
    assert_eq!(client.get(job).await.unwrap().unwrap().waiting, Some(WaitReason::Paused));
    client.resume_kind(&kind("sum")).await.unwrap();

    let second = client.submit(sum().id("b").lane("l")).await.unwrap();
    fake.assign(job, worker).await;
    let behind = explained.why(second.id()).await.to_string();
    assert_eq!(behind, "a comes first in lane l, and is running");
    let busy = client.submit(sum().id("c").tags(["gpu"])).await.unwrap();
    let Cause::Busy { workers: 1, slots: 1 } = explained.why(busy.id()).await else { panic!("not busy") };
    let running = explained.why(job).await;
    assert!(matches!(&running, Cause::Running { attempt: 1, cancel_requested: false, .. }), "{running:?}");
    client.cancel(job).await.unwrap();
    assert!(explained.why(job).await.to_string().ends_with("and was asked to stop"));

    fake.close(job, worker, Ending::Failed("boom".into())).await;
    let backoff = explained.why(job).await.to_string();
    assert!(backoff.ends_with("after 1 failures, the last: boom"), "{backoff}");
    client.cancel(job).await.unwrap();
    let over = explained.why(job).await;
    assert!(matches!(over, Cause::Ended { .. }), "{over:?}");
    assert!(over.to_string().ends_with(": boom"), "{over}");

    let later = client.submit(sum().id("d").delay(Duration::from_secs(3_600))).await.unwrap();
    assert!(matches!(explained.why(later.id()).await, Cause::NotBefore { .. }));
    let expired = client.submit(sum().id("e").expires_in(Duration::from_millis(1))).await.unwrap();
    eventually("it is overdue", SOON, async || {
        matches!(explained.why(expired.id()).await, Cause::Expired { .. })
    })
    .await;
    fake.assign(busy.id(), worker).await;
    fake.set_aside(busy.id(), worker).await;
    let aside = explained.why(busy.id()).await.to_string();
    assert_eq!(aside, "it is quarantined: assignment unreadable");
    assert_eq!(client.explain(&id("nobody")).await, Err(Error::NotFound(id("nobody"))));

    let gone = client.submit(sum().id("f")).await.unwrap();
    fake.assign(gone.id(), worker).await;
    fake.apply(vec![Op::Delete { path: path::worker(worker), version: None }]).await;
    assert_eq!(explained.why(gone.id()).await, Cause::WorkerLost { worker });
    let done = client.submit(sum().id("g")).await.unwrap();
    fake.assign(done.id(), worker).await;
    fake.close(done.id(), worker, Ending::Succeeded(Payload::json(*b"1").unwrap())).await;
    let done = explained.why(done.id()).await.to_string();
    assert!(done.starts_with("it ended at 20") && !done.contains("boom"), "{done}");
}

/// S20
#[tokio::test]
async fn explain_shows_that_a_job_with_losses_waits_to_be_isolated() {
    let to = namespace("explain-isolated");
    let client = client(&to).await;
    let explained = Explained { client: client.clone() };
    let fake = FakeCluster::new(&to).await;
    fake.lead().await;
    let (busy, lost) = (fake.worker(&["sum"], 4, &[]).await, fake.worker(&["other"], 1, &[]).await);
    let neighbour = client.submit(Job::new("sum", &1)).await.unwrap();
    let job = client.submit(Job::new("sum", &2)).await.unwrap();
    fake.assign(neighbour.id(), busy).await;
    assert_eq!(explained.why(job.id()).await, Cause::Assignment);
    for (losses, alone) in [(1, false), (2, true)] {
        fake.lose(job.id(), lost).await;
        assert_eq!(explained.why(job.id()).await, Cause::Isolated { losses, alone });
        assert_eq!(client.get(job.id()).await.unwrap().unwrap().waiting, Some(WaitReason::Isolated));
    }
    fake.close(neighbour.id(), busy, Ending::Released).await;
    assert_eq!(explained.why(job.id()).await, Cause::Assignment);
}

#[tokio::test]
async fn explain_names_the_shunned_worker_and_the_time_until_which_it_is_shunned() {
    let to = namespace("explain-shunned");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let explained = Explained { client: client.clone() };
    let worker = fake.worker(&["sum"], 2, &[]).await;
    fake.lead().await;
    let job = client.submit(Job::new("sum", &1).id("a")).await.unwrap();
    assert_eq!(explained.why(job.id()).await, Cause::Assignment);
    let taken = || fake.apply(vec![txn::shun(worker)]);
    taken().await;
    let why = explained.why(job.id()).await;
    let Cause::Shunned { workers } = &why else { panic!("{why}") };
    let [Shunned { worker: named, node, until, .. }] = &workers[..] else { panic!("{why}") };
    assert_eq!((*named, node.as_str()), (worker, "by-hand"));
    let left = until.duration_since(SystemTime::now()).unwrap();
    assert!(left <= Duration::from_secs(60), "{left:?}");
    assert_eq!(client.workers().await.unwrap()[0].shunned_until, Some(*until));
    // A worker that registers again is no longer shunned.
    let registration = fake.read(path::worker(worker)).await.data;
    fake.overwrite(path::worker(worker), registration).await;
    assert_eq!(explained.why(job.id()).await, Cause::Assignment);
    // Another free worker gets the job, and a new leader does not know that the first one was shunned.
    taken().await;
    assert!(matches!(explained.why(job.id()).await, Cause::Shunned { .. }));
    fake.worker(&["sum"], 1, &[]).await;
    assert_eq!(explained.why(job.id()).await, Cause::Assignment);
    assert!(client.workers().await.unwrap()[0].shunned_until.is_some());
    fake.lead().await;
    assert_eq!(client.workers().await.unwrap()[0].shunned_until, None);
}
