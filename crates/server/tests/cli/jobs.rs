//! Jobs from their submission to their end.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use bellwether::{JobId, WorkerId};
use bellwether_core::job::{Assignment, Attempt, Ending, JobRecord, Payload};
use bellwether_core::outcome::Outcome;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::{path, txn, wire};
use bellwether_host::clock;
use bellwether_testkit::namespace;
use bellwether_zk::{Zk, connect};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::run::{command, run_in, run_with_stdin};

/// Ends a queued job as its worker would.
async fn end(to: &str, job: &str, ending: Ending) {
    let zk: Zk = connect(&to.parse().unwrap(), Duration::from_secs(10)).await.unwrap();
    let (job, worker) = (JobId::new(job).unwrap(), WorkerId::new(Uuid::now_v7()));
    let apply = async |ops| assert_eq!(zk.commit(ops).await, Outcome::Applied(()));
    let node = zk.get(path::record(&job)).await.unwrap().unwrap();
    let record: JobRecord = wire::decode(&node.data).unwrap();
    let assignment = Assignment::new(record.attempts + 1, 0, clock::local());
    let inbox =
        txn::Op::Create { path: path::inbox(worker), data: Vec::new(), lifetime: txn::Lifetime::Persistent };
    apply(vec![inbox]).await;
    apply(txn::assign(&ReadyEntry::of_record(&job, &record), worker, &assignment, None)).await;
    let attempt = Attempt { number: assignment.attempt, worker };
    let (record, next) = record.close(attempt, ending, clock::local(), 0);
    apply(txn::close(&job, worker, node.version, None, &record, &next)).await;
}

