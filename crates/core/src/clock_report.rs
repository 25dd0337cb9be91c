//! What a process reports about a wrong wall clock.
//!
//! Each process compares its wall clock with ZooKeeper's ([`crate::clock`]). While the difference is longer than
//! [`TOLERANCE`], the process keeps an ephemeral znode with a [`ClockReport`], so that an operator sees every wrong clock in
//! one place. Nothing is stored about right clocks, and no decision reads the reports.

use std::time::Duration;

use crate::name::NodeId;

/// The longest difference that is not reported. NTP keeps clocks within a second of each other. It is shorter than the
/// difference with which a node still leads ([`MAX_DIFFERENCE`](crate::clock::MAX_DIFFERENCE)).
pub const TOLERANCE: Duration = Duration::from_secs(5);

/// The longest host name that is stored. The kernel's limit is 64 bytes.
pub const MAX_HOST_BYTES: usize = 255;

/// The process that reports; only for display.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    /// The node; `None` for a client.
    pub node: Option<NodeId>,
    /// The host that it runs on.
    pub host: String,
}

/// The report of a process, in its ephemeral znode below `/clocks`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClockReport {
    /// The process.
    pub process: Process,
    /// By how many seconds its wall clock is ahead of ZooKeeper's; negative if it is behind.
    pub ahead: i64,
}

/// Returns the seconds that a process reports for this difference in milliseconds; `None` within the tolerance.
#[must_use]
pub fn seconds(ahead_ms: i64) -> Option<i64> {
    (Duration::from_millis(ahead_ms.unsigned_abs()) > TOLERANCE).then_some(ahead_ms / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_within_the_tolerance_is_not_reported() {
        let reported = [0, 5_000, -5_000, 5_001, -5_001, 7_999, -31_000, i64::MIN].map(seconds);
        let expected = [None, None, None, Some(5), Some(-5), Some(7), Some(-31), Some(i64::MIN / 1_000)];
        assert_eq!(reported, expected);
    }
}
