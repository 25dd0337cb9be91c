//! Draws a page as lines of a terminal.
//!
//! Text of other users never reaches the terminal unescaped: see [`cell`].

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::table::{Cell, Table, left, right};
use super::view::{Count, Jobs, Kind, PerSecond, Sort, State, View, Worker};
use crate::cli::output::{printable, rough, short};
use bellwether_gateway::rates::Rates;

/// Limit of a cell's text in characters; longer texts are cut. A name may have 128 characters.
const WIDEST: usize = 40;

/// Width of the bar of slots.
const BAR: usize = 20;

/// Width of a page that is printed instead of drawn on a terminal.
const PRINTED: u16 = 140;

const HEAD: Style = Style::new().add_modifier(Modifier::REVERSED);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const GOOD: Style = Style::new().fg(Color::Green);
const ODD: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red);

/// The content of the screen.
pub(crate) struct Screen<'a> {
    /// The connect string.
    pub(crate) to: &'a str,
    pub(crate) interval: Duration,
    /// Why the data is old, and its age.
    pub(crate) trouble: Option<(&'a str, Duration)>,
    pub(crate) view: &'a View,
    pub(crate) sort: Sort,
    /// Number of workers to skip.
    pub(crate) scroll: usize,
    /// Whether the keyboard is read.
    pub(crate) keys: bool,
}

impl Widget for &Screen<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let height = usize::from(area.height);
        for (line, y) in self.lines(height).iter().zip(area.top()..area.bottom()) {
            buffer.set_line(area.left(), y, line, area.width);
        }
    }
}

impl Screen<'_> {
    /// Returns the whole page as text.
    pub(crate) fn text(&self) -> String {
        let lines = self.lines(usize::MAX);
        let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let area = Rect::new(0, 0, PRINTED, height);
        let mut buffer = Buffer::empty(area);
        self.render(area, &mut buffer);
        let rows = buffer.content().chunks(usize::from(PRINTED));
        let rows =
            rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned());
        rows.collect::<Vec<_>>().join("\n")
    }

    fn lines(&self, height: usize) -> Vec<Line<'static>> {
        let mut lines = vec![self.title()];
        if let Some((why, old)) = self.trouble {
            let why = short(&printable(why), 200);
            lines.push(Line::styled(format!("Data is {} old: {why}", rough(old)), BAD));
        }
        lines.push(leader(self.view));
        lines.extend(clocks(&self.view.skewed));
        lines.push(jobs(&self.view.jobs));
        lines.extend(self.view.per_second.as_ref().map(rates));
        lines.push(slots(self.view));
        lines.push(Line::default());
        let foot = usize::from(self.keys);
        // Each table has a header, and a blank line separates the tables.
        let room = height.saturating_sub(lines.len() + foot + 3);
        let kinds = self.view.kinds.len().min((room / 2).max(room.saturating_sub(self.view.workers.len())));
        let workers = room.saturating_sub(kinds);
        lines.extend(worker_table(self.view).lines(self.scroll, workers, HEAD));
        lines.push(Line::default());
        lines.extend(kind_table(self.view).lines(0, kinds, HEAD));
        if self.keys {
            lines.truncate(height.saturating_sub(1));
            lines.resize(height.saturating_sub(1), Line::default());
            let sort = self.sort.name();
            lines
                .push(Line::styled(format!("q quit   s sort (by {sort})   ↑↓ scroll   space refresh"), HEAD));
        }
        lines
    }

    fn title(&self) -> Line<'static> {
        let to = short(&printable(self.to), 80);
        let at = self.view.at.clone();
        let every = rough(self.interval);
        Line::from(vec![
            Span::styled("bellwether top", STRONG),
            format!("  {to}  {at}  every {every}").into(),
        ])
    }
}

fn leader(view: &View) -> Line<'static> {
    let told = match &view.leader {
        Some(leader) if leader.standing => {
            let (node, epoch, age) = (cell(&leader.node), leader.epoch, rough(leader.age));
            Span::styled(format!("{node} leads, epoch {epoch}, for {age}"), GOOD)
        }
        Some(leader) => {
            let (node, epoch) = (cell(&leader.node), leader.epoch);
            Span::styled(format!("no leader; the last was {node}, epoch {epoch}"), BAD)
        }
        None => Span::styled("no leader yet", BAD),
    };
    Line::from(vec!["leader  ".into(), told])
}

/// The hosts whose clock is wrong; `None` without any.
fn clocks(skewed: &[String]) -> Option<Line<'static>> {
    let hosts = skewed.iter().map(|host| cell(host)).collect::<Vec<_>>().join(", ");
    let told = Span::styled(format!("{hosts} of ZooKeeper's"), BAD);
    (!skewed.is_empty()).then(|| Line::from(vec!["clocks  ".into(), told]))
}

