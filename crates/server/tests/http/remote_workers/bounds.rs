//! Roles, keys and limits.

use bellwether_gateway::access::{Issued, Role, Tokens};
use bellwether_gateway::{Limits, Protection};
use serde_json::json;

use super::worker::{Remote, reference, succeeded};
use crate::ask::Ask;
use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn a_work_token_permits_only_its_own_remote_workers() {
    let issued = ["one", "two"].map(|name| Issued::new(name, Role::Work).unwrap());
    let lines = issued.iter().map(|issued| issued.line.clone()).collect::<Vec<_>>().join("\n");
    let tokens = Tokens::parse(&lines, std::path::Path::new("tokens")).unwrap();
    let stage =
        Stage::with("remote-roles", |builder| builder.protection(Protection::default().tokens(tokens))).await;
    let _leader = stage.leader().await;
    let [one, two] = issued.map(|issued| issued.secret);
    let mut remote = Remote { token: Some(one.clone()), ..Remote::new(&stage) };
    remote.register(json!({})).await.is(200);
    for ask in [Ask::get("/v1/jobs"), Ask::get("/v1/caller"), Ask::post("/v1/jobs", "{}")] {
        let refused = ask.token(&one).of(stage.address()).await;
        refused.problem(403, "forbidden", "the token one has the role work: this operation needs");
    }
    // For another token the worker does not exist.
    remote.token = Some(two);
    remote.post("/poll", json!({})).await.problem(404, "remote-worker-unknown", "");
    remote.register(json!({})).await.problem(409, "conflict", "is registered with other settings");
    remote.call("DELETE", "", &json!({})).await.is(204);
    remote.token = Some(one);
    remote.post("/heartbeat", json!({})).await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_registration_is_the_same_worker_and_a_different_one_a_conflict() {
    let stage = Stage::new("remote-again").await;
    let _leader = stage.leader().await;
    let remote = Remote::new(&stage);
    let (first, second) = tokio::join!(remote.register(json!({})), remote.register(json!({})));
    let worker = first.is(200).json();
    assert_eq!(worker["session_timeout"], "30s");
    assert_eq!(second.is(200).json(), worker);
    assert_eq!(remote.register(json!({ "running": [] })).await.is(200).json(), worker);
    remote.register(json!({ "slots": 5 })).await.problem(409, "conflict", "draw another key");
    assert_eq!(stage.get("/v1/workers").await.is(200).json().as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn remote_workers_are_bounded_and_an_ended_one_makes_room() {
    let limits = Limits::default().remote_workers(1);
    let stage = Stage::with("remote-limit", |builder| builder.limits(limits)).await;
    let (one, two) = (Remote::registered(&stage, json!({})).await, Remote::new(&stage));
    two.register(json!({})).await.problem(
        503,
        "saturated",
        "the limit of 1 remote workers of this gateway is reached",
    );
    one.call("DELETE", "", &json!({})).await.is(204);
    two.register(json!({})).await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_out_of_bounds_are_refused_by_name() {
    let stage = Stage::new("remote-bounds").await;
    let mut remote = Remote::new(&stage);
    let kinds = (0..257).map(|n| json!({ "kind": format!("k{n}") })).collect::<Vec<_>>();
    let tags = (0..33).map(|n| format!("t{n}")).collect::<Vec<_>>();
    for (change, said) in [
        (json!({ "node_id": "a/b" }), "node id has '/'"),
        (json!({ "slots": 0 }), "slots"),
        (json!({ "slots": 4_097 }), "slots"),
        (json!({ "slots": -1 }), "slots"),
        (json!({ "kinds": [] }), "at least one kind"),
        (json!({ "kinds": kinds }), "at most 256 kinds"),
        (json!({ "kinds": [{ "kind": "a" }, { "kind": "a" }] }), "kind a has a handler already"),
        (json!({ "kinds": [{ "kind": "a", "lease": "0s" }] }), "kind a: lease must be 1s to 7d"),
        (json!({ "kinds": [{ "kind": "a", "concurrency": 0 }] }), "concurrency must be at least 1"),
        (json!({ "kinds": [{ "kind": "a", "extra": 0 }] }), "kinds[0].extra"),
        (json!({ "tags": tags }), "tags"),
        (json!({ "session_timeout": "1999ms" }), "session_timeout must be 2s to 1h, not 1999ms"),
        (json!({ "session_timeout": "3601s" }), "session_timeout must be 2s to 1h, not 3601s"),
        (
            json!({ "session_timeout": 30 }),
            "session_timeout: invalid type: integer `30`, expected a duration as text",
        ),
    ] {
        remote.register(change).await.problem(400, "invalid", said);
    }
    remote.register(json!({})).await.is(200);
    remote.key = "not-a-uuid".to_owned();
    remote.post("/poll", json!({})).await.problem(400, "invalid", "the key of a remote worker is a UUID");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_out_of_bounds_changes_nothing() {
    let stage = Stage::new("remote-calls").await;
    let _leader = stage.leader().await;
    let remote = Remote::registered(&stage, json!({})).await;
    stage.submit("a", json!({})).await;
    let attempt = remote.attempt(&[]).await;
    let poll = |body| remote.post("/poll", body);
    poll(json!({ "limit": 257 })).await.problem(400, "invalid", "limit must be 0 to 256");
    poll(json!({ "timeout": "30001ms" })).await.problem(
        400,
        "invalid",
        "timeout must be 0s to 30s: poll again",
    );
    poll(json!({ "running": [{ "job": "a b" }] })).await.problem(400, "invalid", "running[0].job");
    let long = "x".repeat(1_100_000);
    for path in ["/poll", "/heartbeat", "/finish"] {
        let answer = remote.post(path, json!({ "extra": long })).await;
        answer.problem(413, "too-large", "at most 1048576 bytes");
    }
    let beat = |report: serde_json::Value| {
        let mut beat = reference(&attempt);
        beat.as_object_mut().unwrap().extend(report.as_object().unwrap().clone());
        remote.post("/heartbeat", json!({ "running": [beat] }))
    };
    beat(json!({ "percent": 101 })).await.problem(400, "invalid", "running[0]: ");
    beat(json!({ "message": "x".repeat(1_025) })).await.problem(400, "invalid", "running[0]: ");
    beat(json!({ "checkpoint": "?" })).await.problem(400, "invalid", "running[0]: checkpoint");
    let many = vec![super::worker::end(&attempt, succeeded()); 257];
    let finish = |attempts| remote.post("/finish", json!({ "attempts": attempts }));
    finish(many).await.problem(400, "invalid", "1 to 256 attempts, not 257");
    finish(Vec::new()).await.problem(400, "invalid", "1 to 256 attempts, not 0");
    for (outcome, said) in [
        (json!({ "succeeded": {} }), "attempts[1]: succeeded: give exactly one"),
        (json!({ "succeeded": { "text": "x".repeat(65 * 1_024) } }), "attempts[1]: succeeded: "),
        (json!({ "succeeded": { "base64": "?" } }), "attempts[1]: succeeded: base64"),
        (json!({ "retry_later": 5_000 }), "attempts[1].outcome"),
        (json!({ "vanished": "" }), "attempts[1].outcome"),
        (json!("failed"), "attempts[1].outcome"),
    ] {
        let ends = vec![super::worker::end(&attempt, succeeded()), super::worker::end(&attempt, outcome)];
        finish(ends).await.problem(400, "invalid", said);
    }
    let job = stage.get("/v1/jobs/a").await.is(200).json();
    assert_eq!((&job["state"], &job["percent"]), (&json!("running"), &json!(null)), "{job}");
    remote.close(&attempt, succeeded()).await;
}
