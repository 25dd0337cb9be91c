//! Segments: up to a hundred jobs in one znode.
//!
//! A segment is a short form of records that are in the same state. Its *members* are jobs that were submitted together, with the
//! same kind, policy, placement and priority. The segment waits and is assigned like one job, under [the id `@{segment}`](SegmentId::job):
//! it has one entry under `/ready` and one assignment. Members that succeed leave their results in a [chunk](ChunkName) below it.
//!
//! | state of a member | stored as |
//! | --- | --- |
//! | waiting | the entry of the segment |
//! | assigned | the assignment of the segment, and no chunk that names the member |
//! | succeeded | a chunk `s` that names it |
//! | anything else | a chunk `x` that names it, and a record with its id |
//!
//! **Extraction.** Everything else that can happen to a job (a failure, a cancel, progress, a lost worker, a retry) happens to
//! records only. Before it does, the members are *extracted*: one transaction writes what a submission and an assignment without a
//! segment would have written, in the same state. So all other rules concern records alone, and a segment needs none.
//! A worker extracts the members that have not ended soon, so a segment is assigned only for a moment.
//!
//! Each transaction that moves members ([`crate::txn::segment`]) sets or deletes the znode that they leave, the entry or the
//! assignment, at the version that was read. A segment never returns to an entry, so no name occurs twice. So a member is in one place at
//! any time, and two moves of it cannot both commit (S22).

mod body;
mod chunk;
#[cfg(test)]
pub(crate) mod fixture;
mod id;
mod members;

pub use body::{Chunks, Head, Member, Segment};
pub use chunk::{ChunkEnd, ChunkName, Results};
pub use id::{MemberId, SegmentId};
pub use members::{MAX_PACKED, MAX_PACKED_BYTES, MIN_PACKED, Members};

use std::time::Duration;

use crate::name::JobId;

/// How many jobs wait or are assigned under this id: the members of a segment, or one. Members that have left an assigned segment
/// count until it is removed.
#[must_use]
pub fn jobs_under(id: &JobId) -> usize {
    SegmentId::of_job(id).map_or(1, |segment| segment.count().into())
}

/// How long a segment may be assigned before its worker extracts the members that have not ended. Shorter than anyone notices, and
/// long enough that short jobs never need a record.
pub const EXTRACT_AFTER: Duration = Duration::from_millis(250);

/// How long an assigned segment may show no sign of life. Then the leader extracts its members, whose leases start then.
pub const SEGMENT_LEASE: Duration = Duration::from_secs(2);
