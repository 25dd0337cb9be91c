//! The configuration of a worker.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::handler::Registry;
use bellwether_actors::worker::takeover::{Taken, Takeover};
use bellwether_core::budget::{MAX_SLOTS, MAX_TAGS};
use bellwether_core::change::Noted;
use bellwether_core::name::{NodeId, Tag, WorkerId};
use bellwether_core::takeover::{HeldAttempt, Owner};
use bellwether_core::time::WallMillis;
use bellwether_core::wire::SCHEMA;
use bellwether_core::worker::WorkerInfo;

/// The configuration of a worker.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// The worker's node.
    pub node: NodeId,
    /// The host name, shown to operators.
    pub host: String,
    /// The number of jobs that the worker runs at the same time.
    pub slots: u32,
    /// The worker's tags.
    pub tags: Vec<Tag>,
    /// The worker's handlers.
    pub handlers: Registry,
    /// The grace period for running jobs when an operator drains the worker. The rest is handed back.
    pub drain_grace: Duration,
    /// The worker that served the same handlers before, in a process that has ended or lost its session, while the code that
    /// runs the attempts is still alive. Attempts of this id are handed back and not lost.
    pub former: Option<WorkerId>,
    /// The owner of the worker, if it runs jobs for another process.
    pub owner: Option<Owner>,
    /// The attempts that it takes over from `former`.
    pub takeover: Option<TakeoverConfig>,
}

/// The attempts that a worker takes over.
#[derive(Clone)]
pub struct TakeoverConfig {
    /// The worker that had them.
    pub from: WorkerId,
    /// The attempts.
    pub held: Vec<HeldAttempt>,
    /// Called with the id of the new worker and the outcome for each attempt, before any of them is attached to a handler.
    pub report: Arc<dyn Fn(WorkerId, Vec<Taken>) + Send + Sync>,
}

impl fmt::Debug for TakeoverConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, held, report: _ } = self;
        f.debug_struct("TakeoverConfig").field("from", from).field("held", held).finish_non_exhaustive()
    }
}

/// An invalid configuration of a worker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerConfigError {
    /// Too few or too many slots.
    #[error("slots must be 1 to {MAX_SLOTS}, not {0}")]
    Slots(u32),
    /// Too many tags.
    #[error("a worker has at most {MAX_TAGS} tags, not {0}")]
    Tags(usize),
    /// No handlers.
    #[error("a worker needs a handler")]
    NoHandler,
}

bellwether_core::impl_remedy!(@invalid WorkerConfigError);

impl WorkerConfig {
    /// Checks the bounds.
    ///
    /// # Errors
    /// The first violated bound.
    pub fn check(&self) -> Result<(), WorkerConfigError> {
        if !(1..=MAX_SLOTS).contains(&self.slots) {
            return Err(WorkerConfigError::Slots(self.slots));
        }
        if self.tags.len() > MAX_TAGS {
            return Err(WorkerConfigError::Tags(self.tags.len()));
        }
        if self.handlers.kinds().next().is_none() {
            return Err(WorkerConfigError::NoHandler);
        }
        Ok(())
    }

    /// The takeover of the first incarnation. Without an owner there is none, because nothing proves who may move the attempts.
    pub(super) fn takeover(&self) -> Option<Takeover> {
        let TakeoverConfig { from, held, report: _ } = self.takeover.as_ref()?;
        Some(Takeover {
            from: *from,
            owner: self.owner?,
            held: held.clone(),
            slots: self.slots,
            limits: self.handlers.concurrency(),
        })
    }

    /// The registration of an incarnation.
    pub(super) fn info(&self, started_at: WallMillis) -> WorkerInfo {
        let mut tags = self.tags.clone();
        tags.sort();
        tags.dedup();
        WorkerInfo {
            node: self.node.clone(),
            host: self.host.clone(),
            kinds: self.handlers.kinds().cloned().collect(),
            leases: self.handlers.leases(),
            slots: self.slots,
            tags,
            codec: SCHEMA,
            started_at,
            former: self.former.into_iter().collect(),
            owner: self.owner,
            draining: false,
            settings: Noted::default(),
        }
    }
}
