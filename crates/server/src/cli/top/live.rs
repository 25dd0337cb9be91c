//! A page on a terminal, until the user presses `q`.
//!
//! Snapshots and drawing do not wait for each other: while ZooKeeper does not answer, keys still work and the page
//! shows the age of its data.

use std::io::{self, Stdout, stdout};
use std::time::Duration;

use crossterm::cursor::{Hide, Show};
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use futures::StreamExt;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::Top;
use super::draw::Screen;
use super::follow::{Follower, Trouble};
use super::view::{Sort, View};
use crate::cli::exit::Failure;

/// Shown while the connection is lost and no snapshot has failed yet.
const CUT_OFF: &str = "the connection to ZooKeeper is lost";

/// Redraw interval without new data: the page shows its age in seconds.
const REDRAW: Duration = Duration::from_millis(500);

/// Number of rows of a page up or down.
const SCREENFUL: usize = 10;

/// A terminal that shows pages; dropping it restores the terminal.
struct Drawn(Terminal<CrosstermBackend<Stdout>>);

impl Drawn {
    fn start() -> io::Result<Self> {
        enable_raw_mode()?;
        // From here on, dropping `drawn` restores the terminal after a failure.
        let drawn = Terminal::new(CrosstermBackend::new(stdout())).map(Self);
        if drawn.is_err() {
            disable_raw_mode()?;
        }
        let drawn = drawn?;
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        Ok(drawn)
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        // Errors cannot be reported if the terminal was closed.
        drop(execute!(stdout(), Show, LeaveAlternateScreen));
        drop(disable_raw_mode());
    }
}

fn spoilt(error: &io::Error) -> Failure {
    Failure::failed(format!("cannot draw on this terminal: {error}; try --once"))
}

/// The action of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    Quit,
    Ask,
    Sort,
    Up(usize),
    Down(usize),
    Nothing,
}

pub(super) fn pressed(key: KeyEvent) -> Pressed {
    if key.kind == KeyEventKind::Release {
        return Pressed::Nothing;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        // In raw mode Ctrl-C sends no signal.
        return if key.code == KeyCode::Char('c') { Pressed::Quit } else { Pressed::Nothing };
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Pressed::Quit,
        KeyCode::Char('s') => Pressed::Sort,
        KeyCode::Char(' ') => Pressed::Ask,
        KeyCode::Up => Pressed::Up(1),
        KeyCode::Down => Pressed::Down(1),
        KeyCode::PageUp => Pressed::Up(SCREENFUL),
        KeyCode::PageDown => Pressed::Down(SCREENFUL),
        KeyCode::Home => Pressed::Up(usize::MAX),
        KeyCode::End => Pressed::Down(usize::MAX),
        _ => Pressed::Nothing,
    }
}

/// The content of the screen.
struct Page {
    view: View,
    /// The time of the view.
    at: Instant,
    trouble: Option<Trouble>,
    sort: Sort,
    scroll: usize,
}

pub(crate) async fn run(follower: Follower, to: &str, command: &Top) -> Result<(), Failure> {
    let on = |kind| signal(kind).map_err(|error| spoilt(&error));
    let (mut terminated, mut hung_up) = (on(SignalKind::terminate())?, on(SignalKind::hangup())?);
    let Some((view, at)) = follower.view(command.sort) else { return Ok(()) };
    let mut page = Page { view, at, trouble: None, sort: command.sort, scroll: 0 };
    let (client, impatient) = (follower.client.clone(), follower.impatient());
    let (tell, mut told) = mpsc::channel(1);
    // Ends when the receiver is dropped or the client has ended.
    tokio::spawn(look(follower, tell));
    let mut terminal = Drawn::start().map_err(|error| spoilt(&error))?;
    let mut events = EventStream::new();
    loop {
        let trouble = page.trouble.as_deref().or((!client.is_connected()).then_some(CUT_OFF));
        let screen = Screen {
            to,
            interval: command.interval,
            trouble: trouble.map(|why| (why, page.at.elapsed())),
            view: &page.view,
            sort: page.sort,
            scroll: page.scroll,
            keys: true,
        };
        let drawn = terminal.0.draw(|frame| frame.render_widget(&screen, frame.area()));
        drawn.map_err(|error| spoilt(&error))?;
        tokio::select! {
            news = told.recv() => match news {
                Some(Ok(Ok((view, at)))) => {
                    (page.view, page.at, page.trouble) = (view, at, None);
                    page.view.sort(page.sort);
                }
                Some(Ok(Err(trouble))) => page.trouble = Some(trouble),
                Some(Err(failure)) => return Err(failure),
                None => return Err(Failure::failed("the refresh task ended")),
            },
            event = events.next() => match event {
                Some(Ok(Event::Key(key))) => match pressed(key) {
                    Pressed::Quit => break,
                    Pressed::Ask => impatient.notify_one(),
                    Pressed::Sort => {
                        page.sort = page.sort.next();
                        page.view.sort(page.sort);
                    }
                    Pressed::Up(rows) => page.scroll = page.scroll.saturating_sub(rows),
                    Pressed::Down(rows) => {
                        page.scroll = page.scroll.saturating_add(rows).min(page.view.workers.len());
                    }
                    Pressed::Nothing => {}
                },
                // The next iteration draws the page in its new size.
                Some(Ok(Event::Resize(..))) => {}
                // These events are not enabled.
                Some(Ok(Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Paste(_))) => {}
                // The terminal was closed.
                Some(Err(_)) | None => break,
            },
            () = sleep(REDRAW) => {}
            _ = terminated.recv() => break,
            _ = hung_up.recv() => break,
        }
    }
    Ok(())
}

/// The result of a refresh: a view, or the reason of an error; a failure is the last result.
type News = Result<Result<(View, Instant), Trouble>, Failure>;

async fn look(mut follower: Follower, tell: mpsc::Sender<News>) {
    loop {
        let news = match follower.next().await {
            Ok(Ok(())) => match follower.view(Sort::default()) {
                Some(seen) => Ok(Ok(seen)),
                None => continue,
            },
            Ok(Err(trouble)) => Ok(Err(trouble)),
            Err(failure) => Err(failure),
        };
        let last = news.is_err();
        // The receiver was dropped: the page was closed.
        if tell.send(news).await.is_err() || last {
            return;
        }
    }
}
