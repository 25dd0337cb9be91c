//! Results on stdout, as a table or as one JSON document.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use bellwether::client::rfc3339;
use bellwether::{DurationText, JobView};
use clap::ValueEnum;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;

use super::exit::{self, Failure};
use bellwether_documents::sentence;

/// The narrowest width of a table in columns. A narrower terminal breaks the lines itself.
const NARROWEST: u16 = 100;

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    #[default]
    Table,
    /// One JSON document: an object for one job, an array for several.
    Json,
}

/// Prints results to stdout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) format: Format,
}

/// Removes payload and result, which are left out of lists.
pub(super) fn without_payloads(view: &mut JobView) {
    (view.payload, view.result) = (None, None);
}

impl Output {
    pub(crate) fn new(format: Format) -> Self {
        Self { format }
    }

    /// Prints one or more lines.
    pub(crate) fn text(self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(|error| exit::stdout(&error))
    }

    pub(crate) fn json<T: Serialize + ?Sized>(self, document: &T) -> Result<(), Failure> {
        self.document(serde_json::to_string_pretty(document))
    }

    /// Prints one document of a stream, on one line.
    pub(crate) fn json_line<T: Serialize + ?Sized>(self, document: &T) -> Result<(), Failure> {
        self.document(serde_json::to_string(document))
    }

    fn document(self, text: serde_json::Result<String>) -> Result<(), Failure> {
        let text = text.map_err(|error| Failure::failed(format!("cannot serialize the output: {error}")))?;
        self.text(&printable_json(&text))
    }

    /// Prints rows below a header. The first column is never wrapped, because users copy it, and neither is a column of times or
    /// numbers.
    pub(crate) fn rows<const N: usize>(
        self,
        header: [&str; N],
        rows: Vec<[String; N]>,
    ) -> Result<(), Failure> {
        let mut table = table();
        table.set_header(header);
        let whole =
            (0..N).filter(|at| rows.iter().all(|row| is_time_or_number(&row[*at]))).collect::<Vec<_>>();
        table.add_rows(rows.into_iter().map(|row| row.map(|cell| printable(&cell))));
        keep_whole(&mut table, 0);
        for at in whole {
            keep_whole(&mut table, at);
        }
        self.text(&table.trim_fmt())
    }

    /// Prints the fields of a job, one per line.
    pub(crate) fn job(self, view: &JobView) -> Result<(), Failure> {
        let optional =
            |name: &'static str, value: Option<String>| value.map(|value| [name.to_owned(), value]);
        let payload = |payload: &bellwether::Payload| String::from_utf8_lossy(payload.bytes()).into_owned();
        let groups = view.sub_jobs.iter().map(ToString::to_string).collect::<Vec<_>>();
        let fields = [
            optional("id", Some(view.id.to_string())),
            optional("kind", view.kind.as_ref().map(ToString::to_string)),
            optional("state", Some(view.state.to_string())),
            optional("waiting", view.waiting_for()),
            optional("group", view.group.as_ref().map(ToString::to_string)),
            optional("sub-jobs", (!view.sub_jobs.is_empty()).then(|| groups.join(", "))),
            optional("lane", view.lane.as_ref().map(ToString::to_string)),
            optional("cancel", view.cancel_requested.then(|| "requested".to_owned())),
            optional("attempt", Some(view.attempt.to_string())),
            optional("progress", view.progress_text()),
            optional("lease", view.lease.map(|lease| DurationText(lease).to_string())),
            optional("failures", Some(view.failures.to_string())),
            optional("losses", Some(view.losses.to_string())),
            optional("generation", Some(view.generation.to_string())),
            optional("worker", view.worker.map(|worker| worker.to_string())),
            optional("node", view.node.as_ref().map(ToString::to_string)),
            optional(
                "priority",
                view.options
                    .as_ref()
                    .and_then(|options| options.priority)
                    .map(|priority| priority.to_string()),
            ),
            optional("trace", view.traceparent.map(|trace| trace.trace_id())),
            optional("submitted", view.submitted_at.map(rfc3339)),
            optional("not before", view.not_before.map(rfc3339)),
            optional("expires", view.expires_at.map(rfc3339)),
            optional("finished", view.finished_at.map(rfc3339)),
            optional("changed", view.changed.as_ref().map(sentence)),
            optional("payload", view.payload.as_ref().map(payload)),
            optional("result", view.result.as_ref().map(payload)),
            optional("error", view.error.clone()),
        ];
        self.fields(fields.into_iter().flatten())
    }

    /// Prints names and values, one pair per line.
    pub(crate) fn fields<N: Into<String>>(
        self,
        fields: impl IntoIterator<Item = [N; 2]>,
    ) -> Result<(), Failure> {
        let mut table = table();
        table.add_rows(fields.into_iter().map(|[name, value]| [name.into(), printable(&value.into())]));
        keep_whole(&mut table, 0);
        self.text(&table.trim_fmt())
    }
}

