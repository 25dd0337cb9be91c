//! Ids, priorities, times, pauses, and explanations of waiting jobs.

use bellwether_testkit::namespace;
use serde_json::{Value, json};

use crate::run::run_in;

#[test]
fn name_priority_and_times_are_set_and_shown() {
    let to = namespace("cli-order");
    let json = |arguments: &[&str]| {
        let arguments = [arguments, &["--output", "json"]].concat();
        run_in(&to, &arguments).exits(0).json()
    };
    let nightly = ["job", "submit", "report", "11", "--named", "nightly", "--priority", "9", "--delay", "1h"];
    assert_eq!(json(&nightly)["accepted"], json!("new"));
    let job = json(&["job", "show", "report:nightly"]);
    assert_eq!(
        [&job["state"], &job["waiting"], &job["options"]["priority"]],
        [&json!("delayed"), &json!("not_before"), &json!(9)]
    );
    assert!(job["not_before"].is_string(), "{job}");
    assert_eq!(json(&nightly)["accepted"], json!("same"));
    let other = ["job", "submit", "report", "12", "--named", "nightly"];
    run_in(&to, &other).exits(1).says("belongs to another job");
    assert_eq!(json(&[&other[..], &["--if-exists", "ignore"]].concat())["accepted"], json!("other"));
    run_in(&to, &["job", "cancel", "report:nightly"]).exits(0);
    let again = ["job", "submit", "report", "11", "--named", "nightly", "--if-exists", "again"];
    let opened = json(&again);
    assert_eq!([&opened["accepted"], &opened["generation"]], [&json!("again"), &json!(2)]);

    let at = [
        "job",
        "submit",
        "report",
        "--run-at",
        "2029-11-21T12:33:00+01:00",
        "--expires-at",
        "2030-01-01T00:00:00Z",
    ];
    let job = json(&["job", "show", json(&at)["id"].as_str().unwrap()]);
    assert_eq!(
        [&job["not_before"], &job["expires_at"]],
        [&json!("2029-11-21T11:33:00.000Z"), &json!("2030-01-01T00:00:00.000Z")]
    );
    let many = json(&["job", "submit", "report", "1", "--named", "n", "--count", "2"]);
    assert_eq!([&many[0]["id"], &many[1]["id"]], [&json!("report:n-1"), &json!("report:n-2")]);
}

#[test]
fn invalid_options_of_a_job_are_usage_errors() {
    let to = namespace("cli-order-refusals");
    for (arguments, said) in [
        (&["--priority", "10"][..], "priority must be 0 to 9"),
        (&["--delay", "20000d"], "delay must be at most 3653 days ahead"),
        (&["--run-at", "tomorrow"], "is not an instant"),
        (&["--run-at", "2029-11-21T12:33:00Z", "--delay", "1h"], "cannot be used with"),
        (&["--expires-in", "0s"], "expires_in must be in the future"),
        (&["--delay", "2h", "--expires-in", "1h"], "expires_in must be after delay"),
        (&["--delay", "2h", "--if-exists", "again", "--named", "n"], "reopened immediately"),
        (&["--named", "a:b"], "name has ':'"),
        (&["--id", "a@b"], "job id has '@'"),
        (&["--id", "a", "--named", "b"], "cannot be used with"),
    ] {
        let arguments = [&["job", "submit", "report", "1"], arguments].concat();
        run_in(&to, &arguments).exits(2).says(said);
    }
    assert_eq!(run_in(&to, &["kind", "list", "--output", "json"]).code, 3, "no namespace was created");
}

#[test]
fn a_kind_is_paused_listed_and_resumed_and_its_jobs_are_explained() {
    let to = namespace("cli-kinds");
    run_in(&to, &["job", "submit", "report", "1", "--id", "a"]).exits(0);
    let json = |arguments: &[&str]| {
        let arguments = [arguments, &["--output", "json"]].concat();
        run_in(&to, &arguments).exits(0).json()
    };
    let why = json(&["job", "explain", "a"]);
    assert_eq!(
        why,
        json!({
            "id": "a", "state": "queued", "why": "unknown_kind", "kind": "report",
            "sentence": "no live worker has a handler for kind report",
        })
    );
    let pause = ["kind", "pause", "report", "--note", "the disk is full"];
    assert_eq!(json(&pause), json!([{ "kind": "report", "outcome": "paused" }]));
    assert_eq!(json(&pause)[0]["outcome"], json!("already_paused"));
    let kinds = json(&["kind", "list"]);
    assert_eq!([&kinds[0]["kind"], &kinds[0]["workers"]], [&json!("report"), &json!([])]);
    assert_eq!(kinds[0]["paused"]["note"], json!("the disk is full"));
    let table = run_in(&to, &["job", "explain", "a"]).exits(0).stdout;
    assert!(
        table.contains("kind report is paused since 20") && table.contains(": the disk is full"),
        "{table}"
    );
    let table = run_in(&to, &["kind", "list"]).exits(0).stdout;
    assert!(table.contains(": the disk is full"), "{table}");
    assert_eq!(json(&["job", "show", "a"])["waiting"], json!("paused"));
    let resume = ["kind", "resume", "report", "other"];
    let resumed = json(&resume);
    assert_eq!([&resumed[0]["outcome"], &resumed[1]["outcome"]], [&json!("resumed"), &json!("not_paused")]);
    run_in(&to, &["job", "explain", "nobody"]).exits(4).says("there is no job nobody");
    let both = json(&["job", "explain", "a", "a"]);
    assert_eq!(both.as_array().map(Vec::len), Some(2));
    assert_eq!(Value::Null, both[0]["missing"]);
    assert_eq!(json(&["kind", "pause", "report"])[0]["outcome"], json!("paused"));
    let by = json(&["kind", "list"])[0]["paused"]["by"].as_str().unwrap().to_owned();
    let (user, host) = by.split_once('@').unwrap();
    assert!(!user.is_empty() && !host.is_empty(), "{by}");
    let long = "x".repeat(257);
    run_in(&to, &["kind", "pause", "report", "--note", &long])
        .exits(2)
        .says("note must be at most 256 bytes");
}
