//! The subjects of the operations of a transaction.
//!
//! A rejection names an operation by its position. The caller looks up its [`Subject`], so that no rule depends on the
//! order in which a transaction was built.

use super::Op;
use crate::name::WorkerId;
use crate::path::{self, GroupPlace, Place};

/// The kind of znode that an operation reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The epoch: the check at the start of every transaction of a leader.
    Epoch,
    /// A counter of removals: of schedules, or of records in a bucket.
    Removals,
    /// A worker's registration.
    Worker(WorkerId),
    /// A job's record.
    Record,
    /// A job's entry, ready or delayed.
    Entry,
    /// A job's assignment.
    Assignment,
    /// A job's turn in its lane.
    Turn,
    /// The record of a group.
    Group,
    /// A member's place in its group.
    Member,
    /// The mark of a job's end in a group.
    Mark,
    /// Any other znode.
    Other,
}

impl Op {
    /// The subject of this operation.
    #[doc(hidden)]
    #[must_use]
    pub fn subject(&self) -> Subject {
        let path = self.path();
        match path::parse(path) {
            Place::Ready(_) | Place::DelayedEntry(..) => Subject::Entry,
            Place::Worker(worker) => Subject::Worker(worker),
            Place::Assignment(..) => Subject::Assignment,
            Place::Turn(..) => Subject::Turn,
            Place::Group(GroupPlace::Record(_)) => Subject::Group,
            Place::Group(GroupPlace::Member(..)) => Subject::Member,
            Place::Group(GroupPlace::Mark(..)) => Subject::Mark,
            Place::Other if path == path::EPOCH => Subject::Epoch,
            Place::Other if path == path::SCHEDULES => Subject::Removals,
            Place::Other if path::below_parent(path) == (path::JOBS, 1) => Subject::Removals,
            Place::Other if path::below_parent(path) == (path::JOBS, 3) => Subject::Record,
            Place::ReadyClass(_)
            | Place::ReadySlot(..)
            | Place::Inbox(_)
            | Place::Schedule(_)
            | Place::SegmentChunk(..)
            | Place::Other => Subject::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::group::{End, Mark};
    use crate::job::{Delay, Turn};
    use crate::name::{GroupId, JobId, Lane, ScheduleId};
    use crate::path::Bucket;
    use crate::txn;

    #[test]
    fn each_path_has_its_subject() {
        let (job, worker) = (JobId::new("a").unwrap(), WorkerId::new(Uuid::from_u128(9)));
        let turn = Turn { lane: Lane::new("l").unwrap(), generation: 2 };
        let group = GroupId::new("p:x@1").unwrap();
        for (path, subject) in [
            (path::record(&job), Subject::Record),
            ("/ready/0/sum/29/000075a+1.1".to_owned(), Subject::Entry),
            ("/ready/0/sum/29".to_owned(), Subject::Other),
            (path::delayed_entry(Delay { minute: 29, generation: 1, attempt: 2 }, &job), Subject::Entry),
            (path::assignment(worker, &job), Subject::Assignment),
            (path::worker(worker), Subject::Worker(worker)),
            (path::turn(&turn, &job), Subject::Turn),
            (path::group(&group), Subject::Group),
            (path::place(&group, 7), Subject::Member),
            (path::mark(&group, Mark::Member(7), End::Dead), Subject::Mark),
            (path::inbox(worker), Subject::Other),
            (path::schedule(&ScheduleId::new("s").unwrap()), Subject::Other),
            (path::quarantine(&job), Subject::Other),
        ] {
            assert_eq!(Op::delete(path.clone()).subject(), subject, "{path}");
        }
        assert_eq!(txn::fence(3).subject(), Subject::Epoch);
        assert_eq!(txn::check_removals(3).subject(), Subject::Removals);
        assert_eq!(txn::count_removal(Bucket::of(&job), 3, None).subject(), Subject::Removals);
    }
}
