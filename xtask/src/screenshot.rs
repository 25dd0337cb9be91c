//! The pictures in the README: what `bellwether demo` prints on a terminal, as an SVG, and the console in a browser. The text
//! next to the first one is of the same run.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::pty::{Winsize, openpty};
use vt100::{Cell, Color, Parser, Screen};

use crate::cargo::{self, TESTING, cargo};
use crate::failure::Failure;
use crate::install;

/// The picture of the console, and the screenshot of the test that it is a copy of.
const CONSOLE: &str = "docs/images/console.png";
const OF_TEST: &str = "target/console-screenshots/readme.png";

/// The picture, from the root of the tree.
const FILE: &str = "docs/images/demo.svg";

/// The page that has the report as text, and the beginning and the end of that text.
const PAGE: &str = "README.md";
const BEGIN: &str = "```text\nLeaders\n";
const END: &str = "```\n";

/// The indent of the report's lines about single jobs, which the text omits.
const JOB: &str = "           ";

/// Size of the terminal. More rows than the output has: empty ones at the end are cut.
const ROWS: u16 = 60;
const COLUMNS: u16 = 100;

/// Size of a character cell, and the margin around all of them, in pixels.
const WIDTH: f64 = 8.4;
const HEIGHT: u32 = 19;
const MARGIN: u32 = 16;

const BACKGROUND: &str = "#1e2127";
const FOREGROUND: &str = "#d7dae0";

/// The 16 colours of a terminal.
const PALETTE: [&str; 16] = [
    "#3f4451", "#e05561", "#8cc265", "#d18f52", "#4aa5f0", "#c162de", "#42b3c2", "#d7dae0", "#4f5666",
    "#ff616e", "#a5e075", "#f0a45d", "#4dc4ff", "#de73ff", "#4cd1e0", "#e6e6e6",
];

/// Runs the demo of this command on a terminal and writes the picture and the text.
pub(crate) fn run(binary: &Path) -> Result<(), Failure> {
    let line = format!("{} demo", binary.display());
    let drawn = record(binary).and_then(|screen| {
        fs::create_dir_all(Path::new(FILE).parent().expect("it is in a directory"))?;
        fs::write(FILE, svg(&screen, "bellwether demo"))?;
        let page = with_report(&fs::read_to_string(PAGE)?, &screen.contents());
        fs::write(PAGE, page.ok_or_else(|| io::Error::other(format!("{PAGE} has no report to replace")))?)
    });
    drawn.map_err(|source| Failure::Launch { line, source })?;
    eprintln!("xtask: wrote {FILE} and the report in {PAGE}");
    console()
}

/// Runs the test that takes the picture of the console, and copies it.
fn console() -> Result<(), Failure> {
    install::browser()?;
    let test = ["--package", "bellwether-server", "--test", "console", TESTING, "--", "picture::"];
    // 14 samples of the charts.
    cargo::run(cargo().arg("test").args(test).env("BELLWETHER_PICTURE_AFTER", "145"))?;
    let copied = fs::copy(OF_TEST, CONSOLE);
    copied.map_err(|source| Failure::Launch { line: format!("cp {OF_TEST} {CONSOLE}"), source })?;
    eprintln!("xtask: wrote {CONSOLE}");
    Ok(())
}

/// The page with the report that ends this output; `None` if one of them has none.
fn with_report(page: &str, output: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let report = output.lines().skip_while(|line| line.trim_end() != "Leaders").skip(1);
    let lines: Vec<_> =
        report.map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with(JOB)).collect();
    (!lines.is_empty()).then(|| format!("{before}{BEGIN}{}\n{END}{after}", lines.join("\n")))
}

