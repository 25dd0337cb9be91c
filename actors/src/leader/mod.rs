//! The concerns of a leader: those that run only on the node that leads.

mod alarm;
pub mod assigner;
pub mod expirer;
pub mod group_joiner;
pub mod job_watcher;
pub mod promoter;
pub mod wing;

use std::time::Duration;

/// The period of the listings. Watches are hints: a hint that was lost, or a resume that came before the failure that it
/// answers, delays a job by at most this long.
pub const SWEEP: Duration = Duration::from_secs(15);

/// Tells the leader wing that another leader has claimed: a write of this term was rejected by its fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FencedOut;
