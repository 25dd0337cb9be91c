//! Lanes on the command line.

use bellwether_testkit::namespace;
use serde_json::json;

use crate::run::run_in;

#[test]
fn lanes_with_open_jobs_are_listed_with_the_job_that_is_first() {
    let to = namespace("cli-lanes");
    for (name, lane) in [("a", "account-1"), ("b", "account-1"), ("c", "account-2")] {
        run_in(&to, &["job", "submit", "sum", "[1]", "--named", name, "--lane", lane]).exits(0);
    }
    let lanes = run_in(&to, &["lane", "list", "--output", "json"]).exits(0).json();
    let mut lanes = lanes.as_array().unwrap().clone();
    lanes.sort_by_key(|lane| lane["lane"].to_string());
    let expected = [
        json!({ "lane": "account-1", "jobs": 2, "first": "sum:a" }),
        json!({ "lane": "account-2", "jobs": 1, "first": "sum:c" }),
    ];
    assert_eq!(lanes, expected);
    let one = run_in(&to, &["lane", "list", "--limit", "1"]).exits(0);
    assert_eq!(one.stdout.matches("account-").count(), 1, "{}", one.stdout);
    one.says("there are further lanes: --limit 10 shows more");
    run_in(&to, &["job", "cancel", "sum:c"]).exits(0);
    let left = run_in(&to, &["lane", "list"]).exits(0);
    assert!(!left.stdout.contains("account-2"), "{}", left.stdout);
}
