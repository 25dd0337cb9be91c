//! The dashboards, a line for each panel: they are tables, which rustfmt would take apart.
//!
//! A panel asks a question and says in a line how to read the answer. Its expressions name metrics without the labels
//! of the scrape: those of the board's [`Scope`] are put in when it is written.

mod gateway;
mod jobs;
mod leadership;
mod overview;
mod session;
mod worker;

/// One dashboard.
#[derive(Debug, Clone)]
pub struct Board {
    /// Its file, and its address in Grafana.
    pub slug: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// What a reader chooses.
    pub scope: Scope,
    /// Its panels, below titles.
    pub rows: Vec<Row>,
}

/// What a reader chooses at the top of a dashboard; a namespace is a job of Prometheus's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A namespace.
    Namespace,
    /// A namespace, and some of its kinds.
    Kinds,
    /// A namespace, and some of its nodes.
    Nodes,
}

/// Panels below a title.
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
    /// How the answer is drawn.
    pub shape: Shape,
    /// What it answers.
    pub question: &'static str,
    /// How to read it.
    pub help: &'static str,
    /// Of what.
    pub unit: Unit,
    /// From where on it is not good any more.
    pub limits: Limits,
    /// What is drawn.
    pub lines: Vec<Line>,
}

/// An expression and what it is called.
#[derive(Debug, Clone)]
pub struct Line {
    /// With Grafana's `{{label}}`.
    pub legend: &'static str,
    /// In Prometheus's language, without the labels of the scope.
    pub expr: String,
}

/// How an answer is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One number.
    Stat,
    /// Lines over time.
    Lines,
    /// States over time, by these names from 0 on.
    States(&'static [&'static str]),
    /// A histogram over time.
    Heatmap,
}

/// Of what a panel shows numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Things per second.
    PerSecond,
    /// Time.
    Seconds,
    /// A part of one.
    Ratio,
}

/// From where on a number is not good any more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limits {
    /// Every number is fine by itself.
    Any,
    /// Worth a look from the first on, bad from the second on.
    Above(f64, f64),
    /// Worth a look below the first, bad below the second.
    Below(f64, f64),
    /// Bad unless it is this.
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

/// A counter's growth per second, summed up by these labels.
fn rate(counter: &str, by: &str) -> String {
    format!("sum{} (rate({counter}[$__rate_interval]))", grouped(by))
}

/// A counter's growth in each step of the picture.
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
