//! Attempts that remote workers must stop, and the ends of workers.

use std::time::Duration;

use bellwether::State;
use bellwether_testkit::eventually;
use serde_json::{Value, json};

use super::worker::{KIND, Remote, reference, succeeded};
use crate::stage::{SOON, Stage};

/// A heartbeat or poll answer that stops an attempt.
fn stops(attempt: &Value, reason: &str) -> Value {
    let mut stop = reference(attempt);
    stop["reason"] = json!(reason);
    json!([stop])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_arrives_by_poll_and_by_heartbeat_and_a_later_finish_is_fenced() {
    let stage = Stage::new("remote-cancel").await;
    let _leader = stage.leader().await;
    let remote = Remote::registered(&stage, json!({})).await;
    for by in ["poll", "heartbeat"] {
        stage.submit(by, json!({})).await;
        let attempt = remote.attempt(&[]).await;
        stage.post(&format!("/v1/jobs/{by}/cancel"), "").await.is(200);
        let told = stops(&attempt, "cancelled");
        match by {
            "poll" => assert_eq!(remote.poll(&[&attempt]).await["stop"], told),
            _ => {
                eventually("the heartbeat carries the cancel", SOON, async || {
                    remote.heartbeat(&attempt, json!({})).await["stop"] == told
                })
                .await;
            }
        }
        assert_eq!(stage.ended(by).await.state, State::Cancelled);
        let late = remote.finish(&attempt, succeeded()).await;
        late.problem(409, "attempt-fenced", "was closed without this finish");
        assert_eq!(remote.look(&[&attempt]).await["stop"], told, "repeated as long as it is listed");
        assert_eq!(remote.look(&[]).await, json!({ "attempts": [], "stop": [], "draining": false }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finish_after_the_lease_is_fenced_and_in_a_batch_only_its_own() {
    let stage = Stage::new("remote-expired").await;
    let _leader = stage.leader().await;
    let remote = Remote::registered(&stage, json!({})).await;
    stage.submit("short", json!({ "lease": "1s", "max_losses": 1 })).await;
    let short = remote.attempt(&[]).await;
    stage.submit("long", json!({})).await;
    let long = remote.attempt(&[&short]).await;
    assert_eq!(remote.poll(&[&short, &long]).await["stop"], stops(&short, "closed"));
    assert_eq!(stage.ended("short").await.state, State::Dead);
    let ends = json!({ "attempts": [
        super::worker::end(&short, succeeded()),
        super::worker::end(&long, succeeded()),
    ] });
    let results = remote.post("/finish", ends).await.is(200).json()["results"].clone();
    assert_eq!((&results[0]["status"], &results[1]["status"]), (&json!("fenced"), &json!("closed")));
    assert_eq!(results[0]["problem"]["type"], "urn:bellwether:problem:attempt-fenced", "{results}");
    assert_eq!(results[0]["problem"]["job"], "short", "{results}");
    // A wrong token or number names no attempt of the worker.
    for (field, value) in [("fencing_token", json!(9_999)), ("attempt", json!(9))] {
        let mut other = long.clone();
        other[field] = value;
        remote.finish(&other, succeeded()).await.problem(409, "attempt-fenced", "was closed without");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_worker_loses_its_attempts_to_another_one() {
    let stage = Stage::new("remote-silent").await;
    let _leader = stage.leader().await;
    let silent = Remote::registered(&stage, json!({ "session_timeout": "5s" })).await;
    stage.submit("a", json!({})).await;
    let lost = silent.attempt(&[]).await;
    let other = Remote::registered(&stage, json!({})).await;
    let second = other.attempt(&[]).await;
    assert_eq!((&second["job"], &second["attempt"]), (&json!("a"), &json!(2)));
    // The gateway no longer has the worker. After it has registered again, its attempt is fenced.
    let unknown = silent.finish(&lost, succeeded()).await;
    unknown.problem(404, "remote-worker-unknown", "register it again");
    silent.register(json!({ "running": [reference(&lost)] })).await.is(200);
    assert_eq!(silent.poll(&[&lost]).await["stop"], stops(&lost, "closed"));
    silent.finish(&lost, succeeded()).await.problem(409, "attempt-fenced", "");
    other.close(&second, succeeded()).await;
    let view = stage.ended("a").await;
    assert_eq!((view.state, view.losses, view.failures), (State::Succeeded, 1, 0), "{view:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_worker_finishes_its_attempts_and_gets_no_new_ones() {
    let stage = Stage::new("remote-drain").await;
    let _leader = stage.leader().await;
    let remote = Remote::registered(&stage, json!({})).await;
    stage.submit("a", json!({})).await;
    let attempt = remote.attempt(&[]).await;
    let has = [&attempt];
    let (polled, ()) = tokio::join!(remote.poll(&has), async {
        for _ in 0..2 {
            remote.post("/drain", json!({})).await.is(204);
        }
    });
    assert_eq!(polled, json!({ "attempts": [], "stop": [], "draining": true }));
    stage.submit("b", json!({})).await;
    let other = Remote::registered(&stage, json!({})).await;
    let elsewhere = other.attempt(&[]).await;
    assert_eq!(elsewhere["job"], "b");
    remote.close(&attempt, succeeded()).await;
    eventually("the drained worker has left", SOON, async || {
        stage.get("/v1/workers").await.is(200).json().as_array().unwrap().len() == 1
    })
    .await;
    assert_eq!(remote.look(&[]).await["draining"], true);
    for _ in 0..2 {
        remote.call("DELETE", "", &json!({})).await.is(204);
    }
    remote.post("/poll", json!({})).await.problem(404, "remote-worker-unknown", "register it again");
    other.close(&elsewhere, succeeded()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_of_a_deleted_worker_and_of_a_stopped_gateway_are_handed_back() {
    let stage = Stage::new("remote-delete").await;
    let _leader = stage.leader().await;
    stage.submit("a", json!({})).await;
    let first = Remote::registered(&stage, json!({})).await;
    let attempt = first.attempt(&[]).await;
    // A drain that lets attempts run is shortened by the end of the worker.
    first.post("/drain", json!({})).await.is(204);
    first.call("DELETE", "", &json!({})).await.is(204);
    let second = Remote::registered(&stage, json!({})).await;
    let handed_back = second.attempt(&[]).await;
    assert!(handed_back["fencing_token"].as_i64() > attempt["fencing_token"].as_i64(), "{handed_back}");

    let running = [&handed_back];
    let poll = second.open_poll(&running).await;
    let (polled, ()) = tokio::join!(poll, stage.gateway.stop());
    assert_eq!(polled["draining"], false, "the process may go on at another gateway: {polled}");
    let client = bellwether::Client::connect(&stage.to).await.unwrap();
    let gateway = bellwether_gateway::Gateway::builder(client).listen("127.0.0.1:0".parse().unwrap());
    let stage = Stage { gateway: gateway.start().await.unwrap(), to: stage.to };
    let third = Remote::registered(&stage, json!({})).await;
    third.close(&third.attempt(&[]).await, succeeded()).await;
    let view = stage.ended("a").await;
    assert_eq!((view.state, view.losses, view.failures), (State::Succeeded, 0, 0), "{view:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_open_poll_of_a_deleted_worker_is_answered() {
    let stage = Stage::new("remote-delete-poll").await;
    let _leader = stage.leader().await;
    let remote = Remote::registered(&stage, json!({})).await;
    let poll = remote.open_poll(&[]).await;
    let nothing = json!({});
    let both = async { tokio::join!(poll, remote.call("DELETE", "", &nothing)) };
    let (polled, deleted) = tokio::time::timeout(Duration::from_secs(10), both)
        .await
        .expect("long before the poll's time is over");
    deleted.is(204);
    assert_eq!(polled["attempts"], json!([]), "{polled}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_can_drain_a_remote_worker() {
    let stage = Stage::new("remote-operator").await;
    let _leader = stage.leader().await;
    let remote = Remote::registered(&stage, json!({ "kinds": [{ "kind": KIND }, { "kind": "bulk" }] })).await;
    let workers = stage.get("/v1/workers").await.is(200).json();
    assert_eq!((&workers[0]["node"], &workers[0]["slots"]), (&json!("test"), &json!(4)), "{workers}");
    let id = workers[0]["id"].as_str().unwrap();
    let drain = format!("/v1/workers/{id}/drain");
    let (polled, _) = tokio::join!(remote.poll(&[]), stage.post(&drain, ""));
    assert_eq!(polled["draining"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_moves_to_another_gateway_loses_no_attempt() {
    let stage = Stage::new("remote-moves").await;
    let _leader = stage.leader().await;
    stage.submit("a", json!({})).await;
    let first = Remote::new(&stage);
    let registered = first.register(json!({ "session_timeout": "5s" })).await.is(200).json();
    let attempt = first.attempt(&[]).await;

    let client = bellwether::Client::connect(&stage.to).await.unwrap();
    let builder = bellwether_gateway::Gateway::builder(client).listen("127.0.0.1:0".parse().unwrap());
    let other = builder.start().await.unwrap();
    let moved = Remote { key: first.key.clone(), gateway: other.address(), token: None };
    moved.register(json!({ "former_worker": "worker-1" })).await.is(400);
    moved.register(json!({ "former_worker": registered["worker"] })).await.is(200);
    let stop = moved.poll(&[&attempt]).await["stop"].clone();
    assert_eq!(stop[0]["reason"], "closed", "{stop}");
    // The first gateway counts the worker as dead, because it calls only the second one.
    let again = moved.attempt(&[]).await;
    assert_eq!((&again["job"], &again["attempt"]), (&json!("a"), &json!(2)));
    moved.close(&again, succeeded()).await;
    let view = stage.ended("a").await;
    assert_eq!((view.state, view.losses, view.failures), (State::Succeeded, 0, 0), "{view:?}");
    other.stop().await;
}
