//! What the machine hears, and what it asks for.

use crate::name::{JobId, ScheduleId};
use crate::outcome::Outcome;
use crate::schedule::{Passed, ScheduleRecord};
use crate::time::WallMillis;
use crate::txn::Batch;

/// Tells the writes of one schedule apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Which schedule.
    pub schedule: ScheduleId,
    /// Which of its writes.
    pub(super) serial: u64,
}

/// A znode's incarnation and version: what was read at one is what is read at it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The transaction that created it.
    pub created: i64,
    /// Its version.
    pub version: i32,
}

/// What a read found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Found {
    /// It is gone, or cannot be read: whoever read it told so.
    Nothing,
    /// What is known.
    Same,
    /// This.
    Record(Stamp, Box<ScheduleRecord>),
}

/// How the job of a schedule's last tick is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LastJob {
    /// Over, at this version; or gone.
    Over(Option<i32>),
    /// Open, or not to be read.
    Open,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The schedules were listed.
    Listed {
        /// The version of their parent, from a read that was asked for before the list.
        removals: i32,
        /// Their names.
        schedules: Vec<ScheduleId>,
    },
    /// They were not.
    ListFailed,
    /// A watch reported a new or changed schedule.
    Changed(ScheduleId),
    /// A watch reported that one is gone.
    Gone(ScheduleId),
    /// Schedules were read.
    Read(Vec<(ScheduleId, Found)>),
    /// A read of these was not answered.
    ReadFailed(Vec<ScheduleId>),
    /// The jobs of last ticks were read.
    JobsRead(Vec<(Key, LastJob)>),
    /// They were not.
    JobsReadFailed(Vec<Key>),
    /// A lane was made, or is there, or it is not known.
    LaneMade(Key),
    /// A batch was answered.
    Committed(Batch<Key>, Outcome<()>),
    /// Time has passed.
    Tick,
    /// The session serves (again): list everything anew.
    Resync,
}

/// What the leader shall do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Read the parent of the schedules, then list it.
    List,
    /// Read these schedules, at most [`MAX_READ_BATCH`](crate::budget::MAX_READ_BATCH).
    Read(Vec<ScheduleId>),
    /// Read the records of these jobs, as many at most.
    ReadJobs(Vec<(Key, JobId)>),
    /// Make this schedule's lane.
    MakeLane(Key),
    /// Commit this and hand it back with its outcome.
    Commit(Batch<Key>),
    /// A tick has its job. To be counted.
    Ticked(ScheduleId, WallMillis),
    /// Ticks got none. To be counted, and told.
    PassedOver(ScheduleId, Passed),
    /// Another leader has claimed.
    FencedOut,
}
