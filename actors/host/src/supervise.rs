//! Stops actors in order. Without this, a ractor parent that stops kills its children.

use std::time::Duration;

use ractor::ActorCell;

/// The time after which an actor that has not stopped is killed.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// Stops actors one after another, in order, and waits for each.
pub(crate) async fn stop_all(cells: impl IntoIterator<Item = ActorCell>) {
    for cell in cells {
        stop(&cell, STOP_WITHIN).await;
    }
}

/// Stops an actor and waits until it has stopped; kills it when it takes too long. Its supervisor is not notified.
pub(crate) async fn stop(cell: &ActorCell, within: Duration) {
    // The notification contains the stopped actor's state, which may hold the ZooKeeper session. A supervisor that is
    // stopping itself never reads its mailbox, so the notification would keep the session open.
    if let Some(supervisor) = cell.try_get_supervisor() {
        cell.unlink(supervisor);
    }
    if cell.stop_and_wait(None, Some(within)).await.is_err() {
        tracing::warn!(actor = ?cell.get_id(), ?within, "an actor did not stop in time and is killed");
        if cell.kill_and_wait(Some(STOP_WITHIN)).await.is_err() {
            tracing::error!(actor = ?cell.get_id(), "an actor did not stop after it was killed");
        }
    }
}
