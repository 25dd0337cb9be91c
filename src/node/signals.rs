//! The signals that ask a node to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask a node to stop. They are listened to continuously, so no signal between two calls is lost.
pub(super) struct Signals {
    term: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        let (term, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self { term, interrupt })
    }

    /// Waits for the next signal and returns its name.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "ctrl-c",
        }
    }
}
