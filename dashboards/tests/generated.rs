//! The generated files are up to date, and the description is complete.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeSet;
use std::path::Path;

use bellwether_core::metric;
use bellwether_dashboards::boards::{self, Line, Panel};
use bellwether_dashboards::rules::{ALERTS, RECORDED};
use bellwether_dashboards::{generated, promql};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn panels() -> Vec<Panel> {
    boards::all().into_iter().flat_map(|board| board.rows).flat_map(|row| row.panels).collect()
}

fn expressions() -> Vec<String> {
    let lines = panels().into_iter().flat_map(|panel| panel.lines).map(|Line { expr, .. }| expr);
    let rules = RECORDED.iter().map(|rule| rule.expr).chain(ALERTS.iter().map(|alert| alert.expr));
    lines.chain(rules.map(str::to_owned)).collect()
}

#[test]
fn the_generated_files_are_up_to_date() {
    for file in generated() {
        let stored = std::fs::read_to_string(Path::new(REPOSITORY).join(&file.path)).unwrap_or_default();
        let place = file.path.display();
        assert!(
            stored == file.text,
            "{place} is out of date: run `cargo xtask dashboards` and commit the result"
        );
    }
}

#[test]
fn there_is_no_file_of_a_removed_dashboard() {
    let described: BTreeSet<_> = generated().into_iter().map(|file| file.path).collect();
    for entry in std::fs::read_dir(Path::new(REPOSITORY).join("dashboards/grafana")).unwrap() {
        let path = Path::new("dashboards/grafana").join(entry.unwrap().file_name());
        assert!(described.contains(&path), "{} has no description: delete it", path.display());
    }
}

#[test]
fn every_expression_uses_known_metrics_and_rules() {
    for expr in expressions() {
        let names = promql::names(&expr);
        assert!(!names.is_empty(), "no metric in {expr}");
        for name in names {
            let recorded = RECORDED.iter().any(|rule| rule.name == name);
            assert!(
                recorded || name == "up" || promql::metric_of(name).is_some(),
                "unknown name {name} in {expr}"
            );
        }
    }
}

#[test]
fn every_metric_is_on_a_dashboard() {
    let exprs = panels().into_iter().flat_map(|panel| panel.lines).map(|line| line.expr);
    let mut shown = BTreeSet::new();
    for expr in exprs {
        for name in promql::names(&expr) {
            shown.insert(name.to_owned());
            let recorded = RECORDED.iter().filter(|rule| rule.name == name);
            shown.extend(recorded.flat_map(|rule| promql::names(rule.expr)).map(str::to_owned));
        }
    }
    for metric in metric::ALL {
        let found = shown.iter().any(|name| promql::metric_of(name).is_some_and(|m| m.name == metric.name));
        assert!(found, "no panel shows {}: give it a line in dashboards/src/boards", metric.name);
    }
}

#[test]
fn every_rule_is_named_after_its_labels() {
    for rule in RECORDED {
        let [labels, _, _] = rule.name.split(':').collect::<Vec<_>>().try_into().unwrap_or_else(|_| {
            panic!("{} is not of the form labels:metric:operation", rule.name);
        });
        assert!(labels.split('_').any(|label| label == "job"), "{}: the label job is missing", rule.name);
    }
}

#[test]
fn every_panel_has_a_question_and_a_description() {
    for board in boards::all() {
        let mut asked = BTreeSet::new();
        for panel in board.rows.iter().flat_map(|row| &row.panels) {
            assert!(panel.question.ends_with('?'), "{}", panel.question);
            assert!(
                panel.help.ends_with('.') || panel.help.ends_with('`'),
                "{}: {}",
                panel.question,
                panel.help
            );
            assert!(!panel.lines.is_empty(), "{}", panel.question);
            assert!(
                asked.insert(panel.question),
                "the question {} occurs twice in {}",
                panel.question,
                board.title
            );
        }
    }
}

#[test]
fn every_alert_has_a_firing_case_a_quiet_case_and_a_runbook() {
    let operations = std::fs::read_to_string(Path::new(REPOSITORY).join("docs/operations.md")).unwrap();
    for alert in ALERTS {
        let name = alert.name;
        assert!(!alert.fires.labels.is_empty(), "{name}");
        assert!(alert.quiet.labels.is_empty(), "{name}");
        let (_, runbook) = operations
            .split_once(&format!("\n### {name}\n"))
            .unwrap_or_else(|| panic!("no runbook: add a section {name} to docs/operations.md"));
        let runbook = runbook.split("\n#").next().unwrap_or_default().trim();
        assert!(runbook.len() > 80, "{name}: the runbook must describe the meaning and the actions");
    }
    let runbooks = operations.lines().filter_map(|line| line.strip_prefix("### Bellwether"));
    for name in runbooks {
        assert!(ALERTS.iter().any(|alert| alert.name.ends_with(name)), "a runbook without an alert: {name}");
    }
}
