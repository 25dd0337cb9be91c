//! Replaced, unknown and wrong keys.

use bellwether::client::{Error, SubmitError, WaitError};
use bellwether::error::chain;
use bellwether::handler::dead_letter;
use bellwether::{JobKind, Remedy, State};
use bellwether_testkit::eventually;

use crate::cipher::Keys;
use crate::stage::{SOON, Shout, client, cluster, keys, shouting, with_keys};

/// The order of a replacement: all programs know the new key, then one after the other encrypts with it.
#[tokio::test]
async fn a_key_is_replaced_while_jobs_of_both_keys_exist() {
    let (old, new) = ([1; 32], [2; 32]);
    let (before, after) = (Keys::new(1, old).also(2, new), Keys::new(2, new).also(1, old));
    let cluster = with_keys(shouting(), after.clone()).start().await.unwrap();
    let first = client(&cluster, before).await;
    let second = client(&cluster, after).await;
    for (client, id) in [(&first, "of-1"), (&second, "of-2")] {
        let job = client.submit(Shout::job(&"secret".to_owned()).id(id)).await.unwrap();
        assert_eq!(job.result(SOON).await.unwrap(), "SECRET");
    }
    // The same job, whatever key encrypted it first.
    for (client, id) in [(&second, "of-1"), (&first, "of-2")] {
        let again = client.submit(Shout::job(&"secret".to_owned()).id(id)).await.unwrap();
        assert!(again.is_duplicate());
        let other = client.submit(Shout::job(&"other".to_owned()).id(id)).await.unwrap_err();
        assert!(matches!(other, SubmitError::Conflict { same_kind: true, .. }), "{other}");
    }
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_job_of_a_key_that_the_worker_does_not_know_yet_is_retried_and_not_dead() {
    let cluster = with_keys(shouting(), keys()).start().await.unwrap();
    let early = client(&cluster, Keys::new(2, [2; 32])).await;
    let job = Shout::job(&"secret".to_owned()).max_attempts(1_000);
    let job = early.submit(job).await.unwrap();
    let cautious = cluster.client().clone();
    eventually("an attempt has failed", SOON, async || {
        let view = cautious.get(job.id()).await.unwrap().unwrap();
        assert!(!view.state.is_terminal());
        view.error.is_some_and(|error| error.ends_with("cannot be decoded: key 2 is not known"))
    })
    .await;
    for node in cluster.nodes() {
        node.stop().await;
    }
    let both = Keys::new(1, [1; 32]).also(2, [2; 32]);
    let updated = bellwether::Node::builder(cluster.zookeeper()).handlers(shouting()).payload_codec(both);
    let updated = updated.start().await.unwrap();
    assert_eq!(cautious.wait(job.id(), SOON).await.unwrap().state, State::Succeeded);
    // The result has key 1, which the early client does not know.
    let unknown = early.wait(job.id(), SOON).await.unwrap_err();
    let WaitError::Client(error @ Error::Undecodable { .. }) = &unknown else { panic!("{unknown}") };
    assert_eq!((error.job(), error.remedy()), (Some(job.id()), Remedy::Retry));
    updated.stop().await;
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_wrong_key_ends_the_job_without_further_attempts_and_names_the_job_to_the_client() {
    let cluster = cluster(shouting()).await;
    let wrong = client(&cluster, Keys::new(1, [9; 32])).await;
    let job = wrong.submit(Shout::job(&"secret".to_owned()).max_attempts(5)).await.unwrap();
    let end = job.wait(SOON).await.unwrap();
    assert_eq!((end.state, end.attempt), (State::Dead, 1));
    let why = end.error.unwrap();
    assert!(
        why.starts_with(&format!("the payload of job {} cannot be decoded: it was changed", job.id())),
        "{why}"
    );

    let right = client(&cluster, keys()).await;
    let job = right.submit(Shout::job(&"secret".to_owned()).id("a")).await.unwrap();
    job.wait(SOON).await.unwrap();
    let error = wrong.get(job.id()).await.unwrap_err();
    assert_eq!((error.job(), error.remedy()), (Some(job.id()), Remedy::GiveUp));
    let why = chain(&error);
    assert!(
        why.starts_with("the result of job a cannot be decoded: give the client the codec and the key"),
        "{why}"
    );
    // It cannot decide whether this is the same job.
    let unsure = wrong.submit(Shout::job(&"secret".to_owned()).id("a")).await.unwrap_err();
    assert!(matches!(&unsure, SubmitError::Undecodable { id, .. } if id == job.id()), "{unsure}");
    cluster.stop().await.unwrap();
}

/// The reason of the death must not keep its dead-letter handler from running.
#[tokio::test]
async fn the_dead_letter_of_a_job_that_cannot_be_decoded_is_handled() {
    let letters = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = std::sync::Arc::clone(&letters);
    let dead = dead_letter::<Shout>(move |_, letter| {
        noted.lock().unwrap().push((letter.error.clone(), letter.payload().unwrap_err().to_string()));
        async { Ok(()) }
    });
    let cluster = cluster(shouting().add(dead)).await;
    let wrong = client(&cluster, Keys::new(1, [9; 32])).await;
    wrong.submit(Shout::job(&"secret".to_owned()).dead_letter(true)).await.unwrap();
    eventually("the letter is handled", SOON, async || !letters.lock().unwrap().is_empty()).await;
    for why in <[String; 2]>::from(letters.lock().unwrap().remove(0)) {
        assert!(why.contains("cannot be decoded") && why.contains("it was changed"), "{why}");
    }
    cluster.stop().await.unwrap();
}
