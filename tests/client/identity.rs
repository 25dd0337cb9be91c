//! Job ids: named jobs, and submitting a job again.

use std::time::Duration;

use bellwether::client::{Accepted, IfExists, SubmitError};
use bellwether::{Job, JobHandle, State};
use bellwether_core::job::{Ending, Payload};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::txn::Op;
use bellwether_testkit::{Cut, Proxy, Request, namespace, op};

use crate::fake_cluster::{FakeCluster, client, id};

fn result() -> Ending {
    Ending::Succeeded(Payload::json(*b"3").unwrap())
}

fn again(payload: i32) -> Job {
    Job::new("sum", &payload).named("nightly").if_exists(IfExists::Again)
}

#[tokio::test]
async fn a_named_job_has_its_kind_in_its_id_and_no_explicit_id_can_collide() {
    let client = client(&namespace("named")).await;
    let job = client.submit(Job::new("sum", &1).named("nightly")).await.unwrap();
    assert_eq!(job.id().as_str(), "sum:nightly");
    let other = client.submit(Job::new("product", &1).named("nightly")).await.unwrap();
    assert_eq!(other.accepted(), Accepted::New);
    let refused = client.submit(Job::new("sum", &2).id("sum:nightly")).await.unwrap_err();
    assert!(matches!(refused, SubmitError::Invalid(_)), "{refused}");
    assert!(client.get(&id("sum:nightly")).await.unwrap().is_some());
}

/// S11
#[tokio::test]
async fn ignore_accepts_any_existing_job_and_reports_it() {
    let client = client(&namespace("ignore")).await;
    let job = |payload: i32| Job::new("sum", &payload).id("a").if_exists(IfExists::Ignore);
    let accepted = async |job| client.submit(job).await.map(|job: JobHandle| job.accepted());
    assert_eq!(accepted(job(1)).await, Ok(Accepted::New));
    assert_eq!(accepted(job(1)).await, Ok(Accepted::Same));
    assert_eq!(accepted(job(2)).await, Ok(Accepted::Other));
    assert_eq!(client.get(&id("a")).await.unwrap().unwrap().payload.unwrap().bytes(), b"1");
}

/// S2, S11
#[tokio::test]
async fn again_reopens_only_ended_jobs_as_a_new_generation() {
    let to = namespace("again");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 1, &[]).await;
    let job = client.submit(again(1)).await.unwrap();
    assert_eq!(job.accepted(), Accepted::New);
    assert_eq!(client.submit(again(1)).await.unwrap().accepted(), Accepted::Same, "the job is open");
    fake.assign(job.id(), worker).await;
    fake.close(job.id(), worker, Ending::Failed("boom".into())).await;
    assert_eq!(
        client.submit(again(1)).await.unwrap().accepted(),
        Accepted::Same,
        "the job waits for its backoff"
    );
    client.cancel(job.id()).await.unwrap();
    let conflict = client.submit(again(2)).await.unwrap_err();
    assert!(matches!(conflict, SubmitError::Conflict { .. }), "{conflict}");
    let opened = client.submit(again(1).priority(9).lane("l").max_attempts(7)).await.unwrap();
    assert_eq!((opened.accepted(), opened.is_duplicate()), (Accepted::Again(2), false));
    let view = client.get(job.id()).await.unwrap().unwrap();
    assert_eq!(
        (view.state, view.generation, view.failures, view.options.as_ref().unwrap().priority),
        (State::Queued, 2, 0, Some(9))
    );
    assert_eq!((view.lane.unwrap().as_str(), view.error.as_deref()), ("l", Some("boom")));
    fake.assign(job.id(), worker).await;
    fake.close(job.id(), worker, result()).await;
    let opened = client.submit(again(1)).await.unwrap();
    assert_eq!(opened.accepted(), Accepted::Again(3), "a successful job is reopened, too");
    let later = client.submit(again(1).delay(Duration::from_secs(600))).await.unwrap_err();
    assert!(later.to_string().contains("reopened immediately"), "{later}");
}

#[tokio::test]
async fn one_of_many_concurrent_submissions_reopens_a_job() {
    let to = namespace("again-at-once");
    let one = client(&to).await;
    let job = one.submit(again(1)).await.unwrap();
    one.cancel(job.id()).await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(client(&to).await);
    }
    let submits = clients.iter().flat_map(|client| [client.submit(again(1)), client.submit(again(1))]);
    let answers = futures::future::join_all(submits).await;
    let opened = answers.into_iter().map(|answer| answer.unwrap().accepted()).collect::<Vec<_>>();
    assert_eq!(opened.iter().filter(|accepted| **accepted == Accepted::Again(2)).count(), 1, "{opened:?}");
    assert_eq!(one.get(job.id()).await.unwrap().unwrap().generation, 2);
}

#[tokio::test]
async fn a_reopened_job_whose_record_was_deleted_is_new() {
    let to = namespace("again-deleted");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let job = client.submit(again(1)).await.unwrap();
    client.cancel(job.id()).await.unwrap();
    fake.apply(vec![Op::Delete { path: path::record(job.id()), version: None }]).await;
    assert_eq!(client.submit(again(1)).await.unwrap().accepted(), Accepted::New);
}

/// S2, S11: what if the reply is lost?
#[tokio::test]
async fn a_reopening_with_a_lost_reply_is_applied_once() {
    let to = namespace("again-lost");
    let proxy = Proxy::to(&to);
    let behind = client(&proxy.connect_string()).await;
    let fake = FakeCluster::new(&to).await;
    let job = behind.submit(again(1)).await.unwrap();
    behind.cancel(job.id()).await.unwrap();
    let reopen = |request: &Request<'_>| {
        request.op == op::MULTI && request.mentions("/ready/") && request.mentions("/jobs/")
    };
    let lost = proxy.swallow_reply_and_cut(reopen, Cut::Fin);
    let opened = behind.submit(again(1)).await.unwrap();
    assert!(lost.has_fired());
    assert_eq!(opened.accepted(), Accepted::Again(2));
    let dropped = {
        behind.cancel(job.id()).await.unwrap();
        proxy.drop_request_and_cut(reopen, Cut::Fin)
    };
    assert_eq!(behind.submit(again(1)).await.unwrap().accepted(), Accepted::Again(3));
    assert!(dropped.has_fired());
    let (record, _) = fake.record(job.id()).await;
    assert_eq!((record.generation, record.is_terminal()), (3, false));
    let entry = fake.entry(job.id()).await;
    let gone = fake.zk.commit(vec![Op::Delete { path: entry, version: Some(0) }]).await;
    assert_eq!(gone, Outcome::Applied(()), "it is queued once");
}
