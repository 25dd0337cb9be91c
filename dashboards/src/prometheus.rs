//! Rules, and the cases of the alerts, as files for Prometheus and promtool.

use crate::rules::{Alert, Case, Recorded};

/// On top of each file.
const WRITTEN: &str = "# Written by `cargo xtask dashboards` from dashboards/src/rules. Change it there.\n";

/// Where an operator reads on.
const RUNBOOKS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/operations.md");

/// The file of the recording rules.
#[must_use]
pub fn recording(rules: &[Recorded]) -> String {
    let mut file = format!("{WRITTEN}groups:\n  - name: bellwether-recording\n    rules:\n");
    for Recorded { name, expr } in rules {
        let (name, expr) = (quoted(name), quoted(expr));
        file += &format!("      - record: {name}\n        expr: {expr}\n");
    }
    file
}

/// The file of the alerts.
#[must_use]
pub fn alerts(alerts: &[Alert]) -> String {
    let mut file = format!("{WRITTEN}groups:\n  - name: bellwether-alerts\n    rules:\n");
    for alert in alerts {
        let (hold, severity) = (alert.hold, alert.severity.name());
        file += &format!("      - alert: {}\n        expr: {}\n", alert.name, quoted(alert.expr));
        file += &format!("        for: {hold}\n        labels:\n          severity: {severity}\n");
        file += "        annotations:\n";
        for (name, text) in annotations(alert) {
            file += &format!("          {name}: {}\n", quoted(&text));
        }
    }
    file
}

/// The file of their cases.
#[must_use]
pub fn tests(alerts: &[Alert]) -> String {
    let mut file = format!("{WRITTEN}rule_files:\n  - alerts.yml\nevaluation_interval: 1m\ntests:\n");
    for alert in alerts {
        file += &case(alert, "fires", &alert.fires);
        file += &case(alert, "is quiet", &alert.quiet);
    }
    file
}

fn annotations(alert: &Alert) -> [(&'static str, String); 2] {
    let runbook = format!("{RUNBOOKS}#{}", alert.name.to_lowercase());
    [("summary", alert.summary.to_owned()), ("runbook_url", runbook)]
}

fn case(alert: &Alert, what: &str, case: &Case) -> String {
    let mut text = format!("  # {} {what}\n  - interval: 1m\n    input_series:\n", alert.name);
    for (series, values) in case.series {
        text += &format!("      - series: {}\n        values: {}\n", quoted(series), quoted(values));
    }
    let (at, name) = (case.at, alert.name);
    text += &format!("    alert_rule_test:\n      - eval_time: {at}\n        alertname: {name}\n");
    if case.labels.is_empty() {
        return text + "        exp_alerts: []\n";
    }
    text += "        exp_alerts:\n          - exp_labels:\n";
    text += &format!("              severity: {}\n", alert.severity.name());
    for (label, value) in case.labels {
        text += &format!("              {label}: {}\n", quoted(value));
    }
    text += "            exp_annotations:\n";
    for (annotation, template) in annotations(alert) {
        let rendered = case.labels.iter().fold(template, |text, (label, value)| {
            text.replace(&format!("{{{{ $labels.{label} }}}}"), value)
        });
        text += &format!("              {annotation}: {}\n", quoted(&rendered));
    }
    text
}

/// What JSON calls a string is one for YAML, too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
