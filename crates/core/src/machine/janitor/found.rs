//! What the janitor finds in ZooKeeper: two shelves of buckets, and the records on them as far as it needs them.
//! Bytes that this build cannot read are never anybody's to remove.

use crate::group::GroupRecord;
use crate::job::{JobRecord, JobState, Verdict};
use crate::name::{GroupId, JobId};
use crate::path::Bucket;
use crate::time::WallMillis;
use crate::wire;

/// A record that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Found {
    /// It is not there.
    Absent,
    /// It cannot be read, or its job is not over: nothing to do.
    Left,
    /// Its job is over.
    Over {
        /// The version that was read.
        version: i32,
        /// How it ended.
        verdict: Verdict,
        /// When, by the clock of whoever ended it.
        at: WallMillis,
        /// When, by ZooKeeper's clock.
        modified: WallMillis,
        /// Whether it goes with a group: its own, or that of its sub-jobs.
        grouped: bool,
        /// Whether its group counts its end. One that was retried after its group went on is for itself.
        counted: bool,
        /// The group of its sub-jobs, if it has any.
        sub_jobs: Option<GroupId>,
    },
}

/// A group that was read: what it says, at which version, and when ZooKeeper's clock was when it was set. `None` if it
/// is not there, or cannot be read.
pub type FoundGroup = Option<(GroupRecord, i32, WallMillis)>;

/// What there are buckets of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shelf {
    /// Records of jobs.
    Jobs,
    /// Groups.
    Groups,
}

impl Shelf {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Jobs => Self::Groups,
            Self::Groups => Self::Jobs,
        }
    }

    /// The znode of one of its buckets.
    #[must_use]
    pub fn path(self, bucket: Bucket) -> String {
        match self {
            Self::Jobs => bucket.jobs(),
            Self::Groups => bucket.groups(),
        }
    }
}

impl Found {
    /// From a znode's data, version and time of modification. Bytes that this build cannot read stay: a newer one may,
    /// or an operator may repair them.
    #[must_use]
    pub fn of(job: &JobId, data: &[u8], version: i32, modified: WallMillis) -> Self {
        let Ok(record) = wire::decode::<JobRecord>(data) else { return Self::Left };
        let grouped = record.membership.is_some() || record.spawned;
        let counted = record.membership.as_ref().is_some_and(|part| part.counted);
        let sub_jobs = record.spawned.then(|| GroupId::of_sub_jobs(job, &record));
        match record.state {
            JobState::Terminal { verdict, at } => {
                Self::Over { version, verdict, at, modified, grouped, counted, sub_jobs }
            }
            JobState::Open { .. } => Self::Left,
        }
    }
}
