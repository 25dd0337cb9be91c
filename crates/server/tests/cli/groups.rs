//! Groups on the command line.

use bellwether_testkit::namespace;
use serde_json::json;

use crate::run::run_in;

#[test]
fn members_are_submitted_by_number_and_the_group_shows_why_it_waits() {
    let to = namespace("cli-groups");
    let member = ["job", "submit", "sum", "[1]", "--group", "batch", "--number", "0", "--total", "3"];
    let id = run_in(&to, &member).exits(0).stdout;
    assert_eq!(id.trim(), "sum:batch:0");
    run_in(&to, &member).exits(0);
    run_in(&to, &["job", "submit", "sum", "[1]", "--group", "batch", "--number", "1", "--count", "1"])
        .exits(0);
    let group = run_in(&to, &["group", "show", "batch", "--output", "json"]).exits(0).json();
    let fields = ["stage", "total", "open", "missing", "join"].map(|field| group[field].clone());
    assert_eq!(json!(fields), json!(["open", 3, 2, 1, null]), "{group}");
    assert_eq!(group["status"], json!("open: 1 of 3 members were not submitted, 2 are open"));
    let table = run_in(&to, &["group", "show", "batch"]).exits(0).stdout;
    assert!(table.contains("1 of 3 members were not submitted"), "{table}");
    run_in(&to, &["group", "wait", "batch", "--deadline", "3s"])
        .exits(5)
        .says("group batch is not done after");
    run_in(&to, &["group", "show", "none"]).exits(4).says("there is no group none");
}

#[test]
fn a_group_with_other_properties_is_created_and_gets_members() {
    let to = namespace("cli-groups-created");
    let create = ["group", "create", "sum", "strict", "--fail-fast", "--join=false", "--output", "json"];
    for _again in 0..2 {
        let group = run_in(&to, &create).exits(0).json();
        assert_eq!(
            (&group["fail_fast"], &group["total"], &group["join"]),
            (&json!(true), &json!(null), &json!(null))
        );
    }
    let member = ["job", "submit", "sum", "[1]", "--group", "strict", "--number", "0", "--total", "2"];
    assert_eq!(run_in(&to, &member).exits(0).stdout.trim(), "sum:strict:0");
    let group = run_in(&to, &["group", "show", "strict", "--output", "json"]).exits(0).json();
    assert_eq!((&group["fail_fast"], &group["total"], &group["open"]), (&json!(true), &json!(2), &json!(1)));
    let other = ["job", "submit", "echo", "1", "--group", "strict", "--number", "1", "--total", "9"];
    run_in(&to, &other).exits(1).says("members of kind sum, not echo");
    run_in(&to, &["group", "create", "sum", "strict"]).exits(1).says("group strict");
    run_in(&to, &["group", "create", "sum", "a:b"]).exits(2).says("group has ':'");
    let open = ["group", "create", "sum", "open"];
    run_in(&to, &open).exits(0);
    let other = ["job", "submit", "echo", "1", "--group", "open", "--number", "0", "--total", "5"];
    run_in(&to, &other).exits(1).says("members of kind sum, not echo");
    let group = run_in(&to, &["group", "show", "open", "--output", "json"]).exits(0).json();
    assert_eq!(group["total"], json!(null), "a refused member does not set the total");
    let huge = ["job", "submit", "sum", "1", "--group", "huge", "--number", "0", "--total", "2000000"];
    assert_ne!(run_in(&to, &huge).code, 0);
    run_in(&to, &["group", "show", "huge"]).exits(4);
}

#[test]
fn a_rejected_group_member_is_a_usage_error_or_a_failure() {
    let to = namespace("cli-groups-refused");
    let submit = |number: &str, more: &[&str]| {
        let member = ["job", "submit", "sum", "1", "--group", "g", "--number", number];
        run_in(&to, &[&member, more].concat())
    };
    submit("0", &["--total", "1"]).exits(0);
    submit("1", &[]).exits(2).says("member 1 of group g is not below its total of 1");
    submit("0", &["--total", "2"]).exits(1).says("group g was sealed with a total of 1, not 2");
    run_in(&to, &["job", "submit", "sum", "1", "--group", "g"]).exits(2).says("--number");
    run_in(&to, &["job", "submit", "sum", "1", "--group", "a:b", "--number", "0"])
        .exits(2)
        .says("group has ':'");
    run_in(&to, &["job", "submit", "echo", "1", "--group", "g", "--number", "0"])
        .exits(1)
        .says("members of kind sum, not echo");
}

#[test]
fn members_are_listed_by_number_from_any_number_on() {
    let to = namespace("cli-members");
    for number in ["0", "1", "3"] {
        let member = ["job", "submit", "sum", "[1]", "--group", "batch", "--number", number];
        run_in(&to, &member).exits(0);
    }
    run_in(&to, &["job", "cancel", "sum:batch:1"]).exits(0);
    let members = run_in(&to, &["group", "members", "batch", "--output", "json"]).exits(0).json();
    let seen =
        members.as_array().unwrap().iter().map(|member| json!([member["number"], member["job"]["state"]]));
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [json!([0, "queued"]), json!([1, "cancelled"]), json!([3, "queued"])]
    );
    let page = run_in(&to, &["group", "members", "batch", "--first", "1", "--limit", "1"]).exits(0);
    assert!(page.stdout.contains("sum:batch:1") && !page.stdout.contains("sum:batch:0"), "{}", page.stdout);
    page.says("there are further members: --first 3 shows them");
    run_in(&to, &["group", "members", "none"]).exits(4).says("there is no group none");
}

#[test]
fn groups_are_listed_by_stage_and_up_to_a_limit() {
    let to = namespace("cli-group-list");
    for group in ["a", "b", "c"] {
        let member = ["job", "submit", "sum", "[1]", "--group", group, "--number", "0", "--total", "2"];
        run_in(&to, &member).exits(0);
    }
    run_in(&to, &["group", "abandon", "c"]).exits(0);
    run_in(&to, &["job", "cancel", "sum:c:0"]).exits(0);
    let listed = |stage: &str| {
        let words = ["group", "list", "--stage", stage, "--output", "json"];
        let mut groups = run_in(&to, &words).exits(0).json().as_array().unwrap().clone();
        groups.sort_by_key(|group| group["id"].to_string());
        groups
    };
    let open = listed("open");
    let fields = ["id", "kind", "stage", "total", "parent", "done_at"].map(|field| open[0][field].clone());
    assert_eq!(json!(fields), json!(["a", "sum", "open", 2, null, null]), "{open:?}");
    let ids = open.iter().map(|group| group["id"].clone()).collect::<Vec<_>>();
    assert_eq!(json!(ids), json!(["a", "b", "c"]), "a leader ends a group, and none runs");
    assert!(listed("done").is_empty());
    let two = run_in(&to, &["group", "list", "--limit", "2"]).exits(0);
    assert_eq!(two.stdout.lines().count(), 3, "{}", two.stdout);
    two.says("there are further groups: --limit 20 shows more");
    let all = run_in(&to, &["group", "list", "--limit", "3"]).exits(0);
    assert!(!all.stderr.contains("further"), "{}", all.stderr);
    run_in(&to, &["group", "list", "--stage", "ended"])
        .exits(2)
        .says("possible values: open, joining, finishing, done");
}
