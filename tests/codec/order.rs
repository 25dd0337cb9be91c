//! Lanes keep the order of submissions, although some payloads take longer to encode.

use std::sync::Arc;

use bellwether::client::IfExists;
use bellwether::{CodecContext, CodecError, Job, PayloadCodec};
use futures::FutureExt;
use tokio::sync::Semaphore;

use crate::stage::{Records, client, id, keys, shouting, with_keys};

/// Encodes the payload of job `slow` after a permit.
#[derive(Clone)]
struct Gate(Arc<Semaphore>);

impl PayloadCodec for Gate {
    async fn encode(&self, plain: Vec<u8>, context: &CodecContext) -> Result<Vec<u8>, CodecError> {
        if context.job == Some(id("slow")) {
            self.0.acquire().await.map_err(CodecError::invalid)?.forget();
        }
        Ok(plain)
    }

    async fn decode(&self, encoded: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
        Ok(encoded)
    }
}

fn job(name: &str) -> Job {
    Job::new("shout", name).id(name).lane("account-7").if_exists(IfExists::Same)
}

#[tokio::test]
async fn a_job_of_a_lane_waits_until_the_earlier_ones_are_encoded() {
    let cluster = with_keys(shouting(), keys()).nodes(0).start().await.unwrap();
    let gate = Gate(Arc::new(Semaphore::new(0)));
    let client = client(&cluster, gate.clone()).await;
    let mut slow = Box::pin(client.submit(job("slow")));
    let mut fast = Box::pin(client.submit(job("fast")));
    assert!(slow.as_mut().now_or_never().is_none());
    assert!(fast.as_mut().now_or_never().is_none());
    client.submit(Job::new("shout", "other").lane("account-8")).await.unwrap();
    let waits = async {
        gate.0.add_permits(1);
        tokio::join!(slow, fast)
    };
    let (slow, fast) = waits.await;
    slow.unwrap();
    fast.unwrap();
    let view = client.get(&id("fast")).await.unwrap().unwrap();
    assert_eq!(view.behind, Some(id("slow")));
    let records = Records::of(&cluster).await;
    assert!(records.read("slow").await.submitted_at <= records.read("fast").await.submitted_at);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_dropped_submission_does_not_delay_its_lane() {
    let cluster = with_keys(shouting(), keys()).nodes(0).start().await.unwrap();
    let client = client(&cluster, Gate(Arc::new(Semaphore::new(0)))).await;
    let mut slow = Box::pin(client.submit(job("slow")));
    assert!(slow.as_mut().now_or_never().is_none());
    let mut fast = Box::pin(client.submit(job("fast")));
    assert!(fast.as_mut().now_or_never().is_none());
    drop(slow);
    fast.await.unwrap();
    assert_eq!(client.get(&id("slow")).await.unwrap(), None);
    cluster.stop().await.unwrap();
}
