//! Repeated submissions, although the cipher never returns the same bytes twice.

use bellwether::client::{Accepted, IfExists, SubmitError};
use bellwether::{Client, Job, JobHandle, JobKind, State};
use bellwether_testkit::{Cut, Proxy, Request, op};

use crate::stage::{Records, SOON, Shout, client, cluster, id, keys, shouting};

fn job(text: &str) -> Job<Shout> {
    Shout::job(&text.to_owned()).id("a")
}

async fn accepted(client: &Client, job: Job<Shout>) -> Result<Accepted, SubmitError> {
    client.submit(job).await.map(|job: JobHandle<Shout>| job.accepted())
}

/// S11
#[tokio::test]
async fn the_same_id_and_plain_payload_again_is_the_same_job() {
    let cluster = cluster(shouting()).await;
    let client = client(&cluster, keys()).await;
    assert_eq!(accepted(&client, job("x")).await, Ok(Accepted::New));
    let stored = Records::of(&cluster).await.read("a").await;
    assert_eq!(accepted(&client, job("x")).await, Ok(Accepted::Same));
    let conflict = accepted(&client, job("y")).await.unwrap_err();
    assert!(matches!(conflict, SubmitError::Conflict { same_kind: true, .. }), "{conflict}");
    assert_eq!(accepted(&client, job("x").if_exists(IfExists::Ignore)).await, Ok(Accepted::Same));
    assert_eq!(accepted(&client, job("y").if_exists(IfExists::Ignore)).await, Ok(Accepted::Other));
    // Concurrent submissions of one client share a round.
    let (one, two) = tokio::join!(accepted(&client, job("x")), accepted(&client, job("x")));
    assert_eq!((one, two), (Ok(Accepted::Same), Ok(Accepted::Same)));
    assert_eq!(Records::of(&cluster).await.read("a").await.payload, stored.payload);
    // A client without the codec cannot compare.
    let plain = accepted(cluster.client(), job("x")).await.unwrap_err();
    assert!(matches!(plain, SubmitError::Conflict { .. }), "{plain}");
    cluster.stop().await.unwrap();
}

/// S11
#[tokio::test]
async fn an_ended_job_is_opened_again_by_the_same_plain_payload() {
    let cluster = cluster(shouting()).await;
    let client = client(&cluster, keys()).await;
    let again = |text| job(text).if_exists(IfExists::Again);
    let first = client.submit(again("x")).await.unwrap();
    assert_eq!(first.result(SOON).await.unwrap(), "X");
    let stored = Records::of(&cluster).await.read("a").await.payload;
    let second = client.submit(again("x")).await.unwrap();
    assert_eq!(second.accepted(), Accepted::Again(2));
    assert_eq!(second.result(SOON).await.unwrap(), "X");
    assert_ne!(Records::of(&cluster).await.read("a").await.payload, stored, "encrypted anew");
    assert!(matches!(client.submit(again("y")).await, Err(SubmitError::Conflict { .. })));
    assert_eq!(client.wait(&id("a"), SOON).await.unwrap().state, State::Succeeded);
    cluster.stop().await.unwrap();
}

/// A job that was submitted before the codec was introduced.
#[tokio::test]
async fn a_job_that_is_stored_plain_is_the_same_job() {
    let cluster = cluster(shouting()).await;
    assert_eq!(accepted(cluster.client(), job("x")).await, Ok(Accepted::New));
    let client = client(&cluster, keys()).await;
    assert_eq!(accepted(&client, job("x")).await, Ok(Accepted::Same));
    assert!(matches!(accepted(&client, job("y")).await, Err(SubmitError::Conflict { .. })));
    cluster.stop().await.unwrap();
}

/// S1, S11
#[tokio::test]
async fn a_submission_with_a_lost_reply_is_accepted_once_and_again_as_the_same_job() {
    let cluster = cluster(shouting()).await;
    for cut in [Cut::Fin, Cut::Reset] {
        let proxy = Proxy::to(&cluster.zookeeper());
        let client = Client::builder(proxy.connect_string()).payload_codec(keys()).deadline(SOON);
        let client = client.connect().await.unwrap();
        let id = format!("lost-{cut:?}").to_lowercase();
        let about = id.clone();
        let lost = move |request: &Request<'_>| request.op == op::MULTI && request.mentions(&about);
        let fault = proxy.swallow_reply_and_cut(lost, cut);
        let job = || Shout::job(&"x".to_owned()).id(&id);
        assert_eq!(accepted(&client, job()).await, Ok(Accepted::New), "the record has our token");
        fault.fired().await;
        assert_eq!(accepted(&client, job()).await, Ok(Accepted::Same));
        let end = client.wait(&crate::stage::id(&id), SOON).await.unwrap();
        assert_eq!((end.state, end.attempt), (State::Succeeded, 1));
    }
    cluster.stop().await.unwrap();
}
