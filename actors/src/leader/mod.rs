//! The concerns of a leader: those that run only on the node that leads.

mod alarm;
pub mod assigner;
pub mod expirer;
pub mod group_joiner;
pub mod janitor;
pub mod job_watcher;
mod kinds;
pub mod lease_watcher;
pub mod promoter;
pub mod schedule_keeper;
pub mod wing;
pub mod worker_registry;

use std::time::Duration;

use bellwether_core::machine::worker_registry::recovery::Stored;
use bellwether_core::port::Node;
use bellwether_core::wire;

/// The period of the listings. Watches are hints: a hint that was lost, or a resume that came before the failure that it
/// answers, delays a job by at most this long.
pub const SWEEP: Duration = Duration::from_secs(15);

/// Tells the leader wing that another leader has claimed: a write of this term was rejected by its fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FencedOut;

/// Decodes a znode for recovery.
fn stored<T: wire::Stored>(node: Option<Node>) -> Stored<T> {
    match node {
        None => Stored::Absent,
        Some(node) => match wire::decode(&node.data) {
            Ok(value) => Stored::Value(value, node.version),
            Err(error) => Stored::Unreadable(error.to_string()),
        },
    }
}
