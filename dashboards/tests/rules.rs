//! Checks the rules, the test cases of the alerts and the query of the autoscaler with promtool. Requires Debian's `prometheus`.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::process::Command;

use serde_json::json;

/// The ScaledObject of KEDA.
const SCALED_OBJECT: &str = include_str!("../../packaging/kubernetes/components/keda/scaledobject.yaml");

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/prometheus");

#[track_caller]
fn promtool(arguments: &[&str]) {
    let output = Command::new("promtool").args(arguments).current_dir(DIRECTORY).output();
    let output = output.unwrap_or_else(|error| {
        panic!("promtool: {error}; `apt-get install prometheus`, as `cargo xtask test` does as root")
    });
    let output_text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "promtool {arguments:?}:\n{}", String::from_utf8_lossy(&output_text));
}

#[test]
fn the_rules_are_valid() {
    promtool(&["check", "rules", "--lint-fatal", "recording.yml", "alerts.yml"]);
}

#[test]
fn every_alert_passes_its_test_cases() {
    promtool(&["test", "rules", "alerts.test.yml"]);
}

#[test]
fn the_configuration_is_valid() {
    promtool(&["check", "config", "prometheus.yml"]);
}

/// The query of KEDA: the lines below `query: >-` that are indented further.
fn autoscaler_query() -> String {
    let lines = SCALED_OBJECT.lines().skip_while(|line| line.trim() != "query: >-").skip(1);
    let lines = lines.take_while(|line| line.starts_with("          ")).map(str::trim).collect::<Vec<_>>();
    assert!(!lines.is_empty(), "{SCALED_OBJECT}");
    lines.join(" ")
}

/// Asserts the value of the query for these series; `None`: no data.
#[track_caller]
fn wants_slots(series: &[(&str, u32)], slots: Option<u32>) {
    let series =
        series.iter().map(|(series, value)| json!({ "series": series, "values": value.to_string() }));
    let samples = slots.map(|value| json!({ "labels": "{}", "value": value }));
    let query = json!({
        "expr": autoscaler_query(),
        "eval_time": "0m",
        "exp_samples": samples.into_iter().collect::<Vec<_>>(),
    });
    let test =
        json!({ "interval": "1m", "input_series": series.collect::<Vec<_>>(), "promql_expr_test": [query] });
    // JSON is YAML.
    let file = tempfile::Builder::new().suffix(".yml").tempfile().unwrap();
    std::fs::write(file.path(), json!({ "tests": [test] }).to_string()).unwrap();
    promtool(&["test", "rules", file.path().to_str().unwrap()]);
}

#[test]
fn the_autoscaler_wants_slots_for_the_waiting_and_the_running_jobs_of_its_kind() {
    let waiting = [
        ("bellwether_queue_depth{instance=\"a:1\",kind=\"mail\"}", 20),
        ("bellwether_queue_depth{instance=\"b:1\",kind=\"mail\"}", 0),
        ("bellwether_queue_depth{instance=\"a:1\",kind=\"other\"}", 100),
    ];
    wants_slots(&waiting, Some(20));
    let running = [
        ("bellwether_job_attempts_running{pod=\"bellwether-worker-1-2\"}", 4),
        ("bellwether_job_attempts_running{pod=\"bellwether-worker-1-3\"}", 3),
        ("bellwether_job_attempts_running{pod=\"bellwether-node-1-2\"}", 9),
    ];
    wants_slots(&[&waiting[..], &running].concat(), Some(27));
}

#[test]
fn the_autoscaler_wants_no_slots_for_a_kind_without_jobs_and_knows_nothing_without_a_node() {
    let others = ("bellwether_queue_depth{instance=\"a:1\",kind=\"other\"}", 5);
    wants_slots(&[others], Some(0));
    let running = ("bellwether_job_attempts_running{pod=\"bellwether-worker-1-2\"}", 4);
    wants_slots(&[running], None);
}
