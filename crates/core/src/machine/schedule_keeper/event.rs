//! Events and effects of the schedule keeper.

use crate::name::{JobId, ScheduleId};
use crate::outcome::Outcome;
use crate::schedule::{Passed, ScheduleRecord};
use crate::time::WallMillis;
use crate::txn::Batch;

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

/// The state of the job of a schedule's last tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LastJob {
    /// Terminal at this version; `None` if its record was deleted.
    Over(Option<i32>),
    /// Open, or unreadable.
    Open,
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
    /// The jobs of last ticks were read.
    JobsRead(Vec<(Key, LastJob)>),
    /// A read of these jobs was not answered.
    JobsReadFailed(Vec<Key>),
    /// The create of a lane was answered, with any outcome.
    LaneMade(Key),
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
    /// Read the records of these jobs, at most the same number.
    ReadJobs(Vec<(Key, JobId)>),
    /// Create this schedule's lane.
    MakeLane(Key),
    /// Commit this batch and return it with its outcome.
    Commit(Batch<Key>),
    /// A tick has its job. For the metrics.
    Ticked(ScheduleId, WallMillis),
    /// Ticks were passed over. For the metrics and the log.
    PassedOver(ScheduleId, Passed),
    /// Another leader has claimed the epoch.
    FencedOut,
}
