//! Reports for people and for programs.

use comfy_table::{CellAlignment, Table};

/// One result: the median of both servers, for the ratio.
pub(crate) struct Line {
    pub(crate) what: String,
    pub(crate) unit: Unit,
    pub(crate) keeper: f64,
    pub(crate) zookeeper: f64,
}

/// The unit of a result, which determines whether higher is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    PerSecond,
    /// Microseconds of the server's processor time per operation.
    Processor,
    Megabytes,
    Milliseconds,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "per second",
            Self::Processor => "CPU µs each",
            Self::Megabytes => "MB",
            Self::Milliseconds => "ms",
        }
    }
}

impl Line {
    fn ratio(&self) -> f64 {
        match self.unit {
            Unit::PerSecond => self.keeper / self.zookeeper,
            Unit::Processor | Unit::Megabytes | Unit::Milliseconds => self.zookeeper / self.keeper,
        }
    }
}

pub(crate) fn table(lines: &[Line]) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::ASCII_MARKDOWN);
    table.set_header(["", "unit", "keeper", "ZooKeeper", "keeper is better by"]);
    for line in lines {
        table.add_row([
            line.what.clone(),
            line.unit.name().to_owned(),
            figure(line.keeper),
            figure(line.zookeeper),
            format!("{:.1} x", line.ratio()),
        ]);
    }
    for column in 2..5 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

fn figure(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

pub(crate) fn json(lines: &[Line]) -> serde_json::Value {
    let lines = lines.iter().map(|line| {
        serde_json::json!({
            "what": line.what,
            "unit": line.unit.name(),
            "keeper": line.keeper,
            "zookeeper": line.zookeeper,
            "ratio": line.ratio(),
        })
    });
    lines.collect()
}
