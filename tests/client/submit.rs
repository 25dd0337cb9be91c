//! Submitting jobs: acceptance, duplicates, conflicts, many jobs, and full buckets.

use bellwether::client::{SubmitError, WaitReason};
use bellwether::{Job, State};
use bellwether_core::budget::MAX_BUCKET_ENTRIES;
use bellwether_core::path::{self, SubBucket};
use bellwether_core::txn::{Lifetime, Op};
use bellwether_testkit::namespace;

use crate::fake_cluster::{FakeCluster, client, id};

#[tokio::test]
async fn an_accepted_job_is_queued_and_shows_why_it_waits() {
    let to = namespace("submit");
    let client = client(&to).await;
    let job = client.submit(Job::new("sum", &[1, 2]).id("one").tags(["gpu"])).await.unwrap();
    assert_eq!((job.id().as_str(), job.is_duplicate()), ("one", false));
    let waiting = async || {
        let view = client.get(job.id()).await.unwrap().unwrap();
        assert_eq!((view.state, view.attempt), (State::Queued, 0));
        view.waiting.unwrap()
    };
    assert_eq!(waiting().await, WaitReason::UnknownKind);

    let fake = FakeCluster::new(&to).await;
    fake.worker(&["sum"], 1, &["cpu"]).await;
    assert_eq!(waiting().await, WaitReason::Tags);
    let able = fake.worker(&["sum"], 1, &["gpu"]).await;
    assert_eq!(waiting().await, WaitReason::NoLeader);
    fake.lead().await;
    assert!(client.leader().await.unwrap().unwrap().standing);
    assert_eq!(waiting().await, WaitReason::Assignment);
    let other = client.submit(Job::new("sum", &3)).await.unwrap();
    fake.assign(other.id(), able).await;
    assert_eq!(waiting().await, WaitReason::Busy);
    let running = client.get(other.id()).await.unwrap().unwrap();
    assert_eq!((running.state, running.attempt, running.worker), (State::Running, 1, Some(able)));
    assert_eq!(running.node.unwrap().as_str(), "by-hand");
}

#[tokio::test]
async fn a_job_that_was_never_submitted_is_absent() {
    let client = client(&namespace("absent")).await;
    assert_eq!(client.get(&id("nobody")).await.unwrap(), None);
}

/// S11.
#[tokio::test]
async fn one_id_is_one_job_for_all_clients_and_another_payload_is_a_conflict() {
    let to = namespace("same-id");
    let (one, two) = (client(&to).await, client(&to).await);
    let job = |payload: i32| Job::new("sum", &payload).id("a");
    assert!(!one.submit(job(1)).await.unwrap().is_duplicate());
    assert!(one.submit(job(1)).await.unwrap().is_duplicate());
    assert!(two.submit(job(1)).await.unwrap().is_duplicate());
    let conflict = two.submit(job(2)).await.unwrap_err();
    assert_eq!(
        conflict.to_string(),
        "job id a belongs to another job, of kind sum and another payload: choose another id"
    );
    let conflict = two.submit(Job::new("product", &1).id("a")).await.unwrap_err();
    assert!(matches!(conflict, SubmitError::Conflict { .. }), "{conflict}");
}

/// S11, in one batch: the first one sent wins, and the others are duplicates.
#[tokio::test]
async fn the_same_id_many_times_concurrently_is_one_job() {
    let client = client(&namespace("at-once")).await;
    let jobs = (0..300).map(|_| Job::new("sum", &1).id("a"));
    let answers = client.submit_many(jobs, |_| {}).await;
    let duplicates = answers.into_iter().filter(|answer| answer.as_ref().unwrap().is_duplicate()).count();
    assert_eq!(duplicates, 299);
}

#[tokio::test]
async fn a_thousand_jobs_are_accepted_despite_one_id_in_use() {
    let to = namespace("thousand");
    let client = client(&to).await;
    client.submit(Job::new("sum", &"other").id("job-500")).await.unwrap();
    let jobs = (0..1_000).map(|n| Job::new("sum", &n).id(format!("job-{n}")));
    let mut told = Vec::new();
    let answers = client.submit_many(jobs, |done| told.push(done)).await;
    assert_eq!(told, (1..=1_000).collect::<Vec<_>>());
    for (n, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(job) => assert_eq!(job.id().as_str(), format!("job-{n}")),
            Err(error) => assert!(n == 500 && matches!(error, SubmitError::Conflict { .. }), "{n}: {error}"),
        }
    }
    let fake = FakeCluster::new(&to).await;
    assert_eq!(fake.ready().await.len(), 1_000);
}

#[tokio::test]
async fn the_largest_payloads_are_accepted_in_several_batches() {
    let to = namespace("large");
    let client = client(&to).await;
    let jobs = (0..20).map(|n| Job::raw("blob", "application/octet-stream", vec![n; 65_536]));
    for answer in client.submit_many(jobs, |_| {}).await {
        answer.unwrap();
    }
}

#[tokio::test]
async fn an_invalid_job_is_refused_before_anything_is_written() {
    let to = namespace("bad");
    let client = client(&to).await;
    let error = client.submit(Job::new("sum", &1).id("a/b")).await.unwrap_err();
    assert_eq!(error.to_string(), "job id has '/' at byte 1: only [A-Za-z0-9._-] are allowed");
    assert!(matches!(error, SubmitError::Invalid(_)));
}

#[tokio::test]
async fn a_full_bucket_refuses_jobs_and_other_buckets_do_not() {
    let to = namespace("overloaded");
    let client = client(&to).await;
    let fake = FakeCluster::new(&to).await;
    let job = Job::new("sum", &1).id("a");
    let parent = SubBucket::of(&id("a"));
    for from in (0..MAX_BUCKET_ENTRIES).step_by(500) {
        let create = |n| Op::Create {
            path: format!("{}/filler-{n}", parent.path()),
            data: Vec::new(),
            lifetime: Lifetime::Persistent,
        };
        fake.apply((from..from + 500).map(create).collect()).await;
    }
    let error = client.submit(job).await.unwrap_err();
    assert!(matches!(error, SubmitError::Overloaded { entries: MAX_BUCKET_ENTRIES, .. }), "{error}");
    assert_eq!(fake.zk.get(path::record(&id("a"))).await.unwrap(), None);
    assert_ne!(SubBucket::of(&id("b")), parent);
    client.submit(Job::new("sum", &1).id("b")).await.unwrap();
}

/// The objects of a job whose record cannot be read must not be removed either.
#[tokio::test]
async fn a_job_exists_while_it_has_a_record_readable_or_not() {
    let to = namespace("exist");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    for name in ["open", "ended", "unreadable"] {
        client.submit(Job::new("sum", &1).id(name)).await.unwrap();
    }
    client.cancel(&id("ended")).await.unwrap();
    fake.overwrite(path::record(&id("unreadable")), b"no record".to_vec()).await;
    let ids = ["never", "open", "ended", "unreadable"].map(id);
    assert_eq!(client.exist(&ids).await.unwrap(), [false, true, true, true]);
    assert!(client.exist(&[]).await.unwrap().is_empty());
}
