//! The settings with which a remote worker registers.

use std::time::Duration;

use bellwether::{Kind, NodeId, Tag};

/// The settings of a remote worker. The library checks their bounds when the node starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct Settings {
    pub(in crate::http) name: NodeId,
    pub(in crate::http) kinds: Vec<KindSettings>,
    pub(in crate::http) slots: u32,
    pub(in crate::http) tags: Vec<Tag>,
    /// The time without a call after which the worker counts as lost.
    pub(in crate::http) timeout: Duration,
}

/// A kind that a remote worker runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct KindSettings {
    pub(in crate::http) kind: Kind,
    pub(in crate::http) lease: Option<Duration>,
    pub(in crate::http) concurrency: Option<u32>,
}
