//! What a worker is told about itself.

use std::time::Duration;

use super::handler::Registry;
use bellwether_core::budget::{MAX_SLOTS, MAX_TAGS};
use bellwether_core::name::{NodeId, Tag};
use bellwether_core::time::WallMillis;
use bellwether_core::wire::SCHEMA;
use bellwether_core::worker::WorkerInfo;

/// What a worker is and offers.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// The node that it belongs to.
    pub node: NodeId,
    /// Where it runs; shown to people.
    pub host: String,
    /// How many jobs it takes at a time.
    pub slots: u32,
    /// What it offers.
    pub tags: Vec<Tag>,
    /// What it can run.
    pub handlers: Registry,
    /// How long what runs may take to end when an operator tells it to drain; the rest is handed back.
    pub drain_grace: Duration,
}

/// A worker that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkerConfigError {
    /// Too few or too many slots.
    #[error("slots must be 1 to {MAX_SLOTS}, not {0}")]
    Slots(u32),
    /// Too many tags.
    #[error("a worker has at most {MAX_TAGS} tags, not {0}")]
    Tags(usize),
    /// Nothing to run.
    #[error("a worker needs a handler")]
    NoHandler,
}

impl WorkerConfig {
    /// Checks the bounds.
    ///
    /// # Errors
    /// The first that is broken.
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
            draining: false,
        }
    }
}
