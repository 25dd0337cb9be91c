//! The concerns that run only on the leader.

mod alarm;
pub mod assigner;
pub mod expirer;
pub mod group_joiner;
pub mod janitor;
pub mod job_watcher;
mod kind_metrics;
pub mod lease_watcher;
pub mod promoter;
mod queue_depth;
pub mod schedule_keeper;
pub mod wing;
pub mod worker_registry;

use std::time::Duration;

use bellwether_core::machine::worker_registry::recovery::Stored;
use bellwether_core::port::Node;
use bellwether_core::wire;

/// The period of the listings. Watches are hints: a lost hint, or a resume that arrives before the failure that it
/// answers, delays a job by at most this time.
pub const SWEEP: Duration = Duration::from_secs(15);

/// Informs the leader wing that another leader has claimed: the fence rejected a write of this term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FencedOut;

/// Decodes a znode for the recovery.
fn stored<T: wire::Stored>(node: Option<Node>) -> Stored<T> {
    match node {
        None => Stored::Absent,
        Some(node) => match wire::decode(&node.data) {
            Ok(value) => Stored::Value(value, node.version),
            Err(error) => Stored::Unreadable(error.to_string()),
        },
    }
}
