//! The settings with which a remote worker registers.

use std::time::Duration;

use bellwether::{Kind, NodeId, Tag};

/// The settings of a remote worker. The library checks their bounds when the node starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) node_id: NodeId,
    pub(crate) kinds: Vec<KindSettings>,
    pub(crate) slots: u32,
    pub(crate) tags: Vec<Tag>,
    /// The time without a call after which the worker counts as lost.
    pub(crate) session_timeout: Duration,
}

/// A kind that a remote worker runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KindSettings {
    pub(crate) kind: Kind,
    pub(crate) lease: Option<Duration>,
    pub(crate) concurrency: Option<u32>,
}
