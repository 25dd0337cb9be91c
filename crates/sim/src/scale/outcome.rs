//! What a run measured.

use serde::Serialize;

use super::share::Share;

/// The measurements of one run. Memory and takeover are computed from [`figures`](super::figures).
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Outcome {
    /// The load.
    pub load: &'static str,
    /// Ensembles.
    pub partitions: usize,
    /// How slots were shared.
    pub share: Share,
    /// The run is a function of it.
    pub seed: u64,
    /// Slots of all workers.
    pub slots: u64,
    /// Jobs whose results were stored, per second.
    pub jobs_per_second: f64,
    /// Part of the slots that were idle while jobs waited for nothing but a slot.
    pub idle_share: f64,
    /// Longest time for which one slot was idle while such jobs waited.
    pub longest_idle_ms: u64,
    /// Most jobs beyond the slots of a worker.
    pub over_committed: u64,
    /// Waits of single jobs of high priority, by partition.
    pub single: Vec<Option<Wait>>,
    /// Waits of jobs with a lane, by partition.
    pub laned: Vec<Option<Wait>>,
    /// Waits of members of groups, by partition.
    pub members: Vec<Option<Wait>>,
    /// Time until the first member of the burst started.
    pub burst_first_ms: Option<u64>,
    /// Time until all its members had started.
    pub burst_all_ms: Option<u64>,
    /// What the loss of a partition changed.
    pub loss: Option<Loss>,
    /// Memory of each server of the largest partition for its waiting jobs.
    pub server_bytes: u64,
    /// Memory of the leader of the largest partition.
    pub leader_bytes: u64,
    /// Time from the last beat of a leader to the first assignment of the next one.
    pub takeover_ms: u64,
}

/// From submission to the start of the run.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
pub struct Wait {
    /// Median.
    pub p50_ms: u64,
    /// 99th percentile.
    pub p99_ms: u64,
}

/// The loss of a partition.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Loss {
    /// Rate of the other partitions during the loss, divided by their rate before it.
    pub others: Option<f64>,
    /// The same for all partitions.
    pub all: f64,
    /// Time from the return of the servers to the first start.
    pub resumed_ms: Option<u64>,
}

/// A large group that arrives in one tick. Times are in ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Burst {
    pub(super) at: u64,
    pub(super) members: u64,
    pub(super) started: u64,
    pub(super) first: Option<u64>,
    pub(super) all: Option<u64>,
}

impl Outcome {
    /// Returns the longest waits of a class in any partition.
    #[must_use]
    pub fn worst(waits: &[Option<Wait>]) -> Option<Wait> {
        waits.iter().flatten().copied().max_by_key(|wait| (wait.p99_ms, wait.p50_ms))
    }
}
