//! The state of a node's worker.

use bellwether_core::name::WorkerId;
use bellwether_host::node::Parts;
use bellwether_host::worker::{Stage, WorkerStatus};
use tokio::sync::watch;

/// The state of a node's worker. After each connection with a new session the worker registers again, with a new id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerState {
    /// The worker is not registered: there is no session yet, or the registration is being written or deleted.
    Unregistered,
    /// The worker takes jobs.
    Serving(WorkerId),
    /// The worker takes no new jobs, because the node or an operator drains it.
    Draining(WorkerId),
    /// The drain is complete. The worker takes no jobs again.
    Drained,
}

/// Watches the worker of a node. Of changes in quick succession only the last is seen.
#[derive(Debug, Clone)]
pub struct WorkerWatch {
    parts: watch::Receiver<Parts>,
    status: Option<watch::Receiver<WorkerStatus>>,
    seen: Option<WorkerState>,
}

impl WorkerWatch {
    pub(super) fn new(parts: watch::Receiver<Parts>) -> Self {
        Self { parts, status: None, seen: None }
    }

    /// Returns the current state on the first call, and after that each next state; `None` when the node has ended. For a node
    /// without a worker, the call does not return before the node ends.
    ///
    /// # Cancellation
    /// Cancel safe: a state that was not returned is returned by the next call.
    pub async fn changed(&mut self) -> Option<WorkerState> {
        loop {
            if self.parts.has_changed().is_err() {
                return None;
            }
            // A restarted worker has a new handle.
            self.status = self.parts.borrow_and_update().worker.as_ref().map(|worker| worker.status());
            let Some(status) = &mut self.status else {
                self.parts.changed().await.ok()?;
                continue;
            };
            let now = state(*status.borrow_and_update());
            if self.seen != Some(now) {
                self.seen = Some(now);
                return Some(now);
            }
            tokio::select! {
                changed = self.parts.changed() => changed.ok()?,
                changed = status.changed() => if changed.is_err() {
                    // The worker has ended: it is restarted, or the node ends.
                    self.parts.changed().await.ok()?;
                },
            }
        }
    }
}

fn state(WorkerStatus { stage, id }: WorkerStatus) -> WorkerState {
    match (stage, id) {
        (Stage::Serving, Some(id)) => WorkerState::Serving(id),
        (Stage::Draining, Some(id)) => WorkerState::Draining(id),
        (Stage::Over, _) => WorkerState::Drained,
        (Stage::Away | Stage::Registering | Stage::Leaving, _) | (Stage::Serving | Stage::Draining, None) => {
            WorkerState::Unregistered
        }
    }
}
