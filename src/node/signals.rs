//! The signals that ask a node to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What asks a node to stop. Listened to from the start to the end: a signal between two calls is not lost.
pub(super) struct Signals {
    term: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        let (term, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self { term, interrupt })
    }

    /// The next one's name.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "ctrl-c",
        }
    }
}
