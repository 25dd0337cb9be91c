//! Retention of records, and `job purge`.

use std::time::Duration;

use bellwether::client::Purge;
use bellwether::{Client, JobId};
use bellwether_testkit::{eventually, namespace};
use serde_json::json;

use crate::run::run_in;

#[test]
fn retention_is_shown_and_set_within_its_bounds() {
    let to = namespace("cli-retention");
    run_in(&to, &["retention", "show"]).exits(3).says("there is no namespace");
    run_in(&to, &["job", "submit", "sum", "--id", "a"]).exits(0);
    let table = run_in(&to, &["retention", "show"]).exits(0).stdout;
    for row in ["succeeded     1d", "cancelled     7d", "dead          30d", "640000 records"] {
        assert!(table.contains(row), "{table}");
    }
    let set = ["retention", "set", "--dead", "90d", "--records", "1000", "--output", "json"];
    let wanted = run_in(&to, &set).exits(0).json();
    let changed = wanted["changed"].clone();
    assert_eq!(changed["what"], "set");
    assert_eq!(
        wanted,
        json!({ "succeeded": "1d", "cancelled": "7d", "dead": "90d", "records": 1000, "changed": changed })
    );
    let by = format!("set by {} at", changed["by"].as_str().unwrap());
    let table = run_in(&to, &["retention", "show"]).exits(0).stdout;
    assert!(table.contains(&by), "{table}");
    assert_eq!(run_in(&to, &["retention", "show", "--output", "json"]).exits(0).json(), wanted);

    run_in(&to, &["retention", "set", "--succeeded", "59s"])
        .exits(2)
        .says("retention of succeeded jobs must be 1m to 3650d, not 59s");
    run_in(&to, &["retention", "set", "--records", "20480001"])
        .exits(2)
        .says("retention must keep 0 to 20480000 records");
    run_in(&to, &["retention", "set"]).exits(2);
    assert_eq!(run_in(&to, &["retention", "show", "--output", "json"]).json(), wanted, "nothing was set");
}

#[tokio::test]
async fn a_purge_counts_records_and_removes_them_only_with_remove() {
    let to = namespace("cli-purge");
    for id in ["a", "b"] {
        run_in(&to, &["job", "submit", "sum", "--id", id]).exits(0);
    }
    run_in(&to, &["job", "cancel", "a"]).exits(0);
    let purge = |more: &[&str]| {
        let arguments = [&["job", "purge", "--state", "cancelled", "--output", "json"], more].concat();
        run_in(&to, &arguments).exits(0)
    };
    let (client, cancelled) = (Client::connect(&to).await.unwrap(), [JobId::new("a").unwrap()]);
    eventually("the record is old enough", Duration::from_secs(90), async || {
        client.purge(&Purge::jobs(cancelled.clone()), |_| {}).await.unwrap().matched == 1
    })
    .await;
    let counted = purge(&[]).says("nothing was removed: use --remove to remove 1 records");
    assert_eq!(counted.json(), json!({ "matched": 1, "removed": 0, "too_recent": 0, "complete": true }));
    assert_eq!(purge(&["--older-than", "1h"]).json()["matched"], 0);
    assert_eq!(purge(&["--kind", "product", "--remove"]).json()["removed"], 0);
    let ended = ["job", "list", "--output", "json", "--finished-after", "2020-01-01T00:00:00Z"];
    assert_eq!(run_in(&to, &ended).exits(0).json().as_array().unwrap().len(), 1);
    assert_eq!(
        purge(&["--remove"]).json(),
        json!({ "matched": 1, "removed": 1, "too_recent": 0, "complete": true })
    );
    run_in(&to, &["job", "show", "a"]).exits(4).says("or its record was removed");
    run_in(&to, &["job", "show", "b"]).exits(0);
    let given = run_in(&to, &["job", "purge", "a", "b", "--remove", "--output", "json"]).exits(0).json();
    assert_eq!(given, json!({ "matched": 0, "removed": 0, "too_recent": 0, "complete": true }));
    run_in(&to, &["job", "purge", "a", "--kind", "sum"]).exits(2).says("cannot be used with");
    assert_eq!(run_in(&to, &ended).exits(0).json(), json!([]));
    run_in(&to, &["job", "purge", "--state", "queued"]).exits(2).says("possible values: succeeded");
}
