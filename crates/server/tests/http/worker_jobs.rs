//! The jobs on a worker.

use bellwether_testkit::{eventually, eventually_some};
use serde_json::json;

use crate::stage::{SOON, Stage};

#[tokio::test(flavor = "multi_thread")]
async fn the_jobs_of_a_worker_are_listed_by_page() {
    let stage = Stage::new("http-worker-jobs").await;
    let node = stage.node().await;
    let worker = eventually_some("the worker is registered", SOON, async || {
        stage.get("/v1/workers").await.is(200).json()[0]["id"].as_str().map(str::to_owned)
    })
    .await;
    let path = format!("/v1/workers/{worker}/jobs");
    assert_eq!(stage.get(&path).await.is(200).json(), json!({ "jobs": [], "next": null }));
    for n in 0..7 {
        let job = format!(r#"{{"id": "job-{n}", "kind": "sleep", "payload": {{"millis": 600000}}}}"#);
        stage.post("/v1/jobs", &job).await.is(201);
    }
    stage.post("/v1/jobs", r#"{"id": "waits", "kind": "nobody"}"#).await.is(201);
    eventually("all jobs run", SOON, async || {
        stage.get(&path).await.is(200).json()["jobs"].as_array().unwrap().len() == 7
    })
    .await;
    for limit in [1, 3, 7, 100] {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = stage.get(&format!("{path}?limit={limit}{after}")).await.is(200).json();
            for job in page["jobs"].as_array().unwrap() {
                assert_eq!((&job["state"], &job["worker"]), (&"running".into(), &worker.as_str().into()));
                assert!(job["payload"].is_null() && job["assigned_at"].is_string(), "{job}");
                seen.push(job["id"].as_str().unwrap().to_owned());
            }
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
            assert!(seen.len() < 7, "{limit}: {page}");
        }
        assert_eq!(seen, (0..7).map(|n| format!("job-{n}")).collect::<Vec<_>>(), "{limit}");
    }
    stage.get(&format!("{path}?limit=0")).await.problem(400, "invalid", "limit must be 1 to 1000, not 0");
    stage.get(&format!("{path}?after=a/b")).await.problem(400, "invalid", "not the `next` of a page");
    let none = "/v1/workers/00000000-0000-0000-0000-000000000007/jobs";
    stage.get(none).await.problem(404, "not-found", "there is no worker");
    stage.get("/v1/workers/x/jobs").await.problem(400, "invalid", "a worker's id is a UUID");
    for n in 0..7 {
        stage.post(&format!("/v1/jobs/job-{n}/cancel"), "").await.is(200);
    }
    node.stop().await;
}
