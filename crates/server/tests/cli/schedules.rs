//! Schedules from the command line and from a file.

use std::process::{Child, Stdio};
use std::time::Duration;

use bellwether::{Client, ScheduleId};
use bellwether_testkit::{Process, eventually, namespace};
use serde_json::json;

use crate::run::{command, run, run_in};

const SOON: Duration = Duration::from_secs(20);

#[test]
fn ticks_are_previewed_without_a_namespace() {
    let preview = |arguments: &[&str]| {
        let all =
            [&["schedule", "preview", "--after", "2026-03-28T12:00:00Z", "-n", "2"], arguments].concat();
        run(&all).exits(0).stdout
    };
    let berlin = preview(&["--cron", "30 2 * * *", "--zone", "europe/berlin"]);
    assert_eq!(
        berlin, "2026-03-29T01:00:00Z\n2026-03-30T00:30:00Z\n",
        "the end of the gap, and the next day"
    );
    assert_eq!(preview(&["--every", "1h"]), "2026-03-28T13:00:00Z\n2026-03-28T14:00:00Z\n");
    let json = preview(&["--cron", "30 2 * * *", "--output", "json"]);
    let ticks = serde_json::from_str::<serde_json::Value>(&json).unwrap();
    assert_eq!(ticks, json!({ "next": ["2026-03-29T02:30:00.000Z", "2026-03-30T02:30:00.000Z"] }));
}

#[test]
fn invalid_schedules_are_rejected_before_anything_is_sent() {
    let nowhere = "127.0.0.1:1/nowhere";
    for (arguments, said) in [
        (
            vec!["preview", "--cron", "0 0 31 2 *"],
            "cron expression \"0 0 31 2 *\" never ticks: no day until 2500 matches it",
        ),
        (vec!["preview", "--cron", "61 * * * *"], "cron field minute is \"61\": 0-59"),
        (vec!["preview", "--cron", "* * * *"], "has 4 fields: give 5"),
        (
            vec!["preview", "--cron", "0 2 * * *", "--zone", "Mars/Base"],
            "zone \"Mars/Base\" is not an IANA zone",
        ),
        (vec!["preview", "--every", "0s"], "every must be 1s to 366d"),
        (vec!["preview", "nightly", "--every", "5s"], "unexpected argument 'nightly'"),
        (vec!["preview"], "required arguments were not provided"),
        (vec!["preview", "--cron", "0 2 * * *", "-n", "0"], "limit must be 1 to 100, not 0"),
        (vec!["add", "nightly", "sum"], "required arguments were not provided"),
        (vec!["add", "nightly", "sum", "--cron", "@daily"], "has 1 fields"),
        (vec!["add", "a/b", "sum", "--every", "5s"], "schedule has '/' at byte 1"),
        (vec!["add", "nightly", "sum", "--every", "400d"], "every must be 1s to 366d"),
        (vec!["add", "nightly", "sum", "--every", "5s", "--grace", "0s"], "grace must be 1s to 7d, not 0s"),
        (vec!["add", "nightly", "sum", "--every", "5s", "--priority", "10"], "priority must be 0 to 9"),
        (
            vec![
                "add",
                "nightly",
                "sum",
                "--every",
                "5s",
                "--misfire",
                "catch_up",
                "--catch-up-limit",
                "101",
            ],
            "catch_up_limit must be 1 to 100, not 101",
        ),
        (
            vec!["add", "nightly", "sum", "--every", "5s", "--overlap", "queue", "--lane", "x"],
            "uses its own lane, not x",
        ),
        (vec!["add", "nightly", "sum", "--at", "tomorrow"], "such as 2026-11-21T11:33:00Z"),
    ] {
        let arguments = [&["schedule"][..], &arguments].concat();
        let refused = run_in(nowhere, &arguments).exits(2).says(said);
        assert_eq!(refused.stdout, "");
    }
    let long = "x".repeat(92);
    run_in(nowhere, &["schedule", "add", &long, "sum", "--every", "5s"])
        .exits(2)
        .says("schedule is 92 bytes long: at most 91 are allowed");
}

