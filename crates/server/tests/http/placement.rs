//! The placement strategy.

use serde_json::json;

use crate::ask::Ask;
use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn the_placement_strategy_is_shown_and_set() {
    let stage = Stage::new("http-placement").await;
    // A client does not create the namespace's parents; a node or a submission does.
    stage.post("/v1/jobs", r#"{"kind": "nobody"}"#).await.is(201);
    let set = async |change: &str| {
        let ask = Ask::new("PATCH", "/v1/placement").header("content-type: application/json");
        ask.body(change.as_bytes()).of(stage.address()).await
    };
    let choices = ["least-loaded", "round-robin", "random", "rendezvous"];
    let usual = json!({ "strategy": "least-loaded", "built_in": true, "set": false, "choices": choices, "changed": null });
    assert_eq!(stage.get("/v1/placement").await.is(200).json(), usual);
    let changed = set(r#"{"strategy": "rendezvous"}"#).await.is(200).json();
    let by = &changed["changed"];
    assert_eq!((&by["what"], &by["by"]), (&json!("set"), &json!("anonymous, over HTTP")));
    assert_eq!(
        changed,
        json!({ "strategy": "rendezvous", "built_in": true, "set": true, "choices": choices, "changed": by })
    );
    for (change, said) in [
        (r#"{"strategy": "a b"}"#, "strategy has ' ' at byte 1"),
        (r#"{"strategy": 7}"#, "strategy: invalid type: integer `7`"),
        (r#"{"name": "random"}"#, "unknown field `name`"),
        ("{}", "missing field `strategy`"),
    ] {
        set(change).await.problem(400, "invalid", said);
    }
    assert_eq!(stage.get("/v1/placement").await.is(200).json(), changed);
    let own = set(r#"{"strategy": "fullest"}"#).await.is(200).json();
    assert_eq!((&own["strategy"], &own["built_in"]), (&json!("fullest"), &json!(false)));
}
