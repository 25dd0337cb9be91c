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

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::machine::inbox_segment::InboxSegment;
use bellwether_core::machine::worker_registry::recovery::Stored;
use bellwether_core::name::WorkerId;
use bellwether_core::port::{Node, ReadResult, Requests};
use bellwether_core::segment::{Chunks, SegmentId};
use bellwether_core::{path, wire};

/// The period of the listings. Watches are hints: a lost hint, or a resume that arrives before the failure that it
/// answers, delays a job by at most this time.
pub const SWEEP: Duration = Duration::from_secs(15);

/// Informs the leader wing that another leader has claimed: the fence rejected a write of this term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FencedOut;

/// Reads a segment in an inbox, and the transaction that created its assignment; 0 if that is absent.
async fn read_segment(
    zk: Arc<dyn Requests>,
    worker: WorkerId,
    id: SegmentId,
) -> ReadResult<(i64, InboxSegment)> {
    let paths = vec![path::assignment(worker, &id.job()), path::segment(id)];
    let mut nodes = zk.get_many(paths).await?.into_iter();
    let (assignment, segment) = (nodes.next().flatten(), nodes.next().flatten());
    let names = zk.children(path::segment(id)).await?.unwrap_or_default();
    let created = assignment.as_ref().map_or(0, |node| node.created);
    let chunks = Chunks::of_names(names.iter().map(String::as_str));
    Ok((created, InboxSegment { assignment: stored(assignment), segment: stored(segment), chunks }))
}

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
