//! Waiting for results: a few jobs by watches, many by polling.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bellwether::client::{Error, IfExists, MAX_WATCHED, ResultError, WaitError, WaitReason};
use bellwether::{Job, JobKind, State};
use bellwether_core::job::Ending;
use bellwether_core::path;
use bellwether_testkit::{Proxy, Request, eventually, namespace, op};

use crate::fake_cluster::{FakeCluster, SOON, client, id};

struct Sum;

impl JobKind for Sum {
    const NAME: &'static str = "sum";
    type Payload = Vec<i64>;
    type Result = i64;
}

#[tokio::test]
async fn a_typed_job_returns_its_typed_result() {
    let to = namespace("typed");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 1, &[]).await;
    let job = client.submit(Sum::job(&vec![1, 2])).await.unwrap();
    let (three, ()) = tokio::join!(job.result(SOON), fake.succeed(job.id(), worker, "3"));
    assert_eq!(three.unwrap(), 3);

    let odd = client.submit(Sum::job(&vec![])).await.unwrap();
    fake.succeed(odd.id(), worker, "\"three\"").await;
    let error = odd.result(SOON).await.unwrap_err();
    assert!(matches!(error, ResultError::Type { .. }), "{error}");

    let dead = client.submit(Sum::job(&vec![0]).max_attempts(1)).await.unwrap();
    fake.assign(dead.id(), worker).await;
    fake.close(dead.id(), worker, Ending::Failed("boom".into())).await;
    let error = dead.result(SOON).await.unwrap_err().to_string();
    assert!(error.ends_with("has no result: dead: boom"), "{error}");
}

/// The removal of a watch is a request, which would delay the caller's next one.
#[tokio::test]
async fn a_wait_leaves_no_watch_to_remove() {
    let to = namespace("wait-watches");
    let proxy = Proxy::to(&to);
    let (client, fake) = (client(&proxy.connect_string()).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 1, &[]).await;
    let (watching, removals) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (reads, removed) = (Arc::clone(&watching), Arc::clone(&removals));
    let _observes = proxy.hold_reply(move |request: &Request<'_>| {
        // The last byte of a read is whether it sets a watch.
        let sets_watch = request.op == op::GET_DATA && request.body.last() == Some(&1);
        reads.fetch_add(usize::from(sets_watch), Relaxed);
        removed.fetch_add(usize::from(request.op == op::REMOVE_WATCHES), Relaxed);
        false
    });
    let job = client.submit(Sum::job(&vec![1, 2])).await.unwrap();
    let ends = async {
        eventually("the wait has set its watch", SOON, async || watching.load(Relaxed) == 1).await;
        fake.succeed(job.id(), worker, "3").await;
    };
    let (three, ()) = tokio::join!(job.result(SOON), ends);
    assert_eq!(three.unwrap(), 3);
    // A removal would be ahead of this read.
    client.get(job.id()).await.unwrap();
    assert_eq!((watching.load(Relaxed), removals.load(Relaxed)), (1, 0));
}

#[tokio::test]
async fn many_jobs_are_waited_for_by_watches_and_by_polling() {
    let to = namespace("wait-many");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 4_096, &[]).await;
    for count in [MAX_WATCHED, 3 * MAX_WATCHED] {
        let jobs = (0..count).map(|n| Job::new("sum", &n).id(format!("job-{count}-{n}")));
        let ids = client.submit_many(jobs, |_| {}).await;
        let ids = ids.into_iter().map(|job| job.unwrap().id().clone()).collect::<Vec<_>>();
        let work = async {
            for (n, job) in ids.iter().enumerate() {
                fake.succeed(job, worker, &n.to_string()).await;
            }
        };
        let mut told = 0;
        let (answers, ()) = tokio::join!(client.wait_many(&ids, SOON, |over| told = over), work);
        assert_eq!(told, count);
        for (n, answer) in answers.into_iter().enumerate() {
            assert_eq!(answer.unwrap().result.unwrap().bytes(), n.to_string().as_bytes());
        }
    }
}

/// S23: a server that lags may still show the end of an earlier generation.
#[tokio::test]
async fn a_wait_for_many_handles_is_not_answered_by_an_earlier_generation() {
    let to = namespace("wait-generations");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 4_096, &[]).await;
    for count in [1, MAX_WATCHED + 1] {
        let job = |n| Job::new("sum", &n).id(format!("{count}-{n}")).if_exists(IfExists::Again);
        let submit = async || {
            let handles = client.submit_many((0..count).map(job), |_| {}).await;
            handles.into_iter().map(Result::unwrap).collect::<Vec<_>>()
        };
        let first = submit().await;
        fake.succeed(first[0].id(), worker, "1").await;
        let ended = fake.read(path::record(first[0].id())).await.data;
        let again = submit().await;
        assert_eq!(again[0].generation(), 2);
        fake.overwrite(path::record(first[0].id()), ended).await;
        let within = Duration::from_millis(100);
        let state = client.wait_for_many(&first, within, |_| {}).await.remove(0).unwrap().state;
        assert_eq!(state, State::Succeeded);
        let early = client.wait_for_many(&again, within, |_| {}).await.remove(0);
        assert!(matches!(early, Err(WaitError::TimedOut { .. })), "{early:?}");
    }
}

#[tokio::test]
async fn a_timed_out_wait_shows_why_the_job_waits() {
    let client = client(&namespace("run-out")).await;
    let job = client.submit(Job::new("sum", &1).id("a")).await.unwrap();
    let error = job.wait(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "job a has not ended after 50ms: queued: no live worker has a handler for its kind"
    );
    let WaitError::TimedOut { last: Some(last), .. } = error else { panic!("{error:?}") };
    assert_eq!(last.waiting, Some(WaitReason::UnknownKind));
}

#[tokio::test]
async fn a_wait_for_many_reports_unfinished_absent_and_corrupt_jobs() {
    let to = namespace("mixed");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 9, &[]).await;
    let jobs = (0..MAX_WATCHED + 2).map(|n| Job::new("sum", &n).id(format!("job-{n}")));
    let mut ids = Vec::new();
    for job in client.submit_many(jobs, |_| {}).await {
        ids.push(job.unwrap().id().clone());
    }
    fake.succeed(&ids[1], worker, "1").await;
    fake.overwrite(path::record(&ids[2]), b"garbage".to_vec()).await;
    ids[3] = id("nobody");
    for ids in [&ids[..], &ids[..4]] {
        let answers = client.wait_many(ids, Duration::from_secs(2), |_| {}).await;
        assert!(matches!(answers[0], Err(WaitError::TimedOut { .. })), "{:?}", answers[0]);
        assert_eq!(answers[1].as_ref().unwrap().state, State::Succeeded);
        assert_eq!(answers[2].as_ref().unwrap().state, State::Quarantined);
        assert!(matches!(&answers[3], Err(WaitError::Client(Error::NotFound(_)))), "{:?}", answers[3]);
    }
}
