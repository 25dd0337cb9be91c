//! Events and effects of the schedule keeper.

use crate::group::GroupRecord;
use crate::job::JobRecord;
use crate::name::{JobId, ScheduleId};
use crate::outcome::Outcome;
use crate::schedule::{ScheduleRecord, Skipped};
use crate::time::WallMillis;
use crate::txn::Batch;
use crate::wire::WireError;

/// Identifies one write of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The schedule.
    pub schedule: ScheduleId,
    /// The number of the write.
    pub(super) serial: u64,
}

/// A znode's incarnation and version: equal stamps mean equal content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The transaction that created it.
    pub created: i64,
    /// Its version.
    pub version: i32,
}

/// The result of a read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Found {
    /// Absent or unreadable; the reader has reported it.
    Nothing,
    /// Unchanged since the known stamp.
    Same,
    /// A new record.
    Record(Stamp, Box<ScheduleRecord>),
}

/// The state of the job on which a tick depends: of the last tick, or with the schedule's job id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PriorJob {
    /// Its record is absent.
    Absent,
    /// It and its sub-jobs have ended, with this version of the record.
    Over(i32, Box<JobRecord>),
    /// It or one of its sub-jobs is open.
    Open(Box<JobRecord>),
    /// Its record, or the group of its sub-jobs, cannot be read. It counts as open, because it may not have ended.
    Unreadable,
}

impl PriorJob {
    /// The state of a job from its record, and from the group of its sub-jobs, if it has any and the group exists. The
    /// record must be read before the group: a parent creates the group before it ends. A group that was removed was
    /// done.
    #[must_use]
    pub fn of(record: JobRecord, version: i32, sub_jobs: Option<Result<GroupRecord, WireError>>) -> Self {
        let open = match sub_jobs.transpose() {
            Err(_) => return Self::Unreadable,
            Ok(group) => group.is_some_and(|group| !group.is_done()),
        };
        if open || !record.is_terminal() {
            Self::Open(Box::new(record))
        } else {
            Self::Over(version, Box::new(record))
        }
    }
}

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The schedules were listed.
    Listed {
        /// The version of their parent, from a read that was sent before the list.
        removals: i32,
        /// Their names.
        schedules: Vec<ScheduleId>,
    },
    /// The list was not answered.
    ListFailed,
    /// A watch reported a new or changed schedule.
    Changed(ScheduleId),
    /// A watch reported that a schedule was deleted.
    Gone(ScheduleId),
    /// Schedules were read.
    Read(Vec<(ScheduleId, Found)>),
    /// A read of these schedules was not answered.
    ReadFailed(Vec<ScheduleId>),
    /// The jobs on which ticks depend were read.
    JobsRead(Vec<(Key, PriorJob)>),
    /// A read of these jobs was not answered.
    JobsReadFailed(Vec<Key>),
    /// The outcome of a batch.
    Committed(Batch<Key>, Outcome<()>),
    /// Time has passed.
    Tick,
    /// The session is usable (again): list everything.
    Resync,
}

/// Output of the machine, carried out by the leader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Read the parent of the schedules, then list it.
    List,
    /// Read these schedules, at most [`MAX_READ_BATCH`](crate::budget::MAX_READ_BATCH).
    Read(Vec<ScheduleId>),
    /// Read the records of these jobs, at most the same number, and then the groups of their sub-jobs.
    ReadJobs(Vec<(Key, JobId)>),
    /// Commit this batch and return it with its outcome.
    Commit(Batch<Key>),
    /// A tick has its job. For the metrics.
    Ticked(ScheduleId, WallMillis),
    /// Ticks were skipped. For the metrics and the log.
    Skipped(ScheduleId, Skipped),
    /// Another leader has claimed the epoch.
    FencedOut,
}
