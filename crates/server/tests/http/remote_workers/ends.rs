//! Attempts that remote workers finish.

use std::time::Duration;

use bellwether::State;
use bellwether_testkit::eventually;
use serde_json::{Value, json};

use super::worker::{KIND, Remote, end, succeeded};
use crate::stage::{SOON, Stage};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_on_a_remote_worker_and_its_result_is_written_before_the_answer() {
    let stage = Stage::new("remote-success").await;
    let leader = stage.leader().await;
    let remote = Remote::registered(&stage, json!({ "tags": ["gpu"] })).await;
    stage
        .submit(
            "a",
            json!({ "tags": ["gpu"], "timeout": "1m", "lease": "2m", "auto_renew": false, "priority": 7 }),
        )
        .await;
    let attempt = remote.attempt(&[]).await;
    let token = attempt["fencing_token"].as_i64().unwrap();
    assert_eq!(
        attempt,
        json!({
            "job": "a", "kind": KIND, "generation": 1, "attempt": 1, "fencing_token": token, "priority": 7,
            "submission": attempt["submission"],
            "payload": { "json": { "to": "a" } }, "timeout": "1m", "lease": "2m", "auto_renew": false,
            "group": null, "number": null, "traceparent": null, "checkpoint": null, "progress": null,
        })
    );
    remote.close(&attempt, json!({ "succeeded": { "json": { "sent": "a" } } })).await;
    let job = stage.get("/v1/jobs/a").await.is(200).json();
    assert_eq!((&job["state"], &job["result"]), (&json!("succeeded"), &json!({ "sent": "a" })), "{job}");
    // The answer was lost.
    remote.close(&attempt, json!({ "succeeded": { "json": { "sent": "a" } } })).await;
    leader.stop().await;
    stage.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_outcome_has_its_consequence() {
    let stage = Stage::new("remote-outcomes").await;
    let _leader = stage.leader().await;
    let remote = Remote::registered(&stage, json!({})).await;
    let quick = json!({ "max_attempts": 3, "backoff": { "initial": "1ms", "max": "1ms" } });
    stage.submit("fails", quick).await;
    for number in 1..=2 {
        let attempt = remote.attempt(&[]).await;
        assert_eq!(attempt["attempt"], number);
        remote.close(&attempt, json!({ "failed": "no route" })).await;
    }
    remote.close(&remote.attempt(&[]).await, json!({ "invalid": "no such address" })).await;
    let view = stage.ended("fails").await;
    assert_eq!((view.state, view.failures), (State::Dead, 2), "{view:?}");
    assert_eq!(view.error.as_deref(), Some("no such address"));

    stage.submit("later", json!({ "max_attempts": 1 })).await;
    remote.close(&remote.attempt(&[]).await, json!({ "retry_later": "1ms" })).await;
    let again = remote.attempt(&[]).await;
    assert_eq!(again["attempt"], 2);
    remote.close(&again, json!({ "succeeded": { "base64": "/w==" } })).await;
    let view = stage.ended("later").await;
    assert_eq!((view.state, view.failures, view.losses), (State::Succeeded, 0, 0), "{view:?}");
    let result = view.result.unwrap();
    assert_eq!((result.content_type().as_str(), result.bytes()), ("application/octet-stream", &[0xff][..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_whose_delivery_was_lost_is_delivered_again() {
    let stage = Stage::new("remote-lost-poll").await;
    let _leader = stage.leader().await;
    let remote = Remote::registered(&stage, json!({})).await;
    stage.submit("a", json!({})).await;
    let lost = remote.attempt(&[]).await;
    let attempt = remote.attempt(&[]).await;
    assert_eq!(attempt, lost);
    assert_eq!(remote.look(&[&attempt]).await["attempts"], json!([]), "the worker has it");
    stage.submit("b", json!({})).await;
    let second = remote.attempt(&[&attempt]).await;
    assert_eq!(second["job"], "b");
    let both = json!({ "attempts": [end(&attempt, succeeded()), end(&second, json!({ "failed": "no" }))] });
    let answer = remote.post("/finish", both.clone()).await.is(200).json();
    let closed = |job: &str| json!({ "job": job, "attempt": 1, "status": "closed" });
    assert_eq!(answer, json!({ "results": [closed("a"), closed("b")] }));
    assert_eq!(remote.post("/finish", both).await.is(200).json(), answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_poll_ends_an_older_one_with_an_empty_answer() {
    let stage = Stage::new("remote-two-polls").await;
    let _leader = stage.leader().await;
    let remote = Remote::registered(&stage, json!({})).await;
    // Each look is newer than the polls that arrived before it.
    let newer = async {
        loop {
            remote.look(&[]).await;
        }
    };
    let older = tokio::select! {
        older = remote.poll(&[]) => older,
        () = newer => unreachable!("the loop has no end"),
    };
    assert_eq!(older, json!({ "attempts": [], "stop": [], "draining": false }));
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_shown_and_the_next_attempt_gets_the_checkpoint() {
    let stage = Stage::new("remote-progress").await;
    let _leader = stage.leader().await;
    let remote = Remote::registered(&stage, json!({})).await;
    stage.submit("a", json!({ "max_attempts": 2, "backoff": { "initial": "1ms", "max": "1ms" } })).await;
    let attempt = remote.attempt(&[]).await;
    let report = json!({ "percent": 40, "message": "sending", "checkpoint": "cG9z" });
    assert_eq!(remote.heartbeat(&attempt, report).await, json!({ "stop": [], "draining": false }));
    eventually("the progress is shown", SOON, async || {
        let job = stage.get("/v1/jobs/a").await.json();
        (&job["percent"], &job["message"], &job["checkpoint_bytes"])
            == (&json!(40), &json!("sending"), &json!(3))
    })
    .await;
    remote.heartbeat(&attempt, json!({ "percent": 50 })).await;
    remote.close(&attempt, json!({ "failed": "no" })).await;
    let second = remote.attempt(&[]).await;
    let left = (&second["attempt"], &second["checkpoint"], &second["progress"]["percent"]);
    assert_eq!(left, (&json!(2), &json!("cG9z"), &json!(50)), "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_renews_a_short_lease() {
    let stage = Stage::new("remote-lease").await;
    let _leader = stage.leader().await;
    let remote = Remote::registered(&stage, json!({ "kinds": [{ "kind": KIND, "lease": "5s" }] })).await;
    stage.submit("a", json!({})).await;
    let attempt = remote.attempt(&[]).await;
    assert_eq!(attempt["lease"], "5s");
    let mut beats = tokio::time::interval(Duration::from_millis(250));
    for _ in 0..28 {
        beats.tick().await;
        let told = remote.heartbeat(&attempt, json!({})).await;
        assert_eq!(told["stop"], json!([]));
    }
    remote.close(&attempt, succeeded()).await;
    let view = stage.ended("a").await;
    assert_eq!((view.state, view.attempt, view.losses), (State::Succeeded, 1, 0), "{view:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_jobs_run_in_batches() {
    const JOBS: usize = 300;
    let stage = Stage::new("remote-many").await;
    let _leader = stage.leader().await;
    let remote = Remote::registered(&stage, json!({ "slots": 100 })).await;
    let jobs = (0..JOBS).map(|n| json!({ "id": format!("j{n}"), "kind": KIND })).collect::<Vec<_>>();
    stage.post("/v1/batch", &json!({ "jobs": jobs }).to_string()).await.is(200);
    let mut done = 0;
    while done < JOBS {
        let polled = remote.poll(&[]).await;
        let attempts = polled["attempts"].as_array().unwrap();
        let ends = attempts.iter().map(|attempt| end(attempt, succeeded())).collect::<Vec<Value>>();
        let answer = remote.post("/finish", json!({ "attempts": ends })).await.is(200).json();
        let results = answer["results"].as_array().unwrap();
        assert!(results.iter().all(|result| result["status"] == "closed"), "{answer}");
        done += results.len();
    }
    assert_eq!(done, JOBS, "each job ran once");
}
