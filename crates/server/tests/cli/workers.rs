//! Changing running workers.

use std::time::Duration;

use bellwether::Client;
use bellwether_testkit::{Process, eventually, namespace};
use serde_json::json;

use crate::run::{command, run_in};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_running_worker_is_changed_and_reset() {
    let to = namespace("cli-worker-set");
    let mut node =
        command(&["node", "-q", "--zookeeper", &to, "--node-id", "busy", "--slots", "2", "--tags", "eu"]);
    let _node = Process::start("the node", &mut node).unwrap();
    let client = Client::connect(&to).await.unwrap();
    eventually("the worker is registered", SOON, async || !client.workers().await.unwrap().is_empty()).await;
    let set = |more: &[&str]| run_in(&to, &[&["worker", "set", "busy", "--output", "json"], more].concat());
    let settings = |more: &[&str]| {
        let mut settings = set(more).exits(0).json()[0]["settings"].take();
        let changed = settings["changed"].take();
        assert_eq!(changed["what"], "set", "{changed}");
        assert!(
            changed["by"].as_str().unwrap().contains('@'),
            "the user and the host of the command: {changed}"
        );
        settings
    };
    let nobody: Option<&str> = None;
    let tags: Option<Vec<&str>> = None;
    assert_eq!(
        settings(&["--slots", "1", "--pause-kinds", "sum,echo"]),
        json!({ "slots": 1, "tags": tags, "paused_kinds": ["echo", "sum"], "changed": nobody })
    );
    assert_eq!(
        settings(&["--tags", "gpu,eu", "--resume-kinds", "echo"]),
        json!({ "slots": 1, "tags": ["eu", "gpu"], "paused_kinds": ["sum"], "changed": nobody })
    );
    let listed = run_in(&to, &["worker", "list", "--output", "json"]).exits(0).json();
    assert_eq!((&listed[0]["slots"], &listed[0]["tags"]), (&json!(1), &json!(["eu", "gpu"])));
    assert_eq!(listed[0]["settings"]["paused_kinds"], json!(["sum"]));
    let table = run_in(&to, &["worker", "list"]).exits(0).stdout;
    assert!(table.contains("sum(paused)"), "{table}");
    run_in(&to, &["job", "submit", "sum", "[1]", "--id", "a"]).exits(0);
    let why = run_in(&to, &["job", "explain", "a"]).exits(0).stdout;
    assert!(why.contains("kind sum is paused on each of the 1 workers"), "{why}");

    assert_eq!(settings(&["--tags", ""])["tags"], json!([]));
    assert_eq!(
        settings(&["--reset"]),
        json!({ "slots": null, "tags": null, "paused_kinds": [], "changed": nobody })
    );
    run_in(&to, &["job", "wait", "a", "--deadline", "30s"]).exits(0);
    for (wrong, code, said) in [
        (&["--pause-kinds", "smu"][..], 2, "the worker has no handler for kind smu"),
        (&["--slots", "4097"], 2, "slots must be 0 to 4096, not 4097"),
        (&["--tags", "a b"], 2, "tag has ' ' at byte 1"),
        (&[], 2, "required"),
    ] {
        set(wrong).exits(code).says(said);
    }
    run_in(&to, &["worker", "set", "nobody", "--slots", "1"]).exits(4).says("there is no worker nobody");
}
