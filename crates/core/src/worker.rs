//! What a worker and a leader say about themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use crate::job::Placement;
use crate::name::{Kind, NodeId, Tag};
use crate::time::WallMillis;

/// A worker's registration, in its ephemeral znode.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerInfo {
    /// The node it belongs to.
    pub node: NodeId,
    /// Where it runs; shown to people.
    pub host: String,
    /// The kinds it has handlers for; sorted, without repeats.
    pub kinds: Vec<Kind>,
    /// The leases of those that have one of their own.
    pub leases: BTreeMap<Kind, Duration>,
    /// How many jobs it takes at a time.
    pub slots: u32,
    /// What it offers; sorted, without repeats.
    pub tags: Vec<Tag>,
    /// The highest schema version that it reads.
    pub codec: u16,
    /// When it registered, by its wall clock.
    pub started_at: WallMillis,
    /// Set before it leaves: it takes nothing new. The change bumps the znode's version, on which every
    /// assignment checks, so none can slip in afterwards.
    pub draining: bool,
}

impl WorkerInfo {
    /// Whether it can run jobs of `kind` placed so.
    #[must_use]
    pub fn can_run(&self, kind: &Kind, placement: &Placement) -> bool {
        self.kinds.binary_search(kind).is_ok()
            && placement.tags.iter().all(|tag| self.tags.binary_search(tag).is_ok())
    }
}

/// Who leads, in `/epoch`. The znode's version is the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EpochRecord {
    /// The node that claimed it.
    pub node: NodeId,
    /// Its ZooKeeper session: an epoch belongs to a session, never to a host name (S4).
    pub session: i64,
    /// Chosen by the claim: tells our own claim from another's when the reply was lost.
    pub token: Uuid,
    /// When it was claimed, by the leader's wall clock.
    pub since: WallMillis,
}

/// Who paused a kind, in `/pauses/{kind}`. The znode's being there is the pause.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PauseRecord {
    /// As they said.
    pub by: String,
    /// When, by their wall clock.
    pub since: WallMillis,
}
