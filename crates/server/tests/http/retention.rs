//! Retention, and purging of records.

use serde_json::{Value, json};

use crate::ask::Ask;
use crate::stage::Stage;

async fn set(stage: &Stage, change: &str) -> crate::ask::Answer {
    let ask = Ask::new("PATCH", "/v1/retention").header("content-type: application/json");
    ask.body(change.as_bytes()).of(stage.address()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_is_shown_and_values_that_are_not_given_do_not_change() {
    let stage = Stage::new("http-retention").await;
    let day = 24 * 3_600_000_u64;
    let usual =
        json!({ "succeeded_ms": day, "cancelled_ms": 7 * day, "dead_ms": 30 * day, "records": 640_000 });
    let shown = stage.get("/v1/retention").await.is(200).json();
    assert!(shown == usual || shown == Value::Null, "{shown}");
    let changed = set(&stage, r#"{"succeeded_ms": 60000, "records": 7}"#).await.is(200).json();
    assert_eq!((&changed["succeeded_ms"], &changed["records"]), (&json!(60_000), &json!(7)));
    assert_eq!(changed["dead_ms"], 30 * day);
    assert_eq!(stage.get("/v1/retention").await.is(200).json(), changed);
    for (change, said) in [
        (r#"{"dead_ms": 1}"#, "retention of dead jobs must be 60 s to 3650 days"),
        (r#"{"records": 4294967295}"#, "retention must keep 0 to"),
        (r#"{"dead_ms": -1}"#, "invalid value: integer `-1`"),
        (r#"{"dead": 1}"#, "unknown field `dead`"),
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
        assert_eq!(done, json!({ "matched": 0, "removed": 0, "young": 1, "complete": true }));
    }
    stage.get("/v1/jobs/a").await.is(200);
    let none = stage.post("/v1/purge", r#"{"kind": "other"}"#).await.is(200).json();
    assert_eq!(none, json!({ "matched": 0, "removed": 0, "young": 0, "complete": true }));
    stage.post("/v1/purge", r#"{"kind": "a b"}"#).await.problem(400, "invalid", "kind has ' '");
    stage.post("/v1/purge", r#"{"state": "queued"}"#).await.problem(
        400,
        "invalid",
        "unknown variant `queued`",
    );
}
