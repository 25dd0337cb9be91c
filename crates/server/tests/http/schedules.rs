//! Ticks of a rule and of a schedule, and changes of a schedule.

use bellwether_testkit::eventually_some;
use serde_json::json;

use crate::ask::Ask;
use crate::stage::{SOON, Stage};

#[tokio::test(flavor = "multi_thread")]
async fn the_next_ticks_of_a_rule_are_shown_before_it_is_used() {
    let stage = Stage::new("http-ticks").await;
    let ticks = async |query: &str| stage.get(&format!("/v1/ticks?{query}")).await;
    let after = "after=2026-03-28T00:00:00Z";
    let cron = ticks(&format!("cron=30%202%20*%20*%20*&zone=Europe/Berlin&limit=3&{after}")).await.is(200);
    // On 29 March the clocks of Berlin skip 02:30, so the tick is at 03:00 there.
    let next = ["2026-03-28T01:30:00.000Z", "2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"];
    assert_eq!(cron.json(), json!({ "next": next }));
    let every = ticks(&format!("every=1h&anchor=2026-03-28T00:10:00Z&limit=1&{after}")).await.is(200);
    assert_eq!(every.json(), json!({ "next": ["2026-03-28T00:10:00.000Z"] }));
    assert_eq!(ticks("at=2020-01-01T00:00:00Z").await.is(200).json(), json!({ "next": [] }));
    assert_eq!(ticks("every=1m").await.is(200).json()["next"].as_array().unwrap().len(), 5);
    for (query, why) in [
        ("", "give one of cron, every and at"),
        ("every=1m&at=2026-01-01T00:00:00Z", "give one of cron, every and at"),
        ("cron=61%20*%20*%20*%20*", "cron field minute"),
        ("cron=0%200%2030%202%20*", "cron"),
        ("cron=*%20*%20*%20*%20*&zone=Mars/Base", "not an IANA zone"),
        ("every=1ms", "every must be 1s to 366d"),
        ("every=1m&zone=UTC", "zone needs cron"),
        ("every=1m&limit=0", "limit must be 1 to 100, not 0"),
        ("every=1m&limit=101", "limit must be 1 to 100, not 101"),
    ] {
        ticks(query).await.problem(400, "invalid", why);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ticks_of_a_schedule_have_their_jobs() {
    let stage = Stage::new("http-schedule-ticks").await;
    let node = stage.node().await;
    let often = r#"{"id": "often", "every": "1s", "job": {"kind": "sum", "payload": [1]}}"#;
    stage.post("/v1/schedules", often).await.is(201);
    let shown = eventually_some("two ticks have a job that succeeded", SOON, async || {
        let shown = stage.get("/v1/schedules/often/ticks").await.is(200).json();
        let last = shown["last"].as_array().unwrap();
        let done = last.iter().filter(|tick| tick["state"] == "succeeded").count();
        (done >= 2).then(|| shown.clone())
    })
    .await;
    assert_eq!(shown["next"].as_array().unwrap().len(), 5);
    for tick in shown["last"].as_array().unwrap() {
        assert!(tick["at"].as_str() < shown["next"][0].as_str(), "{shown}");
        if let Some(job) = tick["job"].as_str() {
            assert_eq!(job, format!("often@{}", tick["at"].as_str().unwrap().replace(".000", "")));
        }
    }
    stage.post("/v1/schedules/often/pause", "").await.is(200);
    let paused = stage.get("/v1/schedules/often/ticks?limit=1").await.is(200).json();
    assert_eq!((&paused["next"], paused["last"].as_array().unwrap().len()), (&json!([]), 1));
    stage.get("/v1/schedules/none/ticks").await.problem(404, "not-found", "there is no schedule none");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_shows_the_payload_of_its_jobs_and_a_list_does_not() {
    let stage = Stage::new("http-schedule-payload").await;
    let exact = r#"{"n":10000000000000000000001,  "m":[1]}"#;
    let body = format!(r#"{{"id": "nightly", "every": "1h", "job": {{"kind": "sum", "payload": {exact}}}}}"#);
    stage.post("/v1/schedules", &body).await.is(201);
    for shown in [
        stage.get("/v1/schedules/nightly").await.is(200),
        stage.post("/v1/schedules/nightly/pause", "").await.is(200),
    ] {
        assert!(shown.text().contains(r#""payload":{"n":10000000000000000000001,"#), "{}", shown.text());
    }
    let listed = stage.get("/v1/schedules").await.is(200).json();
    let listed = &listed["schedules"][0];
    assert_eq!((&listed["kind"], &listed["payload"]), (&json!("sum"), &json!(null)));
    let stored = stage.get("/v1/schedules/nightly/payload").await.is(200);
    let types = ["content-type", "bellwether-content-type", "content-disposition"];
    let types = types.map(|name| stored.header(name).unwrap());
    assert_eq!(types, ["application/octet-stream", "application/json", "attachment"]);
    assert_eq!(stored.text(), exact);
    stage.get("/v1/schedules/none/payload").await.problem(404, "not-found", "there is no schedule none");
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_are_listed_by_name_in_pages() {
    let stage = Stage::new("http-schedule-pages").await;
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        let body = format!(r#"{{"id": "{name}", "every": "1h", "job": {{"kind": "sum"}}}}"#);
        stage.post("/v1/schedules", &body).await.is(201);
    }
    for limit in [1, 2, 5, 1_000] {
        let (mut listed, mut after) = (Vec::new(), String::new());
        loop {
            let page = stage.get(&format!("/v1/schedules?limit={limit}{after}")).await.is(200).json();
            let schedules = page["schedules"].as_array().unwrap();
            assert!(schedules.len() <= limit);
            listed.extend(schedules.iter().map(|schedule| schedule["id"].as_str().unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
        }
        assert_eq!(listed, names, "{limit}");
    }
    stage.get("/v1/schedules?limit=0").await.problem(400, "invalid", "limit must be 1 to 1000, not 0");
    stage.get("/v1/schedules?after=a/b").await.problem(400, "invalid", "not the `next` of a page");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_changed_and_keeps_its_job() {
    let stage = Stage::new("http-schedule-change").await;
    let nightly = r#"{"id": "nightly", "cron": "0 3 * * *", "overlap": "forbid",
        "job": {"kind": "sum", "payload": [1, 2], "options": {"priority": 7}}}"#;
    let made = stage.post("/v1/schedules", nightly).await.is(201).json();
    let change = async |body: &str| {
        let ask = Ask::new("PATCH", "/v1/schedules/nightly").header("content-type: application/json");
        ask.body(body.as_bytes()).of(stage.address()).await
    };
    for _again in 0..2 {
        let changed =
            change(r#"{"cron": "30 4 * * *", "zone": "Europe/Berlin", "grace": "2m"}"#).await.is(200).json();
        assert_eq!((&changed["cron"], &changed["zone"]), (&json!("30 4 * * *"), &json!("Europe/Berlin")));
        assert_eq!((&changed["grace"], &changed["overlap"]), (&json!("2m"), &json!("forbid")));
        assert_eq!((&changed["options"], &changed["kind"]), (&made["options"], &made["kind"]));
        assert_eq!(changed["spec_version"], 2, "a repeated change changes nothing");
    }
    let changed = change(r#"{"every": "1h", "misfire": "skip"}"#).await.is(200).json();
    assert_eq!((&changed["every"], &changed["misfire"]), (&json!("1h"), &json!("skip")));
    let job = stage.post("/v1/schedules/nightly/trigger", "").await.is(201);
    let job = stage.get(job.header("location").unwrap()).await.is(200).json();
    assert_eq!(job["payload"], json!([1, 2]));
    for (body, why) in [
        (r#"{"zone": "Europe/Berlin"}"#, "zone needs cron"),
        (r#"{"every": "1m", "cron": "* * * * *"}"#, "give one of cron, every and at"),
        (r#"{"grace": "30d"}"#, "grace must be"),
        (r#"{"job": {"kind": "other"}}"#, "unknown field `job`"),
    ] {
        change(body).await.problem(400, "invalid", why);
    }
    assert_eq!(stage.get("/v1/schedules/nightly").await.json()["spec_version"], 3);
}
