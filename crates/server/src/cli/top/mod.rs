//! `bellwether top`.

mod draw;
mod follow;
mod json;
mod live;
mod table;
#[cfg(test)]
mod tests;
mod view;

use std::io::{IsTerminal, stdin, stdout};
use std::time::Duration;

use clap::Args;

use super::Global;
use super::exit::Failure;
use super::input;
use super::output::{Format, Output};
use draw::Screen;
use follow::Follower;
use json::Line;
use view::Sort;

/// A page that changes more often cannot be read, and a refresh costs 20 to 34 requests.
const SHORTEST: Duration = Duration::from_millis(250);

/// For longer intervals, use Prometheus.
const LONGEST: Duration = Duration::from_secs(3_600);

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Pause between two refreshes, 250ms to 1h.
    #[arg(long, short = 'd', default_value = "2s", value_parser = interval, value_name = "DURATION")]
    interval: Duration,
    /// Sort order.
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,
    /// Take two snapshots, one interval apart, print the page, and exit. This is the default if stdin or stdout is not
    /// a terminal.
    #[arg(long)]
    once: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = input::duration(text)?;
    if (SHORTEST..=LONGEST).contains(&interval) {
        return Ok(interval);
    }
    Err(format!("the interval must be {SHORTEST:?} to {}s, not {text}", LONGEST.as_secs()))
}

impl Top {
    /// Whether it draws on the terminal, so that log lines would disturb the page.
    pub(crate) fn draws(&self) -> bool {
        !self.once && stdout().is_terminal() && stdin().is_terminal()
    }
}

pub(crate) async fn run(global: &Global, output: Output, command: Top) -> Result<(), Failure> {
    let mut follower = Follower::start(global, command.interval).await?;
    let client = follower.client.clone();
    let to = global.zookeeper()?;
    let done = match output.format {
        Format::Json => stream(&mut follower, output, &command).await,
        Format::Table if command.draws() => live::run(follower, to, &command).await,
        Format::Table => page(&mut follower, output, to, &command).await,
    };
    client.close().await;
    done
}

/// Takes two snapshots, because rates need two.
async fn page(follower: &mut Follower, output: Output, to: &str, command: &Top) -> Result<(), Failure> {
    let trouble = follower.next().await?.err();
    let Some((view, at)) = follower.view(command.sort) else { return Ok(()) };
    let trouble = trouble.as_deref().map(|why| (why, at.elapsed()));
    let Top { interval, sort, once: _ } = *command;
    let screen = Screen { to, interval, trouble, view: &view, sort, scroll: 0, keys: false };
    output.text(&screen.text())
}

/// Prints one object per refresh, until stdout is closed.
async fn stream(follower: &mut Follower, output: Output, command: &Top) -> Result<(), Failure> {
    loop {
        let trouble = follower.next().await?.err();
        if let (Some(snapshot), Some((view, _))) = (follower.snapshot(), follower.view(command.sort)) {
            output.json_line(&Line::new(trouble.as_deref(), snapshot, &view))?;
        }
        if command.once {
            return Ok(());
        }
    }
}