#[tokio::test]
async fn a_schedule_is_added_changed_triggered_and_removed() {
    let to = namespace("cli-schedules");
    let in_json =
        |arguments: &[&str]| run_in(&to, &[&["schedule"], arguments, &["--output", "json"]].concat());
    let add = ["add", "nightly", "sum", "[1, 2]", "--cron", "30 2 * * *", "--zone", "Europe/Berlin"];
    let added = in_json(&add).exits(0).json();
    assert_eq!((&added["added"], &added["state"]), (&"created".into(), &"ticking".into()), "{added}");
    assert_eq!(added["zone"], "Europe/Berlin");
    assert!(added["next"].as_str().unwrap().ends_with(":30:00.000Z"), "{added}");
    assert_eq!(in_json(&add).exits(0).json()["added"], "unchanged");

    assert_eq!(in_json(&["show", "nightly"]).exits(0).json()["payload"], json!([1, 2]));
    assert_eq!(in_json(&["list"]).exits(0).json()[0]["payload"], json!(null));
    let shown = run_in(&to, &["schedule", "show", "nightly"]).exits(0).stdout;
    let fields = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect::<Vec<_>>();
    for field in ["state ticking", "when 30 2 * * * (Europe/Berlin)", "misfire once", "payload [1, 2]"] {
        assert!(fields.contains(&field.split(' ').collect()), "{field}: {shown}");
    }

    let other = ["add", "nightly", "sum", "--every", "1h"];
    in_json(&other).exits(1).says("schedule nightly exists with another time to tick: replace it");
    let replaced = in_json(&[&other[..], &["--replace"]].concat()).exits(0).json();
    assert_eq!((&replaced["added"], &replaced["spec_version"]), (&"replaced".into(), &2.into()));

    assert_eq!(in_json(&["pause", "nightly"]).exits(0).json()["state"], "paused");
    assert_eq!(in_json(&["show", "nightly"]).exits(0).json()["next"], serde_json::Value::Null);
    assert_eq!(in_json(&["resume", "nightly"]).exits(0).json()["state"], "ticking");
    let ticks = in_json(&["ticks", "nightly", "-n", "2"]).exits(0).json();
    assert!(ticks["next"][1].as_str().unwrap().ends_with(":00:00.000Z"), "{ticks}");
    assert_eq!(ticks["last"], json!([]));
    let table = run_in(&to, &["schedule", "ticks", "nightly", "--limit", "1"]).exits(0).stdout;
    assert!(table.contains("next") && table.contains(":00:00Z"), "{table}");
    in_json(&["ticks", "nightly", "--limit", "101"]).exits(2).says("limit must be 1 to 100, not 101");
    let job = in_json(&["trigger", "nightly"]).exits(0).json();
    let job = job["id"].as_str().unwrap();
    assert!(job.starts_with("nightly@"), "{job}");
    run_in(&to, &["job", "show", job]).exits(0);

    run_in(&to, &["schedule", "add", "launch", "sum", "--at", "2020-01-01T00:00:00Z"])
        .exits(2)
        .says("schedule launch would never tick: 2020-01-01T00:00:00Z is in the past");
    let shared = ["add", "beat", "sum", "--every", "1h", "--job-id", "reindex"];
    assert_eq!(in_json(&shared).exits(0).json()["job_id"], "reindex");
    for _ in 0..2 {
        assert_eq!(in_json(&["trigger", "beat"]).exits(0).json()["id"], "reindex");
    }
    in_json(&[&shared[..], &["--overlap", "queue"]].concat()).exits(2).says("its ticks cannot queue");
    assert_eq!(in_json(&["remove", "beat"]).exits(0).json()[0]["removed"], true);
    let table = run_in(&to, &["schedule", "list"]).exits(0).stdout;
    assert!(table.contains("nightly") && table.contains("every 1h"), "{table}");
    assert_eq!(in_json(&["list"]).exits(0).json().as_array().unwrap().len(), 1);
    in_json(&["add", "later", "sum", "--every", "1h"]).exits(0);
    let one = in_json(&["list", "--limit", "1"]).exits(0);
    assert_eq!(one.json().as_array().unwrap().len(), 1);
    one.says("there are further schedules: --limit 10 shows more");
    in_json(&["remove", "later"]).exits(0);
    assert_eq!(in_json(&["remove", "nightly"]).exits(0).json()[0]["removed"], true);
    in_json(&["show", "nightly"]).exits(4).says("there is no schedule nightly");
    in_json(&["remove", "nightly"]).exits(4).says("there is no schedule nightly");
    in_json(&["trigger", "nightly"]).exits(4);
}

