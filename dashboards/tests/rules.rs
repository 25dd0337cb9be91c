//! Checks the rules and the test cases of the alerts with promtool. Requires Debian's `prometheus`.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::process::Command;

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
