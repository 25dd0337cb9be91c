//! Operations for operators: workers, leader, kinds, schedules, groups.

use bellwether_testkit::eventually;
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::stage::{SOON, Stage};

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_is_shown_on_one_page() {
    let stage = Stage::new("http-cluster").await;
    stage.get("/v1/leader").await.problem(404, "not-found", "there is no leader");
    let empty = stage.get("/v1/cluster").await.is(200).json();
    assert_eq!(empty["leader"], Value::Null);
    let jobs = |stored, queued, delayed| {
        json!({ "stored": stored, "queued": queued, "delayed": delayed,
        "delayed_exact": true, "assigned": 0, "orphaned": 0, "quarantined": 0 })
    };
    assert_eq!(empty["jobs"], jobs(0, 0, 0));

    stage.post("/v1/jobs", r#"{"kind": "nobody"}"#).await.is(201);
    stage.post("/v1/jobs", r#"{"kind": "nobody", "delay": "1h"}"#).await.is(201);
    let node = stage.node().await;
    eventually("there is a worker and a leader", SOON, async || {
        let leader = stage.get("/v1/leader").await;
        leader.status == 200 && !stage.get("/v1/workers").await.json().as_array().unwrap().is_empty()
    })
    .await;
    let page = stage.get("/v1/cluster").await.is(200).json();
    assert_eq!(page["leader"]["standing"], true);
    let candidates = stage.get("/v1/leader/candidates").await.is(200).json();
    assert_eq!(candidates["unreadable"], 0);
    let candidate = &candidates["candidates"][0];
    assert_eq!((&candidate["node"], &candidate["leads"]), (&page["leader"]["node"], &json!(true)));
    assert_eq!(candidate["session"], page["leader"]["session"]);
    assert_eq!(page["workers"], stage.get("/v1/workers").await.is(200).json());
    assert_eq!(page["kinds"], stage.get("/v1/kinds").await.is(200).json());
    assert_eq!(page["workers"][0]["slots"], 8);
    assert_eq!(page["jobs"], jobs(2, 1, 1));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_page_counts_delayed_jobs_in_a_limited_number_of_minutes() {
    const COUNTED: usize = 1_000;
    let stage = Stage::new("http-cluster-minutes").await;
    let later = |minutes: std::ops::Range<usize>| {
        let job = |n| json!({ "kind": "nobody", "delay": format!("{}m", n + 1) });
        json!({ "jobs": minutes.map(job).collect::<Vec<_>>() }).to_string()
    };
    let delayed = async || {
        let page = stage.get("/v1/cluster").await.is(200).json();
        (page["jobs"]["delayed"].clone(), page["jobs"]["delayed_exact"].clone())
    };
    stage.post("/v1/batch", &later(0..COUNTED)).await.is(200);
    assert_eq!(delayed().await, (COUNTED.into(), true.into()));
    stage.post("/v1/batch", &later(COUNTED..COUNTED + 5)).await.is(200);
    assert_eq!(delayed().await, (COUNTED.into(), false.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_worker_finishes_its_running_jobs_and_leaves() {
    let stage = Stage::new("http-drain").await;
    let node = stage.node().await;
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "sleep", "payload": {"millis": 3000}}"#).await.is(201);
    eventually("the job runs", SOON, async || stage.get("/v1/jobs/a").await.json()["state"] == "running")
        .await;
    let id = stage.get("/v1/workers").await.is(200).json()[0]["id"].as_str().unwrap().to_owned();
    let drain = async || stage.post(&format!("/v1/workers/{id}/drain"), "").await.is(200).json();
    assert_eq!(drain().await, json!({ "id": id, "outcome": "draining" }));
    assert_eq!(drain().await, json!({ "id": id, "outcome": "already_draining" }));
    stage.post("/v1/jobs", r#"{"id": "b", "kind": "sum", "payload": [1, 2]}"#).await.is(201);
    let over = stage.get("/v1/jobs/a/wait").await.is(200).json();
    assert_eq!((&over["state"], &over["attempt"]), (&json!("succeeded"), &json!(1)));
    let second = stage.node().await;
    let over = stage.get("/v1/jobs/b/wait").await.is(200).json();
    assert_eq!(over["state"], "succeeded");
    assert_ne!(over["worker"], id);
    let none = "00000000-0000-0000-0000-000000000007";
    stage.post(&format!("/v1/workers/{none}/drain"), "").await.problem(404, "not-found", "no worker");
    stage.post("/v1/workers/none/drain", "").await.problem(400, "invalid", "a worker's id is a UUID");
    second.stop().await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_worker_is_changed_and_reset() {
    let stage = Stage::new("http-worker-set").await;
    let node = stage.node().await;
    eventually("the worker is registered", SOON, async || {
        !stage.get("/v1/workers").await.json().as_array().unwrap().is_empty()
    })
    .await;
    let id = stage.get("/v1/workers").await.is(200).json()[0]["id"].as_str().unwrap().to_owned();
    let set = async |id: &str, change: &str| {
        let ask = Ask::new("PATCH", &format!("/v1/workers/{id}")).header("content-type: application/json");
        ask.body(change.as_bytes()).of(stage.address()).await
    };
    let changed = set(&id, r#"{"slots": 2, "tags": ["gpu"], "pause_kinds": ["sum"]}"#).await.is(200).json();
    let by = &changed["settings"]["changed"];
    assert_eq!((&by["what"], &by["by"]), (&json!("set"), &json!("anonymous, over HTTP")), "{changed}");
    let settings = json!({ "slots": 2, "tags": ["gpu"], "paused_kinds": ["sum"], "changed": by });
    assert_eq!(changed, json!({ "id": id, "settings": settings }));
    let worker = &stage.get("/v1/workers").await.is(200).json()[0];
    assert_eq!((&worker["slots"], &worker["tags"]), (&json!(2), &json!(["gpu"])));
    assert_eq!(worker["settings"], settings);
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "sum", "payload": [1, 2]}"#).await.is(201);
    let why = stage.get("/v1/jobs/a/explain").await.is(200).json();
    assert_eq!((&why["why"], &why["workers"]), (&json!("paused_on_workers"), &json!(1)));
    let kinds = stage.get("/v1/kinds").await.is(200).json();
    let sum = kinds.as_array().unwrap().iter().find(|kind| kind["kind"] == "sum").unwrap();
    assert_eq!((&sum["paused_on"], &sum["slots"]), (&json!([id]), &json!(0)));
    let reset = set(&id, r#"{"reset": true}"#).await.is(200).json();
    let configured =
        json!({ "slots": null, "tags": null, "paused_kinds": [], "changed": reset["settings"]["changed"] });
    assert_eq!(reset["settings"], configured);
    assert_eq!(stage.get("/v1/jobs/a/wait").await.is(200).json()["result"], 3);
    for (change, said) in [
        (r#"{"slots": 4097}"#, "slots must be 0 to 4096, not 4097"),
        (r#"{"pause_kinds": ["smu"]}"#, "the worker has no handler for kind smu"),
        (r#"{"tags": ["a b"]}"#, "tag has ' ' at byte 1"),
        (r#"{"slot": 1}"#, "unknown field `slot`"),
    ] {
        set(&id, change).await.problem(400, "invalid", said);
    }
    let none = "00000000-0000-0000-0000-000000000007";
    set(none, r#"{"slots": 1}"#).await.problem(404, "not-found", "no worker");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_kind_is_the_explanation_of_its_waiting_jobs() {
    let stage = Stage::new("http-kinds").await;
    assert_eq!(stage.get("/v1/kinds").await.is(200).json(), json!([]));
    let change = async |verb: &str| stage.post(&format!("/v1/kinds/sum/{verb}"), "").await.is(200).json();
    assert_eq!(change("pause").await, json!({ "kind": "sum", "outcome": "paused" }));
    assert_eq!(change("pause").await["outcome"], "already_paused");
    let kinds = stage.get("/v1/kinds").await.is(200).json();
    assert_eq!(kinds[0]["paused"]["by"], "anonymous, over HTTP");
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "sum", "payload": [1, 2]}"#).await.is(201);
    let why = stage.get("/v1/jobs/a/explain").await.is(200).json();
    assert_eq!((&why["why"], &why["by"]), (&json!("paused"), &json!("anonymous, over HTTP")));
    let node = stage.node().await;
    assert_eq!(stage.get("/v1/jobs/a/wait?timeout=300ms").await.is(202).json()["state"], "queued");
    assert_eq!(change("resume").await["outcome"], "resumed");
    assert_eq!(change("resume").await["outcome"], "not_paused");
    stage.post("/v1/kinds/sum/pause", r#"{"note": "deploy"}"#).await.is(200);
    let kinds = stage.get("/v1/kinds").await.is(200).json();
    let sum = kinds.as_array().unwrap().iter().find(|kind| kind["kind"] == "sum").unwrap();
    assert_eq!(sum["paused"]["note"], "deploy");
    assert_eq!(change("resume").await["outcome"], "resumed");
    assert_eq!(stage.post("/v1/kinds/sum/pause", "null").await.is(200).json()["outcome"], "paused");
    assert_eq!(change("resume").await["outcome"], "resumed");
    let long = json!({ "note": "x".repeat(257) }).to_string();
    let why = "note must be at most 256 bytes";
    stage.post("/v1/kinds/sum/pause", &long).await.problem(400, "invalid", why);
    stage.post("/v1/kinds/sum/pause", r#"{"by": "ada"}"#).await.problem(400, "invalid", "unknown field `by`");
    assert_eq!(stage.get("/v1/jobs/a/wait").await.is(200).json()["result"], 3);
    stage.post("/v1/kinds/a%2Fb/pause", "").await.problem(400, "invalid", "kind has '/' at byte 1");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_added_shown_paused_triggered_and_removed() {
    let stage = Stage::new("http-schedules").await;
    let nightly = r#"{"id": "nightly", "cron": "0 3 * * *", "zone": "Europe/Berlin", "misfire": "catch_up", "catch_up_limit": 3, "catch_up_within": "1m",
        "overlap": "queue", "job": {"kind": "sum", "payload": [1, 2], "options": {"priority": 7, "tags": ["gpu"]}}}"#;
    let made = stage.post("/v1/schedules", nightly).await.is(201).json();
    let rule = ["cron", "zone", "every", "anchor", "at"].map(|field| made[field].clone());
    assert_eq!(json!(rule), json!(["0 3 * * *", "Europe/Berlin", null, null, null]));
    let late = ["misfire", "catch_up_limit", "catch_up_within", "grace"].map(|field| made[field].clone());
    assert_eq!(json!(late), json!(["catch_up", 3, "1m", "1m"]));
    assert_eq!((&made["state"], &made["overlap"]), (&json!("ticking"), &json!("queue")));
    let options = json!({
        "max_attempts": 5,
        "max_losses": 3,
        "backoff": { "initial": "1s", "max": "5m" },
        "dead_letter": false,
        "priority": 7,
        "tags": ["gpu"],
    });
    assert_eq!(made["options"], options);
    stage.post("/v1/schedules", nightly).await.is(200);
    assert_eq!(made["payload"], json!([1, 2]));
    let mut listed = made.clone();
    listed["payload"] = json!(null);
    assert_eq!(listed.as_object_mut().unwrap().remove("added"), Some(json!("created")));
    assert_eq!(
        stage.get("/v1/schedules").await.is(200).json(),
        json!({ "schedules": [listed], "next": null })
    );
    let other = r#"{"id": "nightly", "every": "1m", "job": {"kind": "sum"}}"#;
    stage.post("/v1/schedules", other).await.problem(409, "conflict", "another time to tick");

    let change = async |verb: &str| stage.post(&format!("/v1/schedules/nightly/{verb}"), "").await;
    for _again in 0..2 {
        assert_eq!(change("pause").await.is(200).json()["state"], "paused");
    }
    assert_eq!(change("resume").await.is(200).json()["state"], "ticking");
    let job = change("trigger").await.is(201);
    let shown = stage.get(job.header("location").unwrap()).await.is(200).json();
    assert_eq!((&shown["kind"], &shown["payload"]), (&json!("sum"), &json!([1, 2])));
    let another = change("trigger").await.is(201);
    assert_ne!(another.header("location"), job.header("location"));

    for (body, said) in [
        (r#"{"id": "a", "job": {"kind": "sum"}}"#, "give one of cron, every and at"),
        (r#"{"id": "a", "cron": "61 * * * *", "job": {"kind": "sum"}}"#, "cron: cron field minute"),
        (
            r#"{"id": "a", "cron": "* * * * *", "anchor": "2026-01-01T00:00:00Z", "job": {"kind": "sum"}}"#,
            "anchor needs every",
        ),
        (r#"{"id": "a", "cron": "* * * * *", "zone": "Mars/Base", "job": {"kind": "sum"}}"#, "zone"),
        (r#"{"id": "a", "every": "1ms", "job": {"kind": "sum"}}"#, "every must be 1s to 366d"),
        (r#"{"id": "a", "every": "1m", "job": {"kind": "s m"}}"#, "job: kind has ' ' at byte 1"),
        (r#"{"id": "a", "every": "1m", "job": {"kind": "sum", "id": "x"}}"#, "job.id: unknown field `id`"),
        (r#"{"id": "a", "at": "soon", "job": {"kind": "sum"}}"#, "at: \"soon\" is not an instant"),
        (
            r#"{"id": "a", "every": "1m", "job": {"kind": "sum", "options": {"lease": 1}}}"#,
            "job.options.lease: invalid type: integer `1`",
        ),
        (
            r#"{"id": "a", "every": "1m", "misfire": "catch_up", "catch_up_limit": 101, "job": {"kind": "sum"}}"#,
            "catch_up_limit must be 1 to 100",
        ),
    ] {
        stage.post("/v1/schedules", body).await.problem(400, "invalid", said);
    }
    let remove = async || Ask::new("DELETE", "/v1/schedules/nightly").of(stage.address()).await;
    remove().await.is(204);
    remove().await.is(204);
    stage.get("/v1/schedules/nightly").await.problem(404, "not-found", "there is no schedule nightly");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_created_filled_sealed_and_waited_for() {
    let stage = Stage::new("http-groups").await;
    let new = |total: &str| format!(r#"{{"kind": "sum", "id": "night", "join": false{total}}}"#);
    let made = stage.post("/v1/groups", &new("")).await.is(200);
    let at = made.header("location").unwrap().to_owned();
    assert_eq!((&made.json()["stage"], &made.json()["total"]), (&json!("open"), &Value::Null));
    let members = r#"{"jobs": [{"kind": "sum", "payload": [1]}, {"kind": "sum", "payload": [2]}]}"#;
    for duplicate in [false, true] {
        let answer = stage.post(&format!("{at}/members"), members).await.is(200).json();
        assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(2), &json!(0)), "{answer}");
        assert_eq!(answer["jobs"][1]["duplicate"], duplicate);
    }
    assert_eq!(stage.get(&format!("{at}/wait?timeout=100ms")).await.is(202).json()["open"], 2);
    let numbers = async |query: &str| {
        let page = stage.get(&format!("{at}/members{query}")).await.is(200).json();
        let members = page["members"].as_array().unwrap().iter();
        let members = members.map(|member| (member["number"].clone(), member["job"]["state"].clone()));
        (members.collect::<Vec<_>>(), page["next"].clone())
    };
    let queued = |number: u32| (json!(number), json!("queued"));
    assert_eq!(numbers("").await, (vec![queued(0), queued(1)], Value::Null));
    assert_eq!(numbers("?limit=1").await, (vec![queued(0)], json!(1)));
    assert_eq!(numbers("?limit=1&first=1").await, (vec![queued(1)], Value::Null));
    assert_eq!(numbers("?first=2").await, (vec![], Value::Null));
    assert_eq!(numbers("?first=5000").await, (vec![], Value::Null));
    stage.get(&format!("{at}/members?limit=1001")).await.problem(400, "invalid", "limit must be 1 to 1000");
    stage.get("/v1/groups/none/members").await.problem(404, "not-found", "there is no group none");
    assert_eq!(stage.post("/v1/groups", &new(r#", "total": 2"#)).await.is(200).json()["total"], 2);
    stage.post("/v1/groups", &new(r#", "total": 3"#)).await.problem(409, "conflict", "set only once");
    let beyond = stage.post(&format!("{at}/members"), r#"{"first": 7, "jobs": [{"kind": "sum"}]}"#).await;
    assert_eq!(beyond.is(200).json()["refused"], 1);
    let node = stage.node().await;
    let done = stage.get(&format!("{at}/wait")).await.is(200).json();
    assert_eq!((&done["stage"], &done["succeeded"]), (&json!("done"), &json!(2)));
    assert_eq!(stage.get(&at).await.is(200).json(), done);
    stage.get("/v1/groups/none").await.problem(404, "not-found", "there is no group none");
    let odd = stage.post("/v1/groups", r#"{"kind": "a b", "id": "x"}"#).await;
    odd.problem(400, "invalid", "kind has ' '");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_listed_completely_by_page_and_stage() {
    let stage = Stage::new("http-groups-list").await;
    let none = stage.get("/v1/groups").await.is(200).json();
    assert_eq!(none, json!({ "groups": [], "next": null }));
    for n in 0..25 {
        let total = if n < 5 { 0 } else { 1 };
        let new = format!(r#"{{"kind": "sum", "id": "g{n}", "join": false, "total": {total}}}"#);
        stage.post("/v1/groups", &new).await.is(200);
    }
    let node = stage.node().await;
    stage.get("/v1/groups/g0/wait").await.is(200);
    eventually("five groups without members are done", SOON, async || {
        let done = stage.get("/v1/groups?stage=done").await.is(200).json();
        done["groups"].as_array().unwrap().len() == 5
    })
    .await;
    let mut seen = Vec::new();
    let mut after = String::new();
    for page in 0.. {
        let answer = stage.get(&format!("/v1/groups?stage=open&limit=7{after}")).await.is(200).json();
        for group in answer["groups"].as_array().unwrap() {
            assert_eq!((&group["stage"], &group["kind"]), (&json!("open"), &json!("sum")), "{group}");
            seen.push(group["id"].as_str().unwrap().to_owned());
        }
        assert!(page < 5, "{answer}");
        let Some(next) = answer["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    seen.sort();
    let mut all = (5..25).map(|n| format!("g{n}")).collect::<Vec<_>>();
    all.sort();
    assert_eq!(seen, all, "each group once");
    stage.get("/v1/groups?limit=0").await.problem(400, "invalid", "limit must be 1 to 1000");
    stage.get("/v1/groups?after=a/b").await.problem(400, "invalid", "not the `next` of a page");
    stage.get("/v1/groups?stage=closed").await.problem(400, "invalid", "stage");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_name_a_problem_until_it_is_corrected() {
    let stage = Stage::new("http-alerts").await;
    let names = async || {
        let found = stage.get("/v1/alerts").await.is(200).json();
        let alerts = found["alerts"].as_array().unwrap();
        alerts.iter().map(|alert| alert["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let fires = async |name: &str| names().await.iter().any(|there| there == name);
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "nobody"}"#).await.is(201);
    eventually("the kind has no worker", SOON, async || fires("KindWithoutWorker").await).await;
    // The keeper of the tests has no access lists.
    assert!(fires("NamespaceOpen").await);
    assert!(!fires("BellwetherNoLeader").await, "it has been so for less than a minute");
    stage.post("/v1/jobs/a/cancel", "").await.is(200);
    let changed = &stage.get("/v1/jobs/a").await.is(200).json()["changed"];
    assert_eq!((&changed["what"], &changed["by"]), (&json!("cancelled"), &json!("anonymous, over HTTP")));
    eventually("no job waits", SOON, async || !fires("KindWithoutWorker").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_job_of_a_long_queue_is_that_of_the_most_urgent_ones() {
    let stage = Stage::new("http-oldest").await;
    let jobs = (0..600).map(|n| format!(r#"{{"id": "job-{n}", "kind": "nobody-{}"}}"#, n % 2));
    let body = format!(r#"{{"jobs": [{}]}}"#, jobs.collect::<Vec<_>>().join(","));
    stage.post("/v1/batch", &body).await.is(200);
    eventually("not all names are read", SOON, async || {
        stage.get("/v1/samples").await.is(200).json()["oldest_queued"]["exact"] == false
    })
    .await;
}