#[test]
fn a_change_of_a_schedule_keeps_the_options_that_are_not_given() {
    let to = namespace("cli-schedule-change");
    let in_json =
        |arguments: &[&str]| run_in(&to, &[&["schedule"], arguments, &["--output", "json"]].concat());
    let add = [
        "add",
        "nightly",
        "sum",
        "[1, 2]",
        "--cron",
        "30 2 * * *",
        "--zone",
        "Europe/Berlin",
        "--grace",
        "5m",
    ];
    in_json(&add).exits(0);
    in_json(&["pause", "nightly"]).exits(0);
    let changed = in_json(&[
        "change",
        "nightly",
        "--overlap",
        "forbid",
        "--misfire",
        "catch_up",
        "--catch-up-limit",
        "3",
    ]);
    let changed = changed.exits(0).json();
    let fields = ["overlap", "state", "grace", "kind", "spec_version"].map(|field| changed[field].clone());
    assert_eq!(json!(fields), json!(["forbid", "paused", "5m", "sum", 2]), "{changed}");
    let misfire = ["misfire", "catch_up_limit", "catch_up_within"].map(|field| changed[field].clone());
    assert_eq!(json!(misfire), json!(["catch_up", 3, "1d"]), "{changed}");
    let changed = in_json(&["change", "nightly", "--catch-up-within", "2h"]).exits(0).json();
    let limits = [&changed["catch_up_limit"], &changed["catch_up_within"]];
    assert_eq!(json!(limits), json!([3, "2h"]), "the other limit is kept: {changed}");
    assert_eq!(changed["zone"], "Europe/Berlin");
    let hourly = in_json(&["change", "nightly", "--every", "1h"]).exits(0).json();
    assert_eq!((&hourly["every"], &hourly["overlap"]), (&json!("1h"), &json!("forbid")), "{hourly}");
    assert_eq!(in_json(&["change", "nightly", "--every", "1h"]).exits(0).json()["spec_version"], 4);
    for (arguments, said) in [
        (&["nightly"][..], "required arguments were not provided"),
        (&["nightly", "--zone", "UTC"], "--cron <EXPRESSION>"),
        (&["nightly", "--every", "1h", "--at", "2030-01-01T00:00:00Z"], "cannot be used with"),
        (&["nightly", "--grace", "8d"], "grace must be 1s to 7d"),
        (&["nightly", "--misfire", "once", "--catch-up-limit", "3"], "catch_up_limit needs misfire catch_up"),
    ] {
        in_json(&[&["change"], arguments].concat()).exits(2).says(said);
    }
    in_json(&["change", "none", "--grace", "1m"]).exits(4).says("there is no schedule none");
}

/// A running node; killed when dropped.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[tokio::test]
async fn three_nodes_with_one_file_share_one_schedule_and_an_invalid_file_starts_no_node() {
    let to = namespace("cli-config");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("node.toml");
    let path = file.to_str().unwrap();
    std::fs::write(
        &file,
        "[[schedule]]\nid = \"beat\"\nevery = \"1s\"\njob = { kind = \"sum\", payload = [1, 2] }\n",
    )
    .unwrap();
    let start = |_| {
        let mut command = command(&["node", "--zookeeper", &to, "--session-timeout", "4s", "--config", path]);
        Node(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let nodes = (0..3).map(start).collect::<Vec<_>>();
    let client = Client::connect(&to).await.unwrap();
    let (schedules, id) = (client.schedules(), ScheduleId::new("beat").unwrap());
    let record = async || schedules.get(&id).await.ok()?.record.ok();
    eventually("the schedule ticks", SOON, async || record().await.is_some_and(|record| record.ticked >= 3))
        .await;
    let all = schedules.list(None, 100).await.unwrap().items;
    assert_eq!(all.len(), 1);
    let beat = all[0].record.as_ref().unwrap();
    assert_eq!((beat.spec_version, beat.skipped), (1, 0), "{beat:?}");
    drop(nodes);

    std::fs::write(&file, "[[schedule]]\nid = \"beat\"\nevry = \"1s\"\n").unwrap();
    run_in(&to, &["node", "--config", path])
        .exits(2)
        .says("node.toml:3: unknown field `evry`, expected one of `cron`");
    run_in(&to, &["node", "--config", "/no/such/file"]).exits(2).says("cannot read /no/such/file");
}

#[tokio::test]
async fn a_process_that_is_only_a_gateway_adds_the_schedules_of_its_file() {
    let to = namespace("cli-gateway-schedules");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[[schedule]]\nid = \"beat\"\nevery = \"1h\"\njob = { kind = \"beat\" }\n")
        .unwrap();
    let path = file.path().to_str().unwrap();
    let gateway =
        ["node", "--zookeeper", &to, "--roles", "gateway", "--http-listen", "127.0.0.1:0", "--config", path];
    let _gateway = Process::start("the gateway", &mut command(&gateway)).unwrap();
    let client = Client::connect(&to).await.unwrap();
    eventually("the schedule exists", SOON, async || {
        client.schedules().get(&ScheduleId::new("beat").unwrap()).await.is_ok()
    })
    .await;
}
