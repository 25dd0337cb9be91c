//! The recording rules and alerts of Prometheus.

mod alerts;
mod recorded;

pub use alerts::ALERTS;
pub use recorded::RECORDED;

/// A recording rule, named `{labels}:{metric}:{operation}`.
#[derive(Debug, Clone, Copy)]
pub struct Recorded {
    /// The name of the recorded series.
    pub name: &'static str,
    /// The recorded expression.
    pub expr: &'static str,
}

/// An alert with its test cases.
#[derive(Debug, Clone, Copy)]
pub struct Alert {
    /// The name of the alert, and the title of its runbook in `docs/operations.md`.
    pub name: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The time for which the condition must hold before the alert fires.
    pub hold: &'static str,
    /// The condition.
    pub expr: &'static str,
    /// The problem in one sentence. It can use the labels of the expression.
    pub summary: &'static str,
    /// A case in which the alert fires.
    pub fires: Case,
    /// A similar case in which the alert does not fire.
    pub quiet: Case,
}

/// The severity of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Jobs do not run: page the engineer on call.
    Critical,
    /// Look at it during working hours.
    Warning,
}

impl Severity {
    /// The value of the alert's label `severity`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}

/// A test case of an alert.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The series with their values, one minute apart, in promtool's notation.
    pub series: &'static [(&'static str, &'static str)],
    /// The time at which the alert is evaluated.
    pub at: &'static str,
    /// The labels of the firing alert, without its name and severity; empty if it does not fire.
    pub labels: &'static [(&'static str, &'static str)],
}
