//! Stopping actors in order. In ractor a parent that stops kills its children where they are.

use std::time::Duration;

use ractor::ActorCell;

/// How long an actor may take to stop before it is killed.
const STOP_WITHIN: Duration = Duration::from_secs(5);

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
