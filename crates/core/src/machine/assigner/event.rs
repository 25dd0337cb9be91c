//! What the assigner hears and what it wants done: the whole of what ties it to a leader, and to a simulated one.

use std::collections::BTreeSet;

use super::pending::PendingJob;
use super::{Order, Spot};
use crate::job::QueueEntry;
use crate::name::{JobId, Kind, Lane, WorkerId};
use crate::outcome::Outcome;
use crate::time::{Millis, WallMillis};
use crate::trace::TraceContext;
use crate::txn::Batch;
use crate::worker::WorkerInfo;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// These wait for a worker; one that waits already has this entry now.
    Queued(Vec<(JobId, QueueEntry)>),
    /// This one waits no longer.
    Unqueued(JobId),
    /// A worker is there, or its registration changed.
    Worker(WorkerId, WorkerInfo, i32),
    /// A worker is gone.
    WorkerGone(WorkerId),
    /// Something changed in a worker's inbox.
    InboxChanged(WorkerId),
    /// A worker's inbox was listed; `None` when it could not be.
    Inbox(WorkerId, Option<usize>),
    /// A batch was answered.
    Committed(Batch<Job>, Outcome<()>),
    /// Entries of jobs in limbo were read: as they are in the queue now, or in it no more; `None` when they
    /// could not be.
    Resolved(Option<Vec<(JobId, Option<QueueEntry>)>>),
    /// A watch on the lanes was set: what went and came before is unknown.
    LanesWatched,
    /// A turn is gone: its job is over.
    TurnGone(Lane, Spot),
    /// Lanes were listed; `None` when they could not be.
    LanesListed {
        /// The list's ticket.
        ticket: u64,
        /// Which, in order.
        lanes: Vec<Lane>,
        /// The turns of each.
        lists: Option<Vec<Vec<Spot>>>,
    },
    /// Turns were read; `None` when they could not be.
    TurnsRead {
        /// The read's ticket.
        ticket: u64,
        /// Which, in order.
        turns: Vec<(Lane, Spot)>,
        /// Where each stands; `None` is absent.
        found: Option<Vec<Option<Order>>>,
    },
    /// An attempt was taken from this worker because it gave no sign of life.
    Hangs(WorkerId),
    /// Some kinds may have been paused or resumed.
    PausesChanged,
    /// These kinds are paused, and no others; `None` when they could not be listed.
    Paused(Option<BTreeSet<Kind>>),
    /// Time has passed.
    Tick,
    /// The session is disturbed: plan nothing.
    Pause,
    /// The session is back, in the same term: resolve what is unknown, go on.
    Resume,
}

/// What the leader shall do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Commit this and hand it back with its outcome.
    Commit(Batch<Job>),
    /// List a worker's inbox and watch it. Must be sent after every batch that was given back before it.
    ListInbox(WorkerId),
    /// Read whether these are still in the queue.
    Resolve(Vec<JobId>),
    /// List the turns of these lanes in one request.
    ListLanes {
        /// To be handed back with the answer.
        ticket: u64,
        /// At most [`MAX_LANE_LISTS`](crate::budget::MAX_LANE_LISTS).
        lanes: Vec<Lane>,
    },
    /// Read these turns in one request.
    ReadTurns {
        /// To be handed back with the answer.
        ticket: u64,
        /// At most [`MAX_READ_BATCH`](crate::budget::MAX_READ_BATCH).
        turns: Vec<(Lane, Spot)>,
    },
    /// List the paused kinds.
    ListPauses,
    /// End these, which expired then. They are known here no more.
    Overdue(Vec<(JobId, WallMillis)>),
    /// Another leader has claimed.
    FencedOut,
    /// This job was assigned.
    Assigned {
        /// Its kind.
        kind: Kind,
        /// Since when this leader knew of it.
        since: Millis,
    },
}

/// A job on its way to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Job {
    pub(super) id: JobId,
    pub(super) waiting: Box<PendingJob>,
    pub(super) worker: WorkerId,
}

impl Job {
    /// Which.
    #[must_use]
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        self.waiting.class.kind()
    }

    /// Which attempt it goes there for.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.waiting.attempt
    }

    /// Where it goes.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// The trace that this is to be seen in.
    #[must_use]
    pub fn trace(&self) -> Option<&TraceContext> {
        self.waiting.trace.as_deref()
    }
}
