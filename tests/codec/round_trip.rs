//! The plain bytes are visible only to programs with the key.

use std::sync::{Arc, Mutex};

use bellwether::client::{Error, JobError, JobOptions, ResultError, SubmitError};
use bellwether::handler::{dead_letter, raw};
use bellwether::{
    Client, ContentType, HandlerError, Handlers, Job, JobKind, Payload, State, Untyped, handler,
};
use bellwether_testkit::eventually;

use crate::stage::{Records, SOON, Shout, client, cluster, id, keys, shouting, with_keys};

const ENCODED: &str = "application/vnd.bellwether.encoded";

fn reveals(payload: &Payload, secret: &str) -> bool {
    payload.bytes().windows(secret.len()).any(|window| window.eq_ignore_ascii_case(secret.as_bytes()))
}

#[tokio::test]
async fn payload_and_result_are_stored_encrypted_and_read_plain() {
    let cluster = cluster(shouting()).await;
    let client = client(&cluster, keys()).await;
    let job = client.submit(Shout::job(&"secret".to_owned()).id("a")).await.unwrap();
    assert_eq!(job.result(SOON).await.unwrap(), "SECRET");

    // A client without a codec, such as the command, the console or the gateway.
    let view = cluster.client().get(&id("a")).await.unwrap().unwrap();
    for stored in [view.payload.as_ref().unwrap(), view.result.as_ref().unwrap()] {
        assert_eq!(stored.content_type().as_str(), ENCODED);
        assert!(!reveals(stored, "secret"));
    }
    let refused = view.typed_result::<Shout>().unwrap_err();
    assert!(matches!(refused, ResultError::Encoded(of) if of == id("a")));
    assert_eq!(view.typed_result::<Untyped>().unwrap(), view.result.unwrap());

    let view = client.get(&id("a")).await.unwrap().unwrap();
    assert_eq!(view.result.as_ref().unwrap().bytes(), b"\"SECRET\"");
    assert_eq!(view.payload.as_ref().unwrap().content_type().as_str(), ENCODED);
    let many = client.get_many(&[id("a"), id("b")]).await.unwrap();
    assert_eq!(
        many.iter().map(|view| Some(view.as_ref()?.result.clone())).collect::<Vec<_>>(),
        [Some(view.result.clone()), None]
    );
    let payload = client.decode_payload(&view).await.unwrap();
    assert_eq!(payload, Some(Payload::json(*b"\"secret\"").unwrap()));
    let waited = client.wait_many(&[id("a")], SOON, |_| {}).await;
    assert_eq!(waited[0].as_ref().unwrap().result.as_ref().unwrap().bytes(), b"\"SECRET\"");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn the_content_type_of_a_raw_payload_and_result_is_kept() {
    let echo = Handlers::new().add(raw("echo", |context| async move { Ok(context.payload().clone()) }));
    let cluster = cluster(echo).await;
    let client = client(&cluster, keys()).await;
    let job = client.submit(Job::raw("echo", "image/png", *b"\x89PNG")).await.unwrap();
    let result = job.result(SOON).await.unwrap();
    assert_eq!(result, Payload::new(ContentType::new("image/png").unwrap(), *b"\x89PNG").unwrap());
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_strict_codec_refuses_plain_payloads_and_results() {
    let cluster = with_keys(shouting(), keys()).start().await.unwrap();
    let job = cluster.client().submit(Shout::job(&"plain".to_owned()).max_attempts(3)).await.unwrap();
    let end = job.wait(SOON).await.unwrap();
    assert_eq!((end.state, end.attempt), (State::Dead, 1));
    let why = end.error.unwrap();
    assert!(why.contains("cannot be decoded: it was stored without a codec"), "{why}");

    for node in cluster.nodes() {
        node.stop().await;
    }
    let plain = bellwether::Node::builder(cluster.zookeeper()).handlers(shouting()).start().await.unwrap();
    let job = cluster.client().submit(Shout::job(&"plain".to_owned())).await.unwrap();
    job.wait(SOON).await.unwrap();
    let refused = client(&cluster, keys()).await.get(job.id()).await.unwrap_err();
    assert!(matches!(&refused, Error::Undecodable { id, .. } if id == job.id()), "{refused}");
    plain.stop().await;
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn without_a_codec_a_payload_over_64_kib_is_refused_by_the_submission() {
    let cluster = cluster(shouting()).await;
    let large = Shout::job(&"x".repeat(65_536));
    assert!(matches!(large.check(), Err(JobError::Payload(_))));
    let refused = cluster.client().submit(large.clone()).await.unwrap_err();
    assert!(matches!(refused, SubmitError::Invalid(JobError::Payload(_))), "{refused}");
    let refused = client(&cluster, keys()).await.submit(large).await.unwrap_err();
    let why = bellwether::error::chain(&refused);
    assert!(why.contains("cannot be encoded: it has, once encoded, 65"), "{why}");
    assert_eq!(refused.remedy(), bellwether::Remedy::FixInput);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_result_that_is_too_large_once_encoded_fails_the_attempt_with_its_size() {
    let large = Handlers::new().job("large", |_, n: usize| async move { Ok("x".repeat(n)) });
    let cluster = cluster(large).await;
    let job = Job::new("large", &65_530).max_attempts(1);
    let end = client(&cluster, keys()).await.submit(job).await.unwrap().wait(SOON).await.unwrap();
    assert_eq!(end.state, State::Dead);
    let why = end.error.unwrap();
    assert!(why.contains("cannot be encoded: it has, once encoded, 65"), "{why}");
    cluster.stop().await.unwrap();
}

struct Bill;

impl JobKind for Bill {
    const NAME: &'static str = "bill";
    type Payload = String;
    type Result = ();

    fn defaults() -> JobOptions {
        JobOptions::new().dead_letter(true)
    }
}

type Seen = Arc<Mutex<Vec<String>>>;

/// The payload of the dead job is decoded for both functions, and that of the dead-letter job itself is never encoded.
#[tokio::test]
async fn the_functions_for_invalid_and_dead_jobs_receive_the_plain_payload() {
    let seen = Seen::default();
    let (invalid, noted) = (Arc::clone(&seen), Arc::clone(&seen));
    let bill = handler::<Bill>(|_, _| async { Err(HandlerError::invalid("no such card")) });
    let bill = bill.on_invalid(move |context, _| {
        let text = String::from_utf8(context.payload().bytes().to_vec()).unwrap();
        invalid.lock().unwrap().push(format!("invalid {text}"));
        async {}
    });
    let dead = dead_letter::<Bill>(move |_, letter| {
        noted.lock().unwrap().push(format!("dead {:?}", letter.payload().unwrap()));
        async { Ok(()) }
    });
    let cluster = cluster(Handlers::new().add(bill).add(dead)).await;
    client(&cluster, keys()).await.submit(Bill::job(&"4242".to_owned())).await.unwrap();
    eventually("both functions ran", SOON, async || seen.lock().unwrap().len() == 2).await;
    assert_eq!(*seen.lock().unwrap(), ["invalid \"4242\"", "dead Some(\"4242\")"]);
    cluster.stop().await.unwrap();
}

/// A node of the client has its codec.
#[tokio::test]
async fn a_node_that_a_client_builds_has_the_codec_of_the_client() {
    let cluster = with_keys(shouting(), keys()).nodes(0).start().await.unwrap();
    let client: Client = client(&cluster, keys()).await;
    let node = client.node_builder().unwrap().handlers(shouting()).start().await.unwrap();
    let job = client.submit(Shout::job(&"secret".to_owned()).id("a")).await.unwrap();
    assert_eq!(job.result(SOON).await.unwrap(), "SECRET");
    assert!(!reveals(&Records::of(&cluster).await.read("a").await.payload, "secret"));
    node.stop().await;
    cluster.stop().await.unwrap();
}
