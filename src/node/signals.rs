//! The signals that ask a node to stop.

use std::future::Future;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Drained, RunError};

/// Waits for SIGTERM or ctrl-c, then runs `stop`. A second signal ends the wait immediately. If `ended` resolves before
/// the first signal, its result is returned and nothing is stopped.
///
/// [`Node::run`](crate::Node::run) is this for a node alone. A program that stops a node together with other services
/// calls it with the ends of all of them: `stop` first stops the services, then returns the result of
/// [`Node::stop`](crate::Node::stop).
///
/// # Errors
/// The errors of `ended`; [`RunError`]: the drain was interrupted or given up, or the process cannot listen for signals.
///
/// # Cancellation
/// Dropping the future leaves the node running, or the stop incomplete. After the first call the node keeps the process's
/// handlers for SIGTERM and ctrl-c.
pub async fn run_until_signal<E: From<RunError>>(
    ended: impl Future<Output = Result<(), E>>,
    stop: impl Future<Output = Option<Drained>>,
) -> Result<(), E> {
    let mut signals = ShutdownSignals::listen().map_err(RunError::Signals)?;
    let first = tokio::select! {
        ended = ended => return ended,
        first = signals.next() => first,
    };
    tracing::info!(signal = %first, "the node received a signal and drains; send the signal again to stop immediately");
    let drained = tokio::select! {
        drained = stop => drained,
        second = signals.next() => return Err(RunError::Interrupted(second).into()),
    };
    match drained {
        // A node that was not a worker leaves nothing behind.
        None | Some(Drained::Empty) => Ok(()),
        Some(Drained::Abandoned) => {
            tracing::warn!(
                "the node gave up its drain: the leader recovers the remaining jobs after the session expires"
            );
            Err(RunError::Abandoned.into())
        }
    }
}

/// SIGTERM and ctrl-c, for a program with its own reaction to them; see [`run_until_signal`].
///
/// A signal that arrives between two calls of [`next`](Self::next) is not lost.
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