/// The terminal's screen after the command ended.
fn record(binary: &Path) -> io::Result<Screen> {
    let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(&size, None)?;
    let end = |fd: &OwnedFd| fd.try_clone().map(Stdio::from);
    let mut command = Command::new(binary);
    command.arg("demo").env("TERM", "xterm-256color");
    command.stdin(Stdio::null()).stdout(end(&pty.slave)?).stderr(end(&pty.slave)?);
    let mut child = command.spawn()?;
    // The terminal ends when the last process that holds it does: not this one.
    drop((command, pty.slave));
    let mut master = File::from(pty.master);
    let mut parser = terminal();
    let mut read = [0; 4_096];
    loop {
        match master.read(&mut read) {
            Ok(0) => break,
            Ok(length) => parser.process(&read[..length]),
            // On Linux this is how a terminal ends.
            Err(error) if error.raw_os_error() == Some(nix::libc::EIO) => break,
            Err(error) => return Err(error),
        }
    }
    let status = child.wait()?;
    if !status.success() {
        return Err(io::Error::other(format!("{status}: {}", parser.screen().contents())));
    }
    Ok(parser.screen().clone())
}

fn terminal() -> Parser {
    let size = |cells| NonZero::new(cells).expect("a terminal has cells");
    Parser::new(size(ROWS), size(COLUMNS), 0)
}

/// The screen without the empty rows at its end, below the command that was typed.
fn svg(screen: &Screen, typed: &str) -> String {
    let mut rows: Vec<String> = (0..ROWS).map(|row| spans(screen, row)).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows.insert(0, format!("<tspan fill=\"{}\">$ {typed}</tspan>", PALETTE[2]));
    let (width, height) =
        (f64::from(COLUMNS) * WIDTH + f64::from(2 * MARGIN), rows.len() as u32 * HEIGHT + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"14\" \
         xml:space=\"preserve\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for (row, spans) in (1_u32..).zip(&rows) {
        let y = MARGIN + row * HEIGHT - HEIGHT / 4;
        writeln!(svg, "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{FOREGROUND}\">{spans}</text>")
            .expect("a string can be written to");
    }
    svg + "</svg>\n"
}

/// A row as spans of one look each.
fn spans(screen: &Screen, row: u16) -> String {
    let look = |cell: &Cell| (colour(cell.fgcolor()), cell.bold());
    let cells = (0..COLUMNS).filter_map(|column| screen.cell(row, column)).collect::<Vec<_>>();
    let mut spans = String::new();
    for group in cells.chunk_by(|one, next| look(one) == look(next)) {
        let text: String =
            group.iter().map(|cell| if cell.has_contents() { cell.contents() } else { " " }).collect();
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        match look(group[0]) {
            (None, false) => spans += &text,
            (colour, bold) => {
                let weight = if bold { " font-weight=\"bold\"" } else { "" };
                let fill = colour.map(|colour| format!(" fill=\"{colour}\"")).unwrap_or_default();
                spans += &format!("<tspan{fill}{weight}>{text}</tspan>");
            }
        }
    }
    spans.trim_end().to_owned()
}

fn colour(colour: Color) -> Option<String> {
    match colour {
        Color::Default => None,
        Color::Idx(index) => Some(PALETTE.get(usize::from(index)).unwrap_or(&FOREGROUND).to_string()),
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_in_the_page_is_replaced_without_its_single_jobs() {
        let page = "before\n```text\nLeaders\n  old\n```\nafter";
        let output = "node-1  process 7\nLeaders\n  epoch 1\nJobs\n           demo-1: lost\n  3 jobs/s\n\n";
        let expected = "before\n```text\nLeaders\n  epoch 1\nJobs\n  3 jobs/s\n```\nafter";
        assert_eq!(with_report(page, output).as_deref(), Some(expected));
        assert_eq!(with_report(page, "an error"), None);
        assert_eq!(with_report("a page without a report", output), None);
    }

    #[test]
    fn text_is_escaped_and_keeps_its_colour() {
        let mut parser = terminal();
        parser.process(b"a < b & c\r\n\x1b[1;31mred\x1b[0m plain\r\n");
        let svg = svg(parser.screen(), "true");
        assert!(svg.contains(">a &lt; b &amp; c</text>"), "{svg}");
        assert!(
            svg.contains("<tspan fill=\"#e05561\" font-weight=\"bold\">red</tspan> plain</text>"),
            "{svg}"
        );
        assert_eq!(svg.matches("<text").count(), 3, "the command and two rows: {svg}");
    }
}
