//! Changed records, and codecs that fail or hang.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use bellwether::client::SubmitError;
use bellwether::testing::Cluster;
use bellwether::{Client, CodecContext, CodecError, Job, JobKind, Payload, PayloadCodec, State};

use crate::stage::{Records, SOON, Shout, client, id, keys, shouting, with_keys};

/// Submits jobs `a` and `b` while there is no worker.
async fn two_waiting_jobs() -> (Cluster, Client, Records) {
    let cluster = with_keys(shouting(), keys()).nodes(0).start().await.unwrap();
    let client = client(&cluster, keys()).await;
    for name in ["a", "b"] {
        client.submit(Shout::job(&name.to_owned()).id(name).max_attempts(5)).await.unwrap();
    }
    let records = Records::of(&cluster).await;
    (cluster, client, records)
}

async fn dead_after_one_attempt(client: &Client, name: &str) -> String {
    let end = client.wait(&id(name), SOON).await.unwrap();
    assert_eq!((end.state, end.attempt), (State::Dead, 1), "{end:?}");
    end.error.unwrap()
}

#[tokio::test]
async fn a_changed_payload_ends_its_job_without_running_the_handler() {
    let (mut cluster, client, records) = two_waiting_jobs().await;
    records
        .change("a", |record| {
            let mut bytes = record.payload.bytes().to_vec();
            *bytes.last_mut().unwrap() ^= 1;
            record.payload = Payload::new(record.payload.content_type().clone(), bytes).unwrap();
        })
        .await;
    records
        .change("b", |record| {
            record.payload = Payload::new(record.payload.content_type().clone(), *b"BWE").unwrap();
        })
        .await;
    cluster.add().await.unwrap();
    let changed = dead_after_one_attempt(&client, "a").await;
    assert!(changed.contains("it was changed, belongs to another job"), "{changed}");
    let cut = dead_after_one_attempt(&client, "b").await;
    assert!(cut.contains("it is not encrypted in a known format"), "{cut}");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn the_payload_of_another_job_is_refused() {
    let (mut cluster, client, records) = two_waiting_jobs().await;
    let moved = records.read("b").await.payload;
    records.change("a", |record| record.payload = moved).await;
    cluster.add().await.unwrap();
    let why = dead_after_one_attempt(&client, "a").await;
    assert!(why.contains("belongs to another job"), "{why}");
    assert_eq!(client.wait(&id("b"), SOON).await.unwrap().state, State::Succeeded);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn the_payload_of_a_job_is_not_accepted_as_its_result() {
    let (mut cluster, client, records) = two_waiting_jobs().await;
    cluster.add().await.unwrap();
    client.wait(&id("a"), SOON).await.unwrap();
    records
        .change("a", |record| {
            let payload = record.payload.clone();
            let bellwether_core::job::JobState::Terminal { verdict, .. } = &mut record.state else {
                panic!()
            };
            *verdict = bellwether_core::job::Verdict::Succeeded(payload);
        })
        .await;
    let refused = client.get(&id("a")).await.unwrap_err();
    assert!(refused.to_string().starts_with("the result of job a cannot be decoded"), "{refused}");
    cluster.stop().await.unwrap();
}

/// Fails to decode until it was asked this many times.
#[derive(Clone)]
struct Shaky(Arc<AtomicU32>);

impl PayloadCodec for Shaky {
    async fn encode(&self, plain: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
        Ok(plain)
    }

    async fn decode(&self, encoded: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
        if self.0.fetch_add(1, Relaxed) < 2 {
            return Err(CodecError::retryable("the store is not reachable"));
        }
        Ok(encoded)
    }
}

#[tokio::test]
async fn an_attempt_is_retried_if_the_codec_says_so() {
    let shaky = Shaky(Arc::default());
    let codec = shaky.clone();
    let cluster = Cluster::builder(shouting()).configure(move |_, node| node.payload_codec(codec.clone()));
    let cluster = cluster.start().await.unwrap();
    let client = client(&cluster, shaky).await;
    let short = Duration::from_millis(10);
    let job = Shout::job(&"a".to_owned()).max_attempts(3).backoff(short, short);
    let end = client.submit(job).await.unwrap().wait(SOON).await.unwrap();
    assert_eq!((end.state, end.attempt, end.failures), (State::Succeeded, 3, 2));
    let why = end.error.unwrap();
    assert!(why.ends_with("cannot be decoded: the store is not reachable"), "{why}");
    cluster.stop().await.unwrap();
}

struct Hangs;

impl PayloadCodec for Hangs {
    async fn encode(&self, _: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
        std::future::pending().await
    }

    async fn decode(&self, _: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_codec_that_hangs_fails_the_submission_at_the_deadline_and_nothing_is_sent() {
    let cluster = with_keys(shouting(), keys()).start().await.unwrap();
    let deadline = Duration::from_secs(2);
    let client = Client::builder(cluster.zookeeper()).payload_codec(Hangs).deadline(deadline);
    let client = client.connect().await.unwrap();
    let job = Job::new("shout", "a").id("a");
    let late = client.submit(job).await.unwrap_err();
    assert!(matches!(&late, SubmitError::Encode { .. }) && late.is_retryable(), "{late}");
    assert_eq!(cluster.client().get(&id("a")).await.unwrap(), None);
    cluster.stop().await.unwrap();
}
