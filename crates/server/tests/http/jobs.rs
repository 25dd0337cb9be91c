//! Jobs, from submission to result.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::ask::Ask;
use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_submitted_waited_for_and_shown() {
    let stage = Stage::new("http-life").await;
    let node = stage.node().await;
    let body = r#"{"id": "sum-1", "kind": "sum", "payload": {"first": 1, "second": 2}, "options": {"max_attempts": 2}}"#;
    let made = stage.post("/v1/jobs", body).await.is(201);
    assert_eq!(made.header("location"), Some("/v1/jobs/sum-1"));
    assert_eq!(made.json(), json!({ "id": "sum-1", "duplicate": false, "accepted": "new", "generation": 1 }));

    let over = stage.get("/v1/jobs/sum-1/wait?timeout=20s").await.is(200).json();
    assert_eq!((&over["state"], &over["result"]), (&json!("succeeded"), &json!(3)));
    assert_eq!(stage.get("/v1/jobs/sum-1").await.is(200).json(), over);
    let why = stage.get("/v1/jobs/sum-1/explain").await.is(200).json();
    assert_eq!((&why["state"], &why["why"]), (&json!("succeeded"), &json!("ended")));

    // The same submission is the same job; another payload is a conflict.
    let again = stage.post("/v1/jobs", body).await.is(200);
    assert_eq!(
        again.json(),
        json!({ "id": "sum-1", "duplicate": true, "accepted": "same", "generation": 1 })
    );
    let named = stage.post("/v1/jobs", r#"{"kind": "echo", "named": "today"}"#).await.is(201);
    assert_eq!(named.json()["id"], "echo:today");
    let other = r#"{"id": "sum-1", "kind": "sum", "payload": {"first": 1, "second": 3}}"#;
    let conflict = stage.post("/v1/jobs", other).await;
    let conflict = conflict.problem(409, "conflict", "job id sum-1 belongs to another job");
    assert_eq!(conflict.json()["job"], "sum-1");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_shown_with_its_closed_attempts() {
    let stage = Stage::new("http-attempts").await;
    let node = stage.node().await;
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "sum", "payload": "text"}"#).await.is(201);
    stage.get("/v1/jobs/a/wait?timeout=20s").await.is(200);
    stage.post("/v1/jobs/a/retry", "").await.is(200);
    let over = stage.get("/v1/jobs/a/wait?timeout=20s").await.is(200).json();
    let worker = stage.get("/v1/workers").await.is(200).json()[0]["id"].clone();
    let attempts = over["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2, "{over}");
    for (generation, past) in (1..).zip(attempts) {
        assert_eq!((&past["generation"], &past["attempt"]), (&json!(generation), &json!(1)));
        assert_eq!((&past["worker"], &past["outcome"]), (&worker, &json!("invalid")));
        assert!(past["error"].as_str().unwrap().contains("does not fit kind sum"), "{past}");
        assert!(past["assigned_at"].as_str() <= past["ended_at"].as_str(), "{past}");
    }
    assert_eq!(attempts[1]["ended_at"], over["finished_at"]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_shown_with_the_options_that_it_was_submitted_with_and_the_defaults_of_the_others() {
    let stage = Stage::new("http-options").await;
    let options = json!({
        "max_attempts": 10,
        "max_losses": 2,
        "backoff": { "initial": "500ms", "max": "10m" },
        "timeout": "1h",
        "lease": "90s",
        "auto_renew": true,
        "dead_letter": true,
        "priority": 7,
        "tags": ["gpu"],
        "affinity": "scene-1",
        "lane": "frames",
    });
    let job = json!({ "id": "all", "kind": "nobody", "options": options });
    stage.post("/v1/jobs", &job.to_string()).await.is(201);
    assert_eq!(stage.get("/v1/jobs/all").await.is(200).json()["options"], options);
    stage.post("/v1/jobs", r#"{"id": "none", "kind": "nobody"}"#).await.is(201);
    let shown = stage.get("/v1/jobs/none").await.is(200).json()["options"].take();
    let document = bellwether_gateway::openapi();
    let described = document["components"]["schemas"]["JobOptions"]["properties"].as_object().unwrap();
    let defaults =
        described.iter().filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone())));
    assert_eq!(shown, Value::Object(defaults.collect()), "the defaults are those of the OpenAPI document");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_times_out_returns_the_current_job() {
    let stage = Stage::new("http-wait").await;
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "sum"}"#).await.is(201);
    for timeout in ["0s", "300ms"] {
        let open = stage.get(&format!("/v1/jobs/a/wait?timeout={timeout}")).await.is(202).json();
        assert_eq!((&open["state"], &open["waiting"]), (&json!("queued"), &json!("unknown_kind")));
    }
    let beyond = stage.get("/v1/jobs/a/wait?timeout=50001ms").await;
    beyond.problem(400, "invalid", "timeout: must be at most 50s: repeat the request to wait longer");
    stage.get("/v1/jobs/b/wait").await.problem(404, "not-found", "there is no job b");
    stage.get("/v1/jobs/b").await.problem(404, "not-found", "there is no job b");
}

/// S23
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_a_generation_is_not_answered_by_an_earlier_one() {
    let stage = Stage::new("http-wait-generation").await;
    let again = r#"{"id": "a", "kind": "sum", "payload": [1, 2], "if_exists": "again"}"#;
    stage.post("/v1/jobs", again).await.is(201);
    let node = stage.node().await;
    let first = stage.get("/v1/jobs/a/wait?generation=1").await.is(200).json();
    assert_eq!((&first["state"], &first["generation"]), (&json!("succeeded"), &json!(1)));
    for timeout in ["0s", "300ms"] {
        let early =
            stage.get(&format!("/v1/jobs/a/wait?generation=2&timeout={timeout}")).await.is(202).json();
        assert_eq!(early["generation"], json!(1), "the current job");
    }
    let opened = stage.post("/v1/jobs", again).await.json();
    assert_eq!((&opened["accepted"], &opened["generation"]), (&json!("again"), &json!(2)));
    let second = stage.get("/v1/jobs/a/wait?generation=2&timeout=20s").await.is(200).json();
    assert_eq!((&second["state"], &second["generation"]), (&json!("succeeded"), &json!(2)));
    stage.get("/v1/jobs/a/wait?generation=0").await.is(400);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_cancelled_and_retried() {
    let stage = Stage::new("http-change").await;
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "sum", "payload": [1]}"#).await.is(201);
    let change = async |verb: &str| stage.post(&format!("/v1/jobs/a/{verb}"), "").await;
    assert_eq!(change("retry").await.is(200).json()["outcome"], "still_open");
    assert_eq!(change("cancel").await.is(200).json()["outcome"], "cancelled");
    assert_eq!(change("cancel").await.is(200).json()["outcome"], "already_cancelled");
    let reopened = change("retry").await.is(200).json();
    assert_eq!(reopened, json!({ "id": "a", "outcome": "reopened", "worker": null, "generation": 2 }));
    let node = stage.node().await;
    stage.get("/v1/jobs/a/wait").await.is(200);
    change("cancel").await.problem(409, "conflict", "it cannot be cancelled");
    change("retry").await.problem(409, "conflict", "job a succeeded");
    stage.post("/v1/jobs/b/cancel", "").await.problem(404, "not-found", "there is no job b");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_checked_as_a_whole_and_then_answered_per_job() {
    let stage = Stage::new("http-batch").await;
    stage.post("/v1/jobs", r#"{"id": "taken", "kind": "other"}"#).await.is(201);
    let jobs = r#"{"jobs": [{"id": "a", "kind": "sum"}, {"id": "taken", "kind": "sum"}, {"kind": "sum"}]}"#;
    let answer = stage.post("/v1/batch", jobs).await.is(200).json();
    assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(2), &json!(1)));
    assert_eq!(
        answer["jobs"][0],
        json!({ "id": "a", "duplicate": false, "accepted": "new", "generation": 1 })
    );
    assert_eq!(answer["jobs"][1]["problem"]["type"], "urn:bellwether:problem:conflict");
    assert_eq!(answer["jobs"][2]["duplicate"], false);

    let wrong = r#"{"jobs": [{"id": "never", "kind": "sum"}, {"id": "a b", "kind": "sum"}]}"#;
    let refused = stage.post("/v1/batch", wrong).await;
    refused.problem(400, "invalid", "jobs[1]: job id has ' ' at byte 1");
    stage.get("/v1/jobs/never").await.is(404);
    stage.post("/v1/batch", r#"{"jobs": []}"#).await.problem(400, "invalid", "1 to 1000 jobs, not 0");
    let many = format!(r#"{{"jobs": [{}]}}"#, vec![r#"{"kind": "sum"}"#; 1_001].join(","));
    stage.post("/v1/batch", &many).await.problem(400, "invalid", "1 to 1000 jobs, not 1001");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paged_and_filtered_list_is_complete() {
    let stage = Stage::new("http-list").await;
    let jobs = (0..250)
        .map(|n| json!({ "id": format!("job-{n}"), "kind": if n % 50 == 0 { "rare" } else { "sum" } }));
    let lane = json!({ "id": "in-a-lane", "kind": "laned", "options": { "lane": "account-1" } });
    stage.post("/v1/jobs", &lane.to_string()).await.is(201);
    let jobs = json!({ "jobs": jobs.collect::<Vec<_>>() }).to_string();
    assert_eq!(stage.post("/v1/batch", &jobs).await.is(200).json()["accepted"], 250);
    stage.post("/v1/jobs/job-7/cancel", "").await.is(200);

    for (filter, expected) in [
        ("", 251),
        ("&state=queued", 250),
        ("&kind=rare", 5),
        ("&lane=account-1", 1),
        ("&group=none", 0),
        ("&state=cancelled", 1),
        ("&state=running", 0),
        ("&submitted_after=2020-01-01T00:00:00Z", 251),
        ("&submitted_before=2020-01-01T00:00:00Z", 0),
        ("&finished_after=2020-01-01T00:00:00Z", 1),
        ("&finished_before=2090-01-01T00:00:00Z&state=cancelled", 1),
        ("&finished_before=2020-01-01T00:00:00Z", 0),
    ] {
        for limit in [1, 33, 100, 1_000] {
            if limit == 1 && expected > 5 {
                continue;
            }
            let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
            loop {
                let page = stage.get(&format!("/v1/jobs?limit={limit}{filter}{after}")).await.is(200).json();
                let jobs = page["jobs"].as_array().unwrap();
                assert!(jobs.len() <= limit);
                seen.extend(jobs.iter().map(|job| job["id"].as_str().unwrap().to_owned()));
                pages += 1;
                assert!(pages < 300, "{filter}");
                let Some(next) = page["next"].as_str() else { break };
                after = format!("&after={next}");
            }
            let different = seen.iter().collect::<BTreeSet<_>>().len();
            assert_eq!((seen.len(), different), (expected, expected), "{filter} {limit}");
        }
    }
    stage.get("/v1/jobs?submitted_after=today").await.problem(400, "invalid", "is not an instant");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_request_is_reported_with_its_field_and_the_way_out() {
    let stage = Stage::new("http-wrong").await;
    for (body, said) in [
        ("{", "the body is not valid: EOF while parsing an object at line 1 column 1"),
        ("[]", "the body is not valid"),
        (r#"{"id": "a"}"#, "missing field `kind`"),
        (r#"{"kind": "sum", "paylod": 1}"#, "unknown field `paylod`, expected one of `kind`, `payload`"),
        (r#"{"kind": "sum", "kind": "sum"}"#, "duplicate field `kind`"),
        (r#"{"kind": "a/b"}"#, "kind has '/' at byte 1"),
        (r#"{"kind": "sum", "id": "../epoch"}"#, "job id has '/' at byte 2"),
        (r#"{"kind": "sum", "id": ".."}"#, "ZooKeeper reserves it"),
        (r#"{"kind": "sum", "named": "a:b"}"#, "name has ':'"),
        (r#"{"kind": "sum", "id": "a", "named": "b"}"#, "give id or named, not both"),
        (r#"{"kind": "sum", "options": {"max_attempts": 0}}"#, "max_attempts must be 1 to 1000, not 0"),
        (
            r#"{"kind": "sum", "options": {"max_attempts": -1}}"#,
            "options.max_attempts: invalid value: integer `-1`",
        ),
        (
            r#"{"kind": "sum", "options": {"timeout": "604800001ms"}}"#,
            "timeout must be 1ms to 7d, not 604800001ms",
        ),
        (
            r#"{"kind": "sum", "options": {"timeout": "1w"}}"#,
            "options.timeout: \"1w\" is not a duration: give a whole number and a unit, such as 500ms, 10s",
        ),
        (
            r#"{"kind": "sum", "options": {"backoff": {"initial": "1s"}}}"#,
            "options.backoff: missing field `max`",
        ),
        (
            r#"{"kind": "sum", "options": {"tag": "a"}}"#,
            "options.tag: unknown field `tag`, expected one of `max_attempts`",
        ),
        (r#"{"kind": "sum", "priority": 9}"#, "priority: unknown field `priority`, expected one of"),
        (
            r#"{"kind": "sum", "delay": "99999999999999999999d"}"#,
            "delay: \"99999999999999999999d\" is too long for a duration: give at most 213503982334d",
        ),
        (r#"{"kind": "sum", "delay": "213503982334d"}"#, "delay must be at most 3653 days ahead"),
        (r#"{"kind": "sum"} {}"#, "trailing characters"),
        (r#"{"kind": "sum", "options": {"lane": "a b"}}"#, "lane has ' ' at byte 1"),
        (r#"{"kind": "sum", "content_type": "text/plain", "payload": 1}"#, "payload must be a string"),
        (r#"{"kind": "sum", "content_type": "a\nb", "payload": "x"}"#, "content type"),
    ] {
        stage.post("/v1/jobs", body).await.problem(400, "invalid", said);
    }
    for (path, said) in [
        ("/v1/jobs?limit=0", "limit must be 1 to 1000, not 0"),
        ("/v1/jobs?limit=1001", "limit must be 1 to 1000, not 1001"),
        ("/v1/jobs?limit=x", "limit: invalid digit"),
        ("/v1/jobs/a/wait?timeout=10", "timeout: \"10\" is not a duration"),
        ("/v1/jobs?state=odd", "unknown variant `odd`, expected one of `queued`"),
        ("/v1/jobs?kind=a%2Fb", "kind has '/' at byte 1"),
        ("/v1/jobs?after=x", "`after` is not the `next` of a page"),
        ("/v1/jobs?stat=dead", "unknown field `stat`"),
        ("/v1/jobs/a%2F..%2Fb", "job id has '/' at byte 1"),
        ("/v1/jobs/%2e%2e", "ZooKeeper reserves it"),
        ("/v1/jobs/%ff", "not UTF-8"),
    ] {
        stage.get(path).await.problem(400, "invalid", said);
    }
    stage.get("/v1/nothing").await.problem(404, "not-found", "see /docs");
    stage.get("/../../etc/passwd").await.problem(404, "not-found", "see /docs");
    Ask::new("DELETE", "/v1/jobs/a").of(stage.address()).await.problem(405, "not-allowed", "Allow");
    let form = Ask::new("POST", "/v1/jobs").header("content-type: text/plain").body(b"{}");
    form.of(stage.address()).await.problem(415, "not-json", "application/json");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_is_kept_byte_for_byte() {
    let stage = Stage::new("http-payload").await;
    stage
        .post(
            "/v1/jobs",
            r#"{"id": "a", "kind": "sum", "payload":  {"n": 1e400, "m": 10000000000000000000001}}"#,
        )
        .await
        .is(201);
    let text = stage.get("/v1/jobs/a").await.is(200).text();
    assert!(text.contains(r#""payload":{"n": 1e400, "m": 10000000000000000000001}"#), "{text}");
    let plain = r#"{"id": "b", "kind": "sum", "content_type": "text/plain", "payload": "a\nb"}"#;
    stage.post("/v1/jobs", plain).await.is(201);
    assert_eq!(stage.get("/v1/jobs/b").await.is(200).json()["payload"], "a\nb");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_joins_the_trace_of_its_request_and_an_invalid_trace_is_ignored() {
    const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let stage = Stage::new("http-trace").await;
    let trace_of =
        async |id: &str| stage.get(&format!("/v1/jobs/{id}")).await.is(200).json()["trace_id"].clone();
    let trace = json!("4bf92f3577b34da6a3ce929d0e0e4736");
    let ask = |path: &str, body: &str| Ask::post(path, body).header(&format!("traceparent: {TRACEPARENT}"));

    ask("/v1/jobs", r#"{"kind": "sum", "id": "a"}"#).of(stage.address()).await.is(201);
    assert_eq!(trace_of("a").await, trace);
    ask("/v1/batch", r#"{"jobs": [{"kind": "sum", "id": "b"}]}"#).of(stage.address()).await.is(200);
    assert_eq!(trace_of("b").await, trace);
    ask("/v1/groups", r#"{"kind": "sum", "id": "g"}"#).of(stage.address()).await.is(200);
    stage.post("/v1/groups/g/members", r#"{"jobs": [{"kind": "sum"}]}"#).await.is(200);
    assert_eq!(trace_of("sum:g:0").await, trace, "the trace of its group");

    let (twice, zero) =
        (format!("traceparent: {TRACEPARENT}"), TRACEPARENT.replace("00f067aa0ba902b7", &"0".repeat(16)));
    let wrong = [
        vec![twice.as_str(), twice.as_str()],
        vec!["traceparent: 00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01"],
        vec!["traceparent: \u{e9}"],
        vec!["traceparent:"],
    ];
    let zero = format!("traceparent: {zero}");
    for (n, headers) in wrong.into_iter().chain([vec![zero.as_str()]]).enumerate() {
        let ask = Ask::post("/v1/jobs", &format!(r#"{{"kind": "sum", "id": "n{n}"}}"#));
        headers.into_iter().fold(ask, Ask::header).of(stage.address()).await.is(201);
        assert_eq!(trace_of(&format!("n{n}")).await, json!(null));
    }
}
