//! The records of workers, of the leader and of paused kinds.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use crate::job::Placement;
use crate::name::{Kind, NodeId, Tag, WorkerId};
use crate::time::WallMillis;

/// A worker's registration, in its ephemeral znode.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerInfo {
    /// The node it belongs to.
    pub node: NodeId,
    /// The host that it runs on; only for display.
    pub host: String,
    /// The kinds it has handlers for; sorted, without repeats.
    pub kinds: Vec<Kind>,
    /// The leases of the kinds that override the default lease.
    pub leases: BTreeMap<Kind, Duration>,
    /// How many jobs it runs at a time.
    pub slots: u32,
    /// The tags that it offers; sorted, without repeats.
    pub tags: Vec<Tag>,
    /// The highest schema version that it reads.
    pub codec: u16,
    /// When it registered, by its wall clock.
    pub started_at: WallMillis,
    /// The worker ids that its process had before, in sessions that expired. Their attempts are handed back and not
    /// lost, because the process is alive. The newest ones, at most [`MAX_FORMER_IDS`](crate::budget::MAX_FORMER_IDS).
    pub former: Vec<WorkerId>,
    /// Set before it leaves: it accepts no new jobs. The change raises the version of the znode, which every assignment
    /// checks, so no later assignment can commit.
    pub draining: bool,
}

impl WorkerInfo {
    /// Whether it can run jobs of `kind` with this placement.
    #[must_use]
    pub fn can_run(&self, kind: &Kind, placement: &Placement) -> bool {
        self.kinds.binary_search(kind).is_ok()
            && placement.tags.iter().all(|tag| self.tags.binary_search(tag).is_ok())
    }
}

/// The record of the leader, in `/epoch`. The version of the znode is the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EpochRecord {
    /// The node that claimed it.
    pub node: NodeId,
    /// Its ZooKeeper session: an epoch belongs to a session, never to a host name (S4).
    pub session: i64,
    /// Chosen by the claim; identifies this claim after a lost reply.
    pub token: Uuid,
    /// When it was claimed, by the leader's wall clock.
    pub since: WallMillis,
}

/// The record of a paused kind, in `/pauses/{kind}`. The kind is paused while the znode exists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PauseRecord {
    /// The operator who paused the kind, as given by the client.
    pub by: String,
    /// When it was paused, by the client's wall clock.
    pub since: WallMillis,
}
