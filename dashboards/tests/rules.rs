//! What promtool says of the rules, and of each alert's cases. Needs Debian's `prometheus`.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::process::Command;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/prometheus");

#[track_caller]
fn promtool(arguments: &[&str]) {
    let output = Command::new("promtool").args(arguments).current_dir(DIRECTORY).output();
    let output = output.unwrap_or_else(|error| {
        panic!("promtool: {error}; `apt-get install prometheus`, as `cargo xtask test` does as root")
    });
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "promtool {arguments:?}:\n{}", String::from_utf8_lossy(&said));
}

#[test]
fn the_rules_are_rules() {
    promtool(&["check", "rules", "--lint-fatal", "recording.yml", "alerts.yml"]);
}

#[test]
fn every_alert_fires_and_is_quiet_when_it_should_be() {
    promtool(&["test", "rules", "alerts.test.yml"]);
}

#[test]
fn the_configuration_is_one() {
    promtool(&["check", "config", "prometheus.yml"]);
}
