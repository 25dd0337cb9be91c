//! Progress on stderr, if it is a terminal.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressStyle};

use super::Global;

/// Smaller numbers are done before a bar can be read.
const WORTH_A_BAR: usize = 100;

impl Global {
    pub(crate) fn progress(&self, what: &'static str, total: usize) -> ProgressBar {
        if self.quiet || total < WORTH_A_BAR || !stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}");
        let bar = ProgressBar::new(total as u64).with_message(what);
        match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}
