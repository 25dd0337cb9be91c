//! What the leader does with a segment in the inbox of a worker that is lost, or shows no sign of life.
//!
//! It extracts the open members into the same inbox. From then on they are jobs, which the recovery or the lease watcher treats
//! like any others.

use crate::job::Assignment;
use crate::machine::worker_registry::recovery::Stored;
use crate::name::WorkerId;
use crate::path;
use crate::segment::{Chunks, Members, Segment, SegmentId};
use crate::txn::Op;
use crate::txn::segment::{AssignedSegment, extract_assigned};

/// A segment in an inbox. The assignment is read before the names of the chunks: if a chunk is missing, the assignment was set after it
/// was read, and the extraction is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InboxSegment {
    /// The assignment.
    pub assignment: Stored<Assignment>,
    /// The segment.
    pub segment: Stored<Segment>,
    /// Its chunks.
    pub chunks: Chunks,
}

/// What to do with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is no longer in the inbox.
    Gone,
    /// All of its members have left, or it was removed: delete the assignment.
    Stale(Vec<Op>),
    /// It cannot be decoded, for this reason.
    Unreadable(String),
    /// Extract this number of members.
    Extract(usize, Vec<Op>),
}

pub(super) fn decide(worker: WorkerId, id: SegmentId, found: InboxSegment) -> Decision {
    let InboxSegment { assignment, segment, chunks } = found;
    let (assignment, version) = match assignment {
        Stored::Absent => return Decision::Gone,
        Stored::Unreadable(why) => return Decision::Unreadable(format!("assignment: {why}")),
        Stored::Value(assignment, version) => (assignment, version),
    };
    let stale = || {
        let path = path::assignment(worker, &id.job());
        Decision::Stale(vec![Op::Delete { path, version: Some(version) }])
    };
    let segment = match segment {
        Stored::Absent => return stale(),
        Stored::Unreadable(why) => return Decision::Unreadable(format!("segment: {why}")),
        Stored::Value(segment, _) if !segment.is_of(id) => {
            return Decision::Unreadable("segment: another number of members than its name says".to_owned());
        }
        Stored::Value(segment, _) => segment,
    };
    let open = chunks.open(id);
    if open.is_empty() {
        return stale();
    }
    let held = AssignedSegment { id, worker, assignment, version, open };
    let members = usize::try_from(open.len()).expect("at most 100 members");
    Decision::Extract(members, extract_assigned(&held, &segment, open, Members::NONE))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::segment::fixture::{id, segment};
    use crate::time::WallMillis;

    fn worker() -> WorkerId {
        WorkerId::new(Uuid::from_u128(7))
    }

    fn found(chunks: &[&str]) -> InboxSegment {
        InboxSegment {
            assignment: Stored::Value(Assignment::new(1, 5, WallMillis(9)), 3),
            segment: Stored::Value(segment(), 0),
            chunks: Chunks::of_names(chunks.iter().copied()),
        }
    }

    #[test]
    fn only_open_members_are_extracted() {
        let Decision::Extract(2, ops) = decide(worker(), id(), found(&["s1", "x8"])) else {
            panic!("two members are open")
        };
        assert_eq!(ops[0].version(), Some(3), "at the version that was read");
        assert_eq!(ops.len(), 2 + 2 * 2);
    }

    #[test]
    fn an_assignment_without_open_members_is_deleted_at_its_version() {
        for found in [found(&["s3", "xc"]), InboxSegment { segment: Stored::Absent, ..found(&[]) }] {
            let Decision::Stale(ops) = decide(worker(), id(), found) else { panic!("it is stale") };
            assert_eq!(ops.iter().map(Op::version).collect::<Vec<_>>(), [Some(3)]);
        }
    }

    #[test]
    fn a_segment_that_cannot_be_decoded_is_not_extracted() {
        let bad = || "newer".to_owned();
        let mut short = segment();
        short.members.pop();
        for (found, why) in [
            (InboxSegment { assignment: Stored::Unreadable(bad()), ..found(&[]) }, "assignment: newer"),
            (InboxSegment { segment: Stored::Unreadable(bad()), ..found(&[]) }, "segment: newer"),
            (
                InboxSegment { segment: Stored::Value(short, 0), ..found(&[]) },
                "segment: another number of members than its name says",
            ),
        ] {
            assert_eq!(decide(worker(), id(), found), Decision::Unreadable(why.to_owned()));
        }
        let gone = InboxSegment { assignment: Stored::Absent, ..found(&[]) };
        assert_eq!(decide(worker(), id(), gone), Decision::Gone);
    }
}
