//! The stored bytes of payloads, results and checkpoints.

use bellwether::{Client, Handlers, Job, Node};
use bellwether_testkit::eventually;

use crate::ask::Answer;
use crate::stage::{SOON, Stage};

fn stored_type(answer: &Answer) -> Option<&str> {
    assert_eq!(answer.header("content-type"), Some("application/octet-stream"), "{answer:?}");
    assert_eq!(answer.header("content-disposition"), Some("attachment"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    answer.header("bellwether-content-type")
}

#[tokio::test(flavor = "multi_thread")]
async fn payload_and_result_are_the_bytes_that_were_stored() {
    let stage = Stage::new("http-stored").await;
    let node = stage.node().await;
    let exact = r#"{"n":9007199254740993,"big":12345678901234567890,"f":1.0, "text":"a\u00e4"}"#;
    let body = format!(r#"{{"id": "exact", "kind": "echo", "payload": {exact}}}"#);
    stage.post("/v1/jobs", &body).await.is(201);
    stage.get("/v1/jobs/exact/wait").await.is(200);
    for what in ["payload", "result"] {
        let answer = stage.get(&format!("/v1/jobs/exact/{what}")).await.is(200);
        assert_eq!(
            (answer.text().as_str(), stored_type(&answer)),
            (exact, Some("application/json")),
            "{what}"
        );
    }
    stage.get("/v1/jobs/exact/checkpoint").await.problem(404, "not-found", "job exact has no checkpoint");

    // A submitter chooses the type; a browser must not run it as a page of the gateway.
    let client = Client::connect(&stage.to).await.unwrap();
    let page = Job::raw("nobody", "text/html", *b"<script>\xff");
    client.submit(page.id("page")).await.unwrap();
    let answer = stage.get("/v1/jobs/page/payload").await.is(200);
    assert_eq!((&answer.body[..], stored_type(&answer)), (&b"<script>\xff"[..], Some("text/html")));
    stage.get("/v1/jobs/page/result").await.problem(404, "not-found", "job page has no result");
    for what in ["payload", "result", "checkpoint"] {
        stage.get(&format!("/v1/jobs/absent/{what}")).await.problem(404, "not-found", "no job absent");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_is_shown_while_its_job_runs() {
    let stage = Stage::new("http-checkpoint").await;
    let handlers = Handlers::new().job("mark", |context, (): ()| async move {
        context.checkpoint(*b"\x00half\xff")?;
        context.cancelled().await;
        Ok(())
    });
    let node = Node::builder(&stage.to).handlers(handlers).start().await.unwrap();
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "mark"}"#).await.is(201);
    eventually("the checkpoint is stored", SOON, async || {
        let answer = stage.get("/v1/jobs/a/checkpoint").await;
        answer.status == 200 && answer.body == b"\x00half\xff" && stored_type(&answer).is_none()
    })
    .await;
    stage.post("/v1/jobs/a/cancel", "").await.is(200);
    node.stop().await;
}
