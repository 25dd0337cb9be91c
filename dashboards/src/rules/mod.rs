//! What Prometheus keeps and watches by itself.

mod alerts;
mod recorded;

pub use alerts::ALERTS;
pub use recorded::RECORDED;

/// An expression that is kept under a name: `{labels}:{metric}:{operation}`.
#[derive(Debug, Clone, Copy)]
pub struct Recorded {
    /// Its name.
    pub name: &'static str,
    /// What is kept.
    pub expr: &'static str,
}

/// When somebody is to look, and how that was tried.
#[derive(Debug, Clone, Copy)]
pub struct Alert {
    /// Its name, and the title of its runbook in `docs/operations.md`.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// How long it has to hold first.
    pub hold: &'static str,
    /// When.
    pub expr: &'static str,
    /// What is the matter, with the labels that the expression leaves.
    pub summary: &'static str,
    /// Series with which it fires.
    pub fires: Case,
    /// Series, near to those, with which it does not.
    pub quiet: Case,
}

/// How bad an alert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Jobs do not run: wake somebody.
    Critical,
    /// Look at it today.
    Warning,
}

impl Severity {
    /// As the alert's label says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}

/// Series over time, and what the alert makes of them.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Each with its values, a minute apart, in promtool's notation.
    pub series: &'static [(&'static str, &'static str)],
    /// When to look.
    pub at: &'static str,
    /// The labels of the alert that fires then, beside its name and severity; none when it is quiet.
    pub labels: &'static [(&'static str, &'static str)],
}
