//! What ractor leaves to its users: it never restarts a child, and a parent that stops kills its children.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ractor::ActorCell;

/// Restarts within [`WITHIN`] beyond which a supervisor gives up: a fault that comes back this often is not
/// cured by starting again, and whoever is above may know better.
const RESTARTS: usize = 10;
const WITHIN: Duration = Duration::from_secs(30);

/// How long an actor may take to stop before it is killed.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// Counts restarts.
#[derive(Debug, Default)]
pub(crate) struct Intensity(VecDeque<Instant>);

/// Too many restarts.
#[derive(Debug, thiserror::Error)]
#[error("{0} was restarted more than {RESTARTS} times within {WITHIN:?}")]
pub(crate) struct TooManyRestarts(&'static str);

impl Intensity {
    /// Notes a restart of `what`.
    pub(crate) fn note(&mut self, what: &'static str) -> Result<(), TooManyRestarts> {
        let now = Instant::now();
        self.0.push_back(now);
        while self.0.front().is_some_and(|first| now.duration_since(*first) > WITHIN) {
            self.0.pop_front();
        }
        if self.0.len() > RESTARTS { Err(TooManyRestarts(what)) } else { Ok(()) }
    }
}

/// Stops actors one after another, in order, and waits for each.
pub(crate) async fn stop_all(cells: impl IntoIterator<Item = ActorCell>) {
    for cell in cells {
        stop(&cell, STOP_WITHIN).await;
    }
}

/// Stops an actor and waits until it has stopped; kills it when it takes too long. Its supervisor hears nothing.
pub(crate) async fn stop(cell: &ActorCell, within: Duration) {
    // It would get the stopped actor's state, and keep it until it looks into its mailbox, which it never does while
    // it stops itself. A state that holds the ZooKeeper session would keep the session from being closed.
    if let Some(supervisor) = cell.try_get_supervisor() {
        cell.unlink(supervisor);
    }
    if cell.stop_and_wait(None, Some(within)).await.is_err() {
        tracing::warn!(actor = ?cell.get_id(), ?within, "an actor did not stop in time and is killed");
        if cell.kill_and_wait(Some(STOP_WITHIN)).await.is_err() {
            tracing::error!(actor = ?cell.get_id(), "an actor did not die");
        }
    }
}
