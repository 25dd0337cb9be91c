//! Events and effects of the assigner: its complete interface, used by the leader and by the simulator.

use std::collections::BTreeMap;

use super::capacity::Plan;
use super::pending::PendingJob;
use super::{Order, Settings, Spot};
use crate::job::Isolation;
use crate::name::{JobId, Kind, Lane, WorkerId};
use crate::outcome::Outcome;
use crate::placement::Fallback;
use crate::ready::{ReadyEntry, Waiting};
use crate::time::{Millis, WallMillis};
use crate::trace::TraceContext;
use crate::txn::Batch;
use crate::worker::WorkerInfo;

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// These jobs wait for a worker. An entry replaces a known one of the same job.
    Queued(Vec<Waiting>),
    /// This entry no longer exists, or is not considered any more.
    Unqueued(ReadyEntry),
    /// How many more jobs of these kinds wait, of which the assigner does not know.
    Beyond(Vec<(Kind, usize)>),
    /// A worker registered, or its registration changed.
    Worker(WorkerId, WorkerInfo, i32),
    /// A worker was removed.
    WorkerGone(WorkerId),
    /// A worker's inbox changed.
    InboxChanged(WorkerId),
    /// A worker's inbox was read; `None` if the session is disturbed.
    InboxRead(WorkerId, Option<InboxContents>),
    /// A worker's inbox was listed: the names in it; `None` if the session is disturbed.
    Inbox(WorkerId, Option<Vec<String>>),
    /// A worker's inbox cannot be read or listed, although the session is not disturbed.
    InboxRefused(WorkerId),
    /// The outcome of a batch.
    Committed(Batch<Job>, Outcome<()>),
    /// These entries were looked for: whether each exists. `None` means that the read failed.
    Resolved(Option<Vec<(ReadyEntry, bool)>>),
    /// A watch on the lanes was set: earlier changes are unknown.
    LanesWatched,
    /// A turn was deleted: its job is terminal.
    TurnGone(Lane, Spot),
    /// Lanes were listed; `None` if the list failed.
    LanesListed {
        /// The list's ticket.
        ticket: u64,
        /// The lanes, in the order of the request.
        lanes: Vec<Lane>,
        /// The turns of each lane.
        lists: Option<Vec<Vec<Spot>>>,
    },
    /// Turns were read; `None` if the read failed.
    TurnsRead {
        /// The read's ticket.
        ticket: u64,
        /// The turns, in the order of the request.
        turns: Vec<(Lane, Spot)>,
        /// The position of each turn; `None` is absent.
        found: Option<Vec<Option<Order>>>,
    },
    /// An attempt was revoked from this worker because it showed no sign of life.
    Hangs(WorkerId),
    /// Kinds may have been paused or resumed, or another placement strategy set.
    SettingsChanged,
    /// The settings; `None` if the read failed.
    Settings(Option<Settings>),
    /// Time has passed.
    Tick,
    /// [`RELIST_AFTER`](super::RELIST_AFTER) has passed: list every inbox that has changed, unless an
    /// assignment is on its way.
    Relist,
    /// The term is active again, or a sweep is due: resolve unknown outcomes and continue.
    Resume,
}

/// An inbox with its assignments.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct InboxContents {
    /// The names of its assignments.
    pub names: Vec<String>,
    /// Those that are isolated, and how.
    pub isolated: BTreeMap<JobId, Isolation>,
}

/// Output of the machine, carried out by the leader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Commit this batch and return it with its outcome.
    Commit(Batch<Job>),
    /// List a worker's inbox and read its assignments. No job is planned until it is answered.
    ReadInbox(WorkerId),
    /// List a worker's inbox. Must be sent after every batch that was emitted before it.
    ListInbox(WorkerId),
    /// Read whether these entries still exist.
    Resolve(Vec<ReadyEntry>),
    /// List the turns of these lanes in one request.
    ListLanes {
        /// Returned with the answer.
        ticket: u64,
        /// At most [`MAX_LANE_LISTS`](crate::budget::MAX_LANE_LISTS).
        lanes: Vec<Lane>,
    },
    /// Read these turns in one request.
    ReadTurns {
        /// Returned with the answer.
        ticket: u64,
        /// At most [`MAX_READ_BATCH`](crate::budget::MAX_READ_BATCH).
        turns: Vec<(Lane, Spot)>,
    },
    /// Read the settings.
    ReadSettings,
    /// Warn that the default strategy replaces the set one.
    Fallback(Fallback),
    /// End these jobs, with the time of their expiry. The assigner has forgotten them.
    Overdue(Vec<(JobId, WallMillis)>),
    /// Another leader has claimed the epoch.
    FencedOut,
    /// This job, or this segment, was assigned.
    Assigned {
        /// Its kind.
        kind: Kind,
        /// The number of its jobs: more than one for a segment.
        jobs: usize,
        /// When this leader learned of it.
        since: Millis,
    },
}

/// A job that is being assigned to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Job {
    pub(super) id: JobId,
    pub(super) waiting: Box<PendingJob>,
    pub(super) worker: WorkerId,
    pub(super) plan: Plan,
}

impl Job {
    /// Returns the job's id.
    #[must_use]
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// Returns the job's kind.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        self.waiting.class.kind()
    }

    /// Returns the number of the attempt.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.waiting.at.name.attempt
    }

    /// Returns the worker.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Returns the trace context of the job, if it has one.
    #[must_use]
    pub fn trace(&self) -> Option<&TraceContext> {
        self.waiting.trace.as_deref()
    }
}
