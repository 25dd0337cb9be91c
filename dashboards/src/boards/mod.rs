//! The dashboards, with one line per panel. The tables are excluded from rustfmt, which would split the lines.
//!
//! The title of a panel is a question, and its description explains the answer. Its expressions name metrics without
//! the labels of the scrape. The generator adds the labels of the board's [`Scope`].

mod gateway;
mod jobs;
mod leadership;
mod overview;
mod session;
mod worker;

/// One dashboard.
#[derive(Debug, Clone)]
pub struct Board {
    /// The name of its file, and its uid in Grafana.
    pub slug: &'static str,
    /// The title.
    pub title: &'static str,
    /// The purpose.
    pub about: &'static str,
    /// The variables that the user can select.
    pub scope: Scope,
    /// The panels, grouped in titled rows.
    pub rows: Vec<Row>,
}

/// The variables that the user can select at the top of a dashboard. A namespace is a scrape job in Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A namespace.
    Namespace,
    /// A namespace, and some of its kinds.
    Kinds,
    /// A namespace, and some of its nodes.
    Nodes,
}

/// A row of panels with a title.
#[derive(Debug, Clone)]
pub struct Row {
    /// The title.
    pub title: &'static str,
    /// The panels.
    pub panels: Vec<Panel>,
}

/// One panel.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The visualization.
    pub shape: Shape,
    /// The question that the panel answers; its title.
    pub question: &'static str,
    /// The explanation of the answer; its description.
    pub help: &'static str,
    /// The unit of the values.
    pub unit: Unit,
    /// The thresholds.
    pub limits: Limits,
    /// The expressions.
    pub lines: Vec<Line>,
}

/// An expression with its legend.
#[derive(Debug, Clone)]
pub struct Line {
    /// The legend, with Grafana's `{{label}}`.
    pub legend: &'static str,
    /// The PromQL expression, without the labels of the scope.
    pub expr: String,
}

/// The visualization of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One number.
    Stat,
    /// Lines over time.
    Lines,
    /// States over time, with these names for the values from 0.
    States(&'static [&'static str]),
    /// A histogram over time.
    Heatmap,
}

/// The unit of a panel's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Things per second.
    PerSecond,
    /// Time.
    Seconds,
    /// A ratio from 0 to 1.
    Ratio,
}

/// The thresholds of a panel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limits {
    /// No thresholds.
    Any,
    /// Warning from the first value, critical from the second.
    Above(f64, f64),
    /// Warning below the first value, critical below the second.
    Below(f64, f64),
    /// Critical unless the value is this.
    Is(f64),
}

/// All dashboards.
#[must_use]
pub fn all() -> Vec<Board> {
    vec![
        overview::board(),
        leadership::board(),
        jobs::board(),
        worker::board(),
        session::board(),
        gateway::board(),
    ]
}

fn row(title: &'static str, panels: Vec<Panel>) -> Row {
    Row { title, panels }
}

fn line(legend: &'static str, expr: impl Into<String>) -> Line {
    Line { legend, expr: expr.into() }
}

fn stat(
    question: &'static str,
    unit: Unit,
    limits: Limits,
    help: &'static str,
    expr: impl Into<String>,
) -> Panel {
    Panel { shape: Shape::Stat, question, help, unit, limits, lines: vec![line("", expr)] }
}

fn lines(
    question: &'static str,
    unit: Unit,
    limits: Limits,
    help: &'static str,
    lines: impl Into<Vec<Line>>,
) -> Panel {
    Panel { shape: Shape::Lines, question, help, unit, limits, lines: lines.into() }
}

fn states(
    question: &'static str,
    names: &'static [&'static str],
    limits: Limits,
    help: &'static str,
    expr: &'static str,
) -> Panel {
    let lines = vec![line("{{instance}}", expr)];
    Panel { shape: Shape::States(names), question, help, unit: Unit::Count, limits, lines }
}

fn heatmap(question: &'static str, help: &'static str, histogram: &str) -> Panel {
    let expr = format!("sum by (le) (increase({histogram}_bucket[$__rate_interval]))");
    let (unit, limits) = (Unit::Seconds, Limits::Any);
    Panel { shape: Shape::Heatmap, question, help, unit, limits, lines: vec![line("{{le}}", expr)] }
}

/// The rate of a counter per second, summed by these labels.
fn rate(counter: &str, by: &str) -> String {
    format!("sum{} (rate({counter}[$__rate_interval]))", grouped(by))
}

/// The jobs that wait for a worker. Only the leader knows a number above zero.
const WAITING: &str = "max(sum by (instance) (bellwether_queue_depth))";

/// The counter of the attempts that ended with one of these outcomes, separated by `|`.
fn attempts(outcomes: &str) -> String {
    let is = if outcomes.contains('|') { "=~" } else { "=" };
    format!("bellwether_job_attempts_total{{outcome{is}\"{outcomes}\"}}")
}

/// The increase of a counter in each step of the graph.
fn growth(counter: &str, by: &str) -> String {
    format!("sum{} (increase({counter}[$__rate_interval]))", grouped(by))
}

/// A quantile of a histogram, by these labels.
fn quantile(q: f64, histogram: &str, by: &str) -> String {
    let by = if by.is_empty() { "le".to_owned() } else { format!("{by}, le") };
    format!("histogram_quantile({q}, sum by ({by}) (rate({histogram}_bucket[$__rate_interval])))")
}

fn grouped(by: &str) -> String {
    if by.is_empty() { String::new() } else { format!(" by ({by})") }
}
