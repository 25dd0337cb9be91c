//! A table whose columns are as wide as their widest cell.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Space between two columns.
const GAP: &str = "  ";

pub(crate) struct Table {
    /// The rows' name, for the line that counts hidden rows.
    what: &'static str,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

#[derive(Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    side: Side,
}

#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

pub(crate) fn left(name: &'static str) -> Column {
    Column { name, side: Side::Left }
}

/// A column of numbers.
pub(crate) fn right(name: &'static str) -> Column {
    Column { name, side: Side::Right }
}

pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn plain(text: String) -> Self {
        Self { text, style: Style::new() }
    }

    pub(crate) fn styled(text: String, style: Style) -> Self {
        Self { text, style }
    }
}

impl Table {
    pub(crate) fn new(what: &'static str, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Self {
        Self { what, columns, rows }
    }

    /// Returns a header and at most `room` lines below it, starting at the row `first`. The last line counts the hidden
    /// rows.
    pub(crate) fn lines(&self, first: usize, room: usize, head: Style) -> Vec<Line<'static>> {
        let widths = self.widths();
        let header =
            self.columns.iter().map(|column| Cell::plain(column.name.to_owned())).collect::<Vec<_>>();
        let mut lines = vec![self.line(&header, &widths).style(head)];
        let first = first.min(self.rows.len().saturating_sub(room));
        let all = first == 0 && self.rows.len() <= room;
        let shown = if all { self.rows.len() } else { room.saturating_sub(1) };
        lines.extend(self.rows.iter().skip(first).take(shown).map(|row| self.line(row, &widths)));
        if !all && room > 0 {
            let (from, to) = (first + usize::from(shown > 0), first + shown);
            lines.push(Line::from(format!("… {from} to {to} of {} {}", self.rows.len(), self.what)));
        }
        lines
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |(n, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(n)).map(|cell| width(&cell.text));
            cells.max().unwrap_or_default().max(width(column.name))
        };
        self.columns.iter().enumerate().map(widest).collect()
    }

    fn line(&self, cells: &[Cell], widths: &[usize]) -> Line<'static> {
        let mut spans = Vec::with_capacity(2 * cells.len());
        for ((cell, column), widest) in cells.iter().zip(&self.columns).zip(widths) {
            let space = " ".repeat(widest.saturating_sub(width(&cell.text)));
            let text = match column.side {
                Side::Left => format!("{}{space}{GAP}", cell.text),
                Side::Right => format!("{space}{}{GAP}", cell.text),
            };
            spans.push(Span::styled(text, cell.style));
        }
        Line::from(spans)
    }
}

fn width(text: &str) -> usize {
    Span::raw(text).width()
}
