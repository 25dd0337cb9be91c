//! Where a job may run.

use crate::name::{AffinityKey, Lane, Tag};

/// The constraints on where and in which order a job runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Placement {
    /// Tags that the worker must have; sorted, without repeats.
    pub tags: Vec<Tag>,
    /// Jobs of one key prefer one worker under the rendezvous strategy.
    pub affinity: Option<AffinityKey>,
    /// Jobs of one lane run one at a time, in the order of their submission.
    pub lane: Option<Lane>,
}
