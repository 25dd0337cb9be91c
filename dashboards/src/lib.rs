//! Generates the operator's tools from one description: Grafana dashboards, Prometheus rules, and the table of metrics.
//!
//! ```text
//! boards ──┬─▶ grafana ──────▶ dashboards/grafana/*.json
//! rules ───┼─▶ prometheus ───▶ dashboards/prometheus/{recording,alerts,alerts.test}.yml
//! metric::ALL ─▶ reference ──▶ docs/metrics.md
//! ```
//!
//! A panel is one line of [`boards`]. `cargo xtask dashboards` writes the files, which are committed. The tests report
//! an outdated file, a metric that no panel shows, an unknown metric name, and an alert without a runbook. They also
//! run every expression on a real Prometheus that scrapes real nodes under faults.
#![forbid(unsafe_code)]

pub mod boards;
pub mod grafana;
pub mod prometheus;
pub mod promql;
pub mod reference;
pub mod rules;

use std::path::{Path, PathBuf};

/// A generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// The path in the repository.
    pub path: PathBuf,
    /// The contents.
    pub text: String,
}

/// Generates all files.
#[must_use]
pub fn generated() -> Vec<Generated> {
    let rules = [
        ("recording.yml", prometheus::recording(rules::RECORDED)),
        ("alerts.yml", prometheus::alerts(rules::ALERTS)),
        ("alerts.test.yml", prometheus::tests(rules::ALERTS)),
    ];
    let boards = boards::all().into_iter().map(|board| {
        let path = Path::new("dashboards/grafana").join(format!("{}.json", board.slug));
        Generated { path, text: grafana::dashboard(&board) }
    });
    let rules = rules
        .into_iter()
        .map(|(name, text)| Generated { path: Path::new("dashboards/prometheus").join(name), text });
    let reference = Generated { path: "docs/metrics.md".into(), text: reference::page() };
    boards.chain(rules).chain([reference]).collect()
}
