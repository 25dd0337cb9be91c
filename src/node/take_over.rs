//! Taking over attempts from the worker of another node.

use std::fmt;
use std::sync::Arc;

use bellwether_core::name::WorkerId;
use bellwether_host::worker::TakeoverConfig;

pub use bellwether_core::takeover::{HeldAttempt, Owner as WorkerOwner, Refusal};
pub use bellwether_host::worker::Taken as TakenAttempt;

/// The attempts that a worker takes over when it registers, in a program that runs jobs for other processes: the process that
/// runs them is alive, and the node that served it has died or cannot be reached.
///
/// Only attempts of a worker with the same [owner](super::NodeBuilder::worker_owner) are moved, and only those that are still
/// open. An attempt keeps its number, its lease and its progress, and gets a new fencing token. Its handler is called on the
/// new node with [`JobContext::is_taken_over`](crate::JobContext::is_taken_over): it attaches to the process and must not start
/// the job again.
///
/// An attempt that is not moved stays with the former worker: see [`Refusal`].
#[derive(Clone)]
pub struct TakeOver {
    former: WorkerId,
    held: Vec<HeldAttempt>,
    report: Arc<dyn Fn(WorkerId, Vec<TakenAttempt>) + Send + Sync>,
}

impl fmt::Debug for TakeOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { former, held, report: _ } = self;
        f.debug_struct("TakeOver").field("former", former).field("held", held).finish_non_exhaustive()
    }
}

impl TakeOver {
    /// Takes over these attempts of the former worker.
    ///
    /// `report` is called once, with the id of the new worker and the outcome for each attempt, before the first handler is
    /// called. If the session expires before that, nothing is reported, and the worker registers again without a takeover.
    #[must_use]
    pub fn new(
        former: WorkerId,
        held: Vec<HeldAttempt>,
        report: impl Fn(WorkerId, Vec<TakenAttempt>) + Send + Sync + 'static,
    ) -> Self {
        Self { former, held, report: Arc::new(report) }
    }

    pub(super) fn config(&self) -> TakeoverConfig {
        TakeoverConfig { from: self.former, held: self.held.clone(), report: Arc::clone(&self.report) }
    }
}