#[tokio::test]
async fn a_job_is_submitted_shown_waited_for_and_listed() {
    let to = namespace("cli-life");
    let submit = ["job", "submit", "sum", "[1, 2]", "--id", "a", "--output", "json"];
    let job = run_in(&to, &submit).exits(0).json();
    assert_eq!(job, json!({ "id": "a", "duplicate": false, "accepted": "new", "generation": 1 }));
    let job = run_in(&to, &["job", "show", "a", "--output", "json"]).exits(0).json();
    assert_eq!((&job["waiting"], &job["payload"]), (&json!("unknown_kind"), &json!([1, 2])));
    assert_eq!(run_in(&to, &submit).exits(0).json()["duplicate"], json!(true));
    run_in(&to, &["job", "submit", "sum", "3", "--id", "a"]).exits(1).says("job id a belongs to another job");

    let timed_out = run_in(&to, &["job", "wait", "a", "--deadline", "3s", "--output", "json"]).exits(5);
    assert_eq!(timed_out.json()["state"], json!("queued"));
    timed_out.says("job a has not ended after 3s: queued: no live worker has a handler for its kind");

    end(&to, "a", Ending::Succeeded(Payload::json(*b"{\"sum\": 3}").unwrap())).await;
    let ended = run_in(&to, &["job", "wait", "a", "--output", "json"]).exits(0).json();
    let fields = ["id", "kind", "state", "attempt", "result", "error"].map(|field| ended[field].clone());
    assert_eq!(
        Value::from(fields.to_vec()),
        json!(["a", "sum", "succeeded", 1, { "sum": 3 }, null]),
        "{ended}"
    );
    assert!(ended["worker"].is_string() && ended["finished_at"].is_string(), "{ended}");

    run_in(&to, &["job", "submit", "sum", "--id", "b"]).exits(0);
    let listed = run_in(&to, &["job", "list", "--state", "queued", "--output", "json"]).exits(0).json();
    assert_eq!((listed[0]["id"].clone(), listed.as_array().unwrap().len()), (json!("b"), 1));
    let table = run_in(&to, &["job", "list"]).exits(0).stdout;
    assert!(
        table.contains("succeeded") && table.contains("no live worker has a handler for its kind"),
        "{table}"
    );
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn the_list_of_jobs_begins_with_the_newest() {
    let to = namespace("cli-newest");
    let ids = ["one", "two", "three", "four", "five"];
    for id in ids {
        run_in(&to, &["job", "submit", "sum", "--id", id]).exits(0);
    }
    let table = run_in(&to, &["job", "list"]).exits(0).stdout;
    let listed = table
        .lines()
        .filter_map(|line| ids.into_iter().find(|id| line.split_whitespace().next() == Some(id)));
    assert_eq!(listed.collect::<Vec<_>>(), ["five", "four", "three", "two", "one"], "{table}");
}

#[tokio::test]
async fn a_job_that_ends_badly_fails_its_wait_and_may_be_retried() {
    let to = namespace("cli-dead");
    run_in(&to, &["job", "submit", "sum", "--id", "a", "--max-attempts", "1"]).exits(0);
    end(&to, "a", Ending::Failed("boom".into())).await;
    let dead = run_in(&to, &["job", "wait", "a", "--output", "json"]).exits(1).says("job a is dead: boom");
    assert_eq!((dead.json()["state"].clone(), dead.json()["error"].clone()), (json!("dead"), json!("boom")));
    let shown = run_in(&to, &["job", "show", "a"]).exits(0).stdout;
    let attempts =
        shown.split_once("GENERATION  ATTEMPT  OUTCOME").expect("the closed attempts are listed").1;
    assert!(attempts.contains("failed") && attempts.contains("boom"), "{shown}");
    run_in(&to, &["job", "cancel", "a"])
        .exits(1)
        .says("job a has already ended (dead): it cannot be cancelled");
    let retried = run_in(&to, &["job", "retry", "a", "--output", "json"]).exits(0).json();
    assert_eq!(retried, json!({ "id": "a", "outcome": "reopened", "worker": null, "generation": 2 }));
    run_in(&to, &["job", "wait", "a", "--generation", "2", "--deadline", "3s"]).exits(5);
    run_in(&to, &["job", "wait", "a", "b", "--generation", "2"]).exits(2).says("exactly one id");
    let cancelled = run_in(&to, &["job", "cancel", "a", "--output", "json"]).exits(0).json();
    assert_eq!(cancelled, json!({ "id": "a", "outcome": "cancelled", "worker": null, "generation": null }));
    let shown = run_in(&to, &["job", "show", "a", "--output", "json"]).exits(0).json();
    assert_eq!(shown["changed"]["what"], "cancelled", "{shown}");
    let by = shown["changed"]["by"].as_str().unwrap();
    assert!(by.contains('@'), "the user and host of the command: {by}");
    let again = run_in(&to, &["job", "cancel", "a", "--output", "json"]).exits(0).json();
    assert_eq!(again["outcome"], "already_cancelled");
    run_in(&to, &["job", "wait", "a"]).exits(1).says("job a is cancelled");
    run_in(&to, &["job", "wait", "a", "--generation", "2"]).exits(1).says("job a is cancelled");
    // S23: the end of an earlier generation is no answer.
    run_in(&to, &["job", "wait", "a", "--generation", "3", "--deadline", "3s"]).exits(5);
}

#[test]
fn absent_jobs_are_reported_and_the_other_jobs_are_printed() {
    let to = namespace("cli-absent");
    run_in(&to, &["job", "submit", "sum", "--id", "a"]).exits(0);
    for verb in ["show", "cancel", "retry"] {
        let ran = run_in(&to, &["job", verb, "nobody", "a", "--output", "json"]).exits(4);
        assert_eq!(ran.json()[0]["id"], json!("a"));
        ran.says("there is no job nobody");
    }
    let ran = run_in(&to, &["job", "show", "nobody", "--output", "json"]).exits(4);
    assert_eq!(ran.stdout, "");
    run_in(&to, &["leader", "show"]).exits(4).says("there is no leader");
    let candidates = run_in(&to, &["leader", "candidates", "--output", "json"]).exits(0).json();
    assert_eq!(candidates, json!({ "candidates": [], "unreadable": 0 }));
    assert_eq!(run_in(&to, &["worker", "list", "--output", "json"]).exits(0).json(), json!([]));
}

#[test]
fn one_command_submits_thousands_of_jobs_and_a_reader_of_its_output_may_stop_early() {
    let to = namespace("cli-many");
    let ids = run_in(&to, &["job", "submit", "noop", "--count", "5000", "--id", "n"]).exits(0).stdout;
    assert_eq!((ids.lines().count(), ids.lines().last()), (5_000, Some("n-5000")));
    // Because of the ids the submission can be repeated.
    let again = ["job", "submit", "noop", "--count", "3", "--id", "n", "--output", "json"];
    let again = run_in(&to, &again).exits(0).json();
    assert!(again.as_array().unwrap().iter().all(|job| job["duplicate"] == json!(true)), "{again}");
    let five = run_in(&to, &["job", "list", "--limit", "5", "--output", "json"]).exits(0);
    assert_eq!(five.json().as_array().unwrap().len(), 5);
    five.says("there are further jobs: --limit 50 shows more");

    let mut list = command(&["job", "list", "--limit", "5000", "--output", "json"]);
    list.env("BELLWETHER_ZOOKEEPER", &to).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut list = list.spawn().unwrap();
    let mut first = String::new();
    BufReader::new(list.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let ended = list.wait_with_output().unwrap();
    assert_eq!((first.as_str(), ended.status.code()), ("[\n", Some(0)));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

#[test]
fn a_payload_comes_from_the_argument_a_file_or_stdin() {
    let to = namespace("cli-payload");
    let submit = |payload| ["job", "submit", "sum", payload];
    let payload = |submitted: crate::run::Ran| {
        let id = submitted.exits(0).stdout;
        run_in(&to, &["job", "show", id.trim(), "--output", "json"]).exits(0).json()["payload"].clone()
    };
    assert_eq!(payload(run_in(&to, &["job", "submit", "sum"])), json!(null));
    assert_eq!(payload(run_in(&to, &submit("-1"))), json!(-1));
    assert_eq!(payload(run_with_stdin(&to, &submit("-"), b"[7]")), json!([7]));
    let file = std::env::temp_dir().join(format!("bellwether-payload-{}", std::process::id()));
    std::fs::write(&file, "{\"from\":\"file\"}").unwrap();
    assert_eq!(payload(run_in(&to, &submit(&format!("@{}", file.display())))), json!({ "from": "file" }));
    std::fs::remove_file(&file).unwrap();
    let text = ["job", "submit", "sum", "plain", "--content-type", "text/plain"];
    assert_eq!(payload(run_in(&to, &text)), json!("plain"));
    // Payloads can be large, so a list leaves them out by default.
    let listed = |more: &[&str]| {
        let list = [&["job", "list", "--kind", "sum", "--output", "json"], more].concat();
        let jobs = run_in(&to, &list).exits(0).json();
        jobs.as_array().unwrap().iter().filter(|job| job["payload"] != json!(null)).count()
    };
    assert_eq!((listed(&[]), listed(&["--payloads"])), (0, 4));
}

#[tokio::test]
async fn a_job_that_waits_in_its_lane_is_shown_with_the_first_job_of_the_lane() {
    let to = namespace("cli-lane");
    for id in ["b", "a"] {
        run_in(&to, &["job", "submit", "sum", "1", "--id", id, "--lane", "account-7"]).exits(0);
    }
    let shown = run_in(&to, &["job", "show", "a"]).exits(0).stdout;
    assert!(shown.contains("b comes first in its lane") && shown.contains("account-7"), "{shown}");
    let [first, second] =
        ["b", "a"].map(|id| run_in(&to, &["job", "show", id, "--output", "json"]).exits(0).json());
    let fields = |job: &Value| [&job["options"]["lane"], &job["behind"], &job["waiting"]].map(Clone::clone);
    assert_eq!(fields(&first), [json!("account-7"), json!(null), json!("unknown_kind")]);
    assert_eq!(fields(&second), [json!("account-7"), json!("b"), json!("lane")]);
}