/// Formats a duration for people, in its two largest units. It is rounded down, and shows tenths below ten seconds.
pub(crate) fn rough(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, 0) if time.as_millis() > 0 => format!("{}ms", time.as_millis()),
        (0, 0, 0, s) if s < 10 && time.subsec_millis() >= 100 => {
            format!("{s}.{}s", time.subsec_millis() / 100)
        }
        (0, 0, 0, s) => format!("{s}s"),
        (0, 0, m, s) => format!("{m}m{s:02}s"),
        (0, h, m, _) => format!("{h}h{m:02}m"),
        (d, h, _, _) => format!("{d}d{h:02}h"),
    }
}

/// A table that fits the terminal. In a pipe or a file each row is one line, so that line-oriented programs can read it.
fn table() -> Table {
    let size = io::stdout().is_terminal().then(crossterm::terminal::size);
    table_of(size.and_then(Result::ok).map(|(columns, _)| columns.max(NARROWEST)))
}

fn table_of(width: Option<u16>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = width {
        table.set_width(width);
    }
    table
}

fn keep_whole(table: &mut Table, at: usize) {
    if let Some(column) = table.column_mut(at) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
}

/// Whether a cell is empty, or begins with a digit and is at most as long as a time.
fn is_time_or_number(cell: &str) -> bool {
    const LONGEST: usize = "2026-11-26T10:42:35.433Z".len();
    cell.len() <= LONGEST && cell.bytes().next().is_none_or(|first| first.is_ascii_digit())
}

/// Makes text from jobs and other users safe for a terminal: it must not move the cursor, clear the screen or set a
/// title. Line breaks are kept.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push('\n'),
            '\t' => shown.push(' '),
            c if c.is_control() || turns_text(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// Makes a JSON document safe for a terminal. The document stays the same: characters that a terminal could obey are only in
/// texts, where they have an escape, or a carriage return is white space between values.
pub(crate) fn printable_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            '\r' => shown.push(' '),
            // All of these characters have 16 bits.
            c if c.is_control() || turns_text(c) => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
}

/// Invisible characters that change the direction of the text after them, even in the next column.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Shortens a text to fit one cell of a table.
pub(crate) fn short(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= most && line.len() == text.len() {
        return line.to_owned();
    }
    line.chars().take(most).chain(['…']).collect()
}

/// Returns the name of an outcome for a table: `already cancelled`.
pub(crate) fn spaced(outcome: impl std::fmt::Display) -> String {
    outcome.to_string().replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_cannot_control_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\u{9b}2J\r\tc\nd"), "a\\u{1b}[2Jb\\u{9b}2J\\r c\nd");
        assert_eq!(printable("\u{202e}daed"), "\\u{202e}daed");
    }

    #[test]
    fn times_and_numbers_are_not_wrapped() {
        for cell in ["2026-11-26T10:42:35.433Z", "3", "4ms", ""] {
            assert!(is_time_or_number(cell), "{cell}");
        }
        for cell in ["01a21773-2598-7ecb-b45b-8b0039a548fc", "the workers that could run it"] {
            assert!(!is_time_or_number(cell), "{cell}");
        }
    }

    #[test]
    fn a_row_is_wrapped_only_for_a_terminal() {
        let long = "the workers that could run it have no free slot ".repeat(4);
        let lines = |width| table_of(width).add_row([long.as_str()]).trim_fmt().lines().count();
        assert_eq!(lines(None), 1);
        assert_eq!(lines(Some(NARROWEST)), 2);
    }

    #[test]
    fn a_duration_for_people_has_two_units_at_most() {
        let cases = [
            (0, "0s"),
            (541, "541ms"),
            (3_599, "3.5s"),
            (9_050, "9s"),
            (30_541, "30s"),
            (299_506, "4m59s"),
            (3_725_000, "1h02m"),
            (90_000_000, "1d01h"),
        ];
        for (millis, text) in cases {
            assert_eq!(rough(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn a_json_document_cannot_control_the_terminal_and_keeps_its_value() {
        let document =
            serde_json::json!({ "error": "a\u{1b}[2Jb\u{9b}2J\u{7f}\u{85}\u{202e}daed\u{2066}\n\tü" });
        let raw = serde_json::to_string_pretty(&document).unwrap().replace("{\n", "{\r\n");
        let shown = printable_json(&raw);
        assert!(shown.chars().all(|c| c == '\n' || !(c.is_control() || turns_text(c))), "{shown:?}");
        assert!(shown.contains("\\u009b2J\\u007f\\u0085\\u202edaed\\u2066"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), document);
    }
}
