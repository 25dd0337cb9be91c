//! Schedules, whose payload is encoded once for all of their jobs.

use std::time::Duration;

use bellwether::client::{Accepted, Added, IfExists, ScheduleError};
use bellwether::codec::{CodecContext, CodecError, PayloadCodec};
use bellwether::{JobKind, Schedule, State};

use crate::cipher::Keys;
use crate::stage::{Records, SOON, Shout, client, cluster, id, keys, shouting};

const DAY: Duration = Duration::from_secs(86_400);

fn daily(text: &str) -> Schedule {
    Schedule::every("daily", DAY, Shout::job(&text.to_owned()))
}

#[tokio::test]
async fn a_schedule_with_an_encoded_payload_is_added_once_and_its_jobs_run() {
    let cluster = cluster(shouting()).await;
    let client = client(&cluster, keys()).await;
    let schedules = client.schedules();
    assert_eq!(schedules.add(&daily("x")).await, Ok(Added::Created));
    assert_eq!(schedules.add(&daily("x")).await, Ok(Added::Unchanged));
    let conflict = schedules.add(&daily("y")).await.unwrap_err();
    assert!(matches!(conflict, ScheduleError::Conflict { differs: "payload", .. }), "{conflict}");
    let name = bellwether::ScheduleId::new("daily").unwrap();
    let job = schedules.trigger(&name).await.unwrap();
    let end = client.wait(job.id(), SOON).await.unwrap();
    assert_eq!(end.result.unwrap().bytes(), b"\"X\"");
    let stored = Records::of(&cluster).await.read(job.id().as_str()).await.payload;
    assert_eq!(stored.content_type().as_str(), "application/vnd.bellwether.encoded; scope=kind");

    // A lost key is repaired by a replacement.
    let other = crate::stage::client(&cluster, Keys::new(2, [2; 32]).also(1, [9; 32])).await;
    assert!(matches!(other.schedules().add(&daily("x")).await, Err(ScheduleError::Conflict { .. })));
    assert_eq!(other.schedules().add(&daily("x").replace(true)).await, Ok(Added::Replaced));
    cluster.stop().await.unwrap();
}

/// Stores the number of bytes.
struct Zeros;

impl PayloadCodec for Zeros {
    async fn encode(&self, plain: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
        Ok(plain.len().to_be_bytes().to_vec())
    }

    async fn decode(&self, _: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
        Err(CodecError::invalid("it is not needed"))
    }
}

#[tokio::test]
async fn the_limit_of_a_schedules_payload_applies_to_the_encoded_bytes() {
    let cluster = cluster(shouting()).await;
    let large = daily(&"0".repeat(17 * 1024));
    assert!(large.check().unwrap_err().to_string().contains("payload"));
    assert!(large.preview(std::time::SystemTime::now(), 1).is_ok());
    assert_eq!(client(&cluster, Zeros).await.schedules().add(&large).await, Ok(Added::Created));
    let plain = cluster.client().schedules().add(&large.replace(true)).await;
    assert!(plain.unwrap_err().to_string().contains("payload"));
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_client_opens_the_one_job_of_a_schedule_with_the_bytes_of_the_schedule() {
    let cluster = cluster(shouting()).await;
    let client = client(&cluster, keys()).await;
    let schedule = daily("x").job_id("one");
    client.schedules().add(&schedule).await.unwrap();
    let name = bellwether::ScheduleId::new("daily").unwrap();
    client.schedules().trigger(&name).await.unwrap();
    client.wait(&id("one"), SOON).await.unwrap();
    let records = Records::of(&cluster).await;
    let stored = records.read("one").await.payload;
    let again = Shout::job(&"x".to_owned()).id("one").if_exists(IfExists::Again);
    let again = client.submit(again).await.unwrap();
    assert_eq!(again.accepted(), Accepted::Again(2));
    assert_eq!(again.wait(SOON).await.unwrap().state, State::Succeeded);
    // Otherwise the next tick would find another payload and be skipped.
    assert_eq!(records.read("one").await.payload, stored);
    assert!(!client.schedules().trigger(&name).await.unwrap().is_duplicate());
    cluster.stop().await.unwrap();
}
