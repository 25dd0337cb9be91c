//! Retention, and purging of records.

use bellwether_core::budget::MIN_RETENTION;
use bellwether_core::change::Change;
use bellwether_core::path::Bucket;
use bellwether_core::wire;
use bellwether_testkit::eventually;
use bellwether_zk::connect;
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::stage::{SOON, Stage};

async fn set(stage: &Stage, change: &str) -> crate::ask::Answer {
    let ask = Ask::new("PATCH", "/v1/retention").header("content-type: application/json");
    ask.body(change.as_bytes()).of(stage.address()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_is_shown_and_values_that_are_not_given_do_not_change() {
    let stage = Stage::new("http-retention").await;
    let usual =
        json!({ "succeeded": "1d", "cancelled": "7d", "dead": "30d", "records": 640_000, "changed": null });
    let shown = stage.get("/v1/retention").await.is(200).json();
    assert!(shown == usual || shown == Value::Null, "{shown}");
    let changed = set(&stage, r#"{"succeeded": "1m", "records": 7}"#).await.is(200).json();
    assert_eq!((&changed["succeeded"], &changed["records"]), (&json!("1m"), &json!(7)));
    assert_eq!(changed["dead"], "30d");
    assert_eq!(changed["changed"]["by"], "anonymous, over HTTP");
    assert_eq!(stage.get("/v1/retention").await.is(200).json(), changed);
    for (change, said) in [
        (r#"{"dead": "1ms"}"#, "retention of dead jobs must be 1m to 3650d, not 1ms"),
        (r#"{"records": 4294967295}"#, "retention must keep 0 to"),
        (r#"{"dead": 60000}"#, "dead: invalid type: integer `60000`, expected a duration as text"),
        (r#"{"died": "1d"}"#, "unknown field `died`"),
    ] {
        set(&stage, change).await.problem(400, "invalid", said);
    }
    assert_eq!(stage.get("/v1/retention").await.is(200).json(), changed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_counts_and_keeps_records_of_jobs_that_just_ended() {
    let stage = Stage::new("http-purge").await;
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "sum"}"#).await.is(201);
    stage.post("/v1/jobs/a/cancel", "").await.is(200);
    for remove in ["", r#", "remove": true"#] {
        let purge = format!(r#"{{"state": "cancelled"{remove}}}"#);
        let done = stage.post("/v1/purge", &purge).await.is(200).json();
        // A record is kept for at least a minute, because it resolves a lost reply.
        assert_eq!(done, json!({ "matched": 0, "removed": 0, "too_recent": 1, "complete": true }));
    }
    for remove in [false, true] {
        let purge = json!({ "jobs": ["a", "absent"], "remove": remove }).to_string();
        let done = stage.post("/v1/purge", &purge).await.is(200).json();
        assert_eq!(done, json!({ "matched": 0, "removed": 0, "too_recent": 1, "complete": true }));
    }
    stage.get("/v1/jobs/a").await.is(200);
    let crowd = json!({ "jobs": vec!["a"; 1_001] }).to_string();
    for (purge, why) in [
        (r#"{"jobs": []}"#, "give 1 to 1000 jobs, not 0"),
        (&crowd, "give 1 to 1000 jobs, not 1001"),
        (r#"{"jobs": ["../a"]}"#, "job id has '/'"),
        (r#"{"jobs": ["a"], "state": "dead"}"#, "give either jobs, or state, kind and older_than"),
        (r#"{"jobs": ["a"], "older_than": "1h"}"#, "give either jobs, or state, kind and older_than"),
    ] {
        stage.post("/v1/purge", purge).await.problem(400, "invalid", why);
    }
    let none = stage.post("/v1/purge", r#"{"kind": "other"}"#).await.is(200).json();
    assert_eq!(none, json!({ "matched": 0, "removed": 0, "too_recent": 0, "complete": true }));
    stage.post("/v1/purge", r#"{"kind": "a b"}"#).await.problem(400, "invalid", "kind has ' '");
    stage.post("/v1/purge", r#"{"state": "queued"}"#).await.problem(
        400,
        "invalid",
        "unknown variant `queued`",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_notes_the_caller_of_the_gateway() {
    let stage = Stage::new("http-purge-author").await;
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "sum"}"#).await.is(201);
    stage.post("/v1/jobs/a/cancel", "").await.is(200);
    let purge = r#"{"jobs": ["a"], "remove": true}"#;
    eventually("the record is a minute old, and removed", MIN_RETENTION + SOON, async || {
        stage.post("/v1/purge", purge).await.is(200).json()["removed"] == 1
    })
    .await;
    let zk = connect(&stage.to.parse().unwrap(), SOON).await.unwrap();
    let bucket = zk.get(Bucket::of(&"a".parse().unwrap()).jobs()).await.unwrap().unwrap();
    let change = wire::decode::<Change>(&bucket.data).unwrap();
    assert_eq!(change.by.as_str(), "anonymous, over HTTP");
}
