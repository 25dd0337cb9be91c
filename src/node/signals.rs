//! The signals that ask a node to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and ctrl-c, for a program that stops a node together with other services.
///
/// A signal that arrives between two calls of [`next`](Self::next) is not lost. [`Node::run`](crate::Node::run) uses this type.
#[derive(Debug)]
pub struct ShutdownSignals {
    term: Signal,
    interrupt: Signal,
}

impl ShutdownSignals {
    /// Starts to listen. From then on these signals no longer end the process.
    ///
    /// # Errors
    /// The operating system refuses the signal handler.
    pub fn listen() -> io::Result<Self> {
        let (term, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self { term, interrupt })
    }

    /// Waits for the next signal and returns its name.
    ///
    /// # Cancellation
    /// Dropping the future loses no signal.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "ctrl-c",
        }
    }
}