fn jobs(jobs: &Jobs) -> Line<'static> {
    let Jobs { queued, delayed, delayed_exact, running, orphaned, quarantined, over } = *jobs;
    let at_least = if delayed_exact { "" } else { "≥" };
    let calm = format!(
        "jobs    {} queued  {at_least}{} delayed  {} running  ",
        grouped(queued),
        grouped(delayed),
        grouped(running)
    );
    let amiss = |count: usize, what: &str| {
        let style = if count == 0 { Style::new() } else { BAD };
        Span::styled(format!("{} {what}  ", grouped(count)), style)
    };
    let mut spans = vec![calm.into(), amiss(orphaned, "orphaned"), amiss(quarantined, "quarantined")];
    if let Some(over) = over {
        spans.push(format!("{} ended and kept", grouped(over)).into());
    }
    Line::from(spans)
}

fn rates(rates: &PerSecond) -> Line<'static> {
    let PerSecond { jobs: Rates { submitted, finished, removed, .. }, ended } = *rates;
    let [submitted, finished, ended, removed] = [submitted, finished, Some(ended), removed].map(rate);
    Line::from(format!(
        "per s   {submitted} submitted  {finished} finished  {ended} attempts ended  {removed} records removed"
    ))
}

fn slots(view: &View) -> Line<'static> {
    let (busy, slots) = view.slots();
    let cells = (busy.min(slots) * BAR).div_ceil(slots.max(1));
    let style = if busy >= slots { ODD } else { GOOD };
    Line::from(vec![
        "slots   [".into(),
        Span::styled("|".repeat(cells), style),
        format!("{}] {} of {} busy", " ".repeat(BAR - cells), grouped(busy.min(slots)), grouped(slots))
            .into(),
    ])
}

fn worker_table(view: &View) -> Table {
    let header = [
        left("WORKER"),
        left("HOST"),
        left("STATE"),
        right("BUSY"),
        right("SLOTS"),
        right("ENDED/S"),
        right("UP"),
        left("TAGS"),
        left("KINDS"),
    ];
    Table::new("workers", header.to_vec(), view.workers.iter().map(worker_row).collect())
}

fn worker_row(worker: &Worker) -> Vec<Cell> {
    let style = match worker.state {
        State::Ready => Style::new(),
        State::Draining | State::Shunned => ODD,
        State::Unreadable => BAD,
    };
    let dash = || "–".to_owned();
    let names = |names: &[String]| cell(&names.join(" "));
    vec![
        Cell::plain(worker.node.as_deref().map_or_else(|| cell(&worker.id), cell)),
        Cell::plain(worker.host.as_deref().map_or_else(dash, cell)),
        Cell::styled(worker.state.name().to_owned(), style),
        // Jobs of segments are assigned before slots are free for them.
        Cell::plain(grouped(
            worker.slots.map_or(worker.assigned, |slots| worker.assigned.min(slots as usize)),
        )),
        Cell::plain(worker.slots.map_or_else(dash, |slots| grouped(slots as usize))),
        Cell::plain(rate(worker.ended_per_second)),
        Cell::plain(worker.age.map_or_else(dash, rough)),
        Cell::plain(names(&worker.tags)),
        Cell::plain(worker.error.as_deref().map_or_else(|| names(&worker.kinds), cell)),
    ]
}

fn kind_table(view: &View) -> Table {
    let header = [
        left("KIND"),
        right("WORKERS"),
        right("BUSY"),
        right("SLOTS"),
        right("WAITING"),
        right("RUNNING"),
        right("ENDED/S"),
        left("PAUSED BY"),
    ];
    Table::new("kinds", header.to_vec(), view.kinds.iter().map(kind_row).collect())
}

fn kind_row(kind: &Kind) -> Vec<Cell> {
    let unserved = if kind.workers == 0 { BAD } else { Style::new() };
    let ended = kind.ended_per_second.map_or_else(String::new, |ended| rate(Some(ended)));
    vec![
        Cell::plain(cell(&kind.kind)),
        Cell::styled(grouped(kind.workers), unserved),
        Cell::plain(grouped(kind.assigned.min(kind.slots))),
        Cell::plain(grouped(kind.slots)),
        Cell::plain(count(kind.waiting)),
        Cell::plain(count(kind.running)),
        Cell::plain(ended),
        Cell::styled(kind.paused.as_deref().map_or_else(String::new, cell), ODD),
    ]
}

/// Makes text of other users safe for one line of the terminal: cuts it, and escapes control characters.
fn cell(text: &str) -> String {
    short(&printable(&text.replace(['\n', '\r'], " ")), WIDEST)
}

fn count(count: Option<Count>) -> String {
    match count {
        Some(Count { count, exact: true }) => grouped(count),
        Some(Count { count, exact: false }) => format!("≈{}", grouped(count)),
        None => "–".to_owned(),
    }
}

fn rate(rate: Option<f64>) -> String {
    match rate {
        Some(rate) if rate < 1_000.0 => format!("{rate:.1}"),
        // Rounded; a rate is never negative.
        Some(rate) => grouped(rate.round() as usize),
        None => "–".to_owned(),
    }
}

/// Formats a number as `1,234,567`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
