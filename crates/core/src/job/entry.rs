//! The znodes that an open job has in addition to its record: an entry while it is unassigned, an assignment while
//! it is assigned, and a turn if it has a lane.

use std::time::Duration;

use crate::budget::DEFAULT_LEASE;
use crate::change::Change;
use crate::job::{Isolation, JobRecord, Placement, Priority, Progress};
use crate::name::{Kind, Lane};
use crate::time::WallMillis;
use crate::trace::TraceContext;

/// Everything that the leader needs to place a job without reading its payload.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueueEntry {
    /// The kind: the name of the handler that runs the job.
    pub kind: Kind,
    /// The number of its next attempt.
    pub attempt: u32,
    /// The generation of that attempt.
    pub generation: u32,
    /// The version of the record while the job waits and while that attempt runs.
    pub fencing_token: i32,
    /// Where it may run.
    pub placement: Placement,
    /// The earliest time at which it is queued; only used under `/delayed`.
    pub not_before: WallMillis,
    /// How urgent it is.
    pub priority: Priority,
    /// Since when the job could run: its submission by the client's wall clock, or the end of its delay. Orders jobs
    /// of the same priority.
    pub submitted_at: WallMillis,
    /// The part of its slot.
    pub part: u16,
    /// The latest time at which it may start.
    pub expires_at: Option<WallMillis>,
    /// The lease of the job, if it overrides the lease of its kind.
    pub lease: Option<Duration>,
    /// Which jobs may share its worker.
    pub isolation: Isolation,
    /// The trace of its assignment, if the trace is sampled. The worker reads the trace from the record, so the
    /// assignment does not contain it.
    pub trace: Option<TraceContext>,
}

impl QueueEntry {
    /// Creates an entry with default values.
    #[must_use]
    pub fn new(kind: Kind, attempt: u32, generation: u32) -> Self {
        Self {
            kind,
            attempt,
            generation,
            fencing_token: 0,
            placement: Placement::default(),
            not_before: WallMillis::default(),
            priority: Priority::default(),
            submitted_at: WallMillis::default(),
            part: 0,
            expires_at: None,
            lease: None,
            isolation: Isolation::Shared,
            trace: None,
        }
    }

    /// The name of the entry while the job is delayed.
    #[must_use]
    pub fn delay(&self) -> Delay {
        Delay { minute: self.not_before.minute(), generation: self.generation, attempt: self.attempt }
    }

    /// Its job's turn in its lane.
    #[must_use]
    pub fn turn(&self) -> Option<Turn> {
        let lane = self.placement.lane.clone()?;
        Some(Turn { lane, generation: self.generation })
    }
}

/// Names a delayed entry, together with the job's id. A name denotes one attempt of one generation, so a late promotion
/// of an earlier attempt does not find the entry of a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Delay {
    /// The minute in which the job is due.
    pub minute: u64,
    /// The generation of the attempt that waits.
    pub generation: u32,
    /// The number of that attempt.
    pub attempt: u32,
}

/// Names a job's turn in a lane, together with the job's id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Turn {
    /// The lane.
    pub lane: Lane,
    /// The job's generation: each retry gets a new turn.
    pub generation: u32,
}

/// The data of a turn. Turns are ordered by the transaction that created them, and turns of one transaction by this
/// index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TurnIndex(pub u32);

/// Identifies an attempt of a job. The number alone does not: each generation counts its attempts from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptKey {
    /// The generation of the attempt.
    pub generation: u32,
    /// The number of the attempt.
    pub number: u32,
    /// The version of the record while the attempt runs.
    pub fencing_token: i32,
}

/// A job in a worker's inbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Assignment {
    /// The number of the attempt.
    pub attempt: u32,
    /// The generation of the attempt.
    pub generation: u32,
    /// The version of the record while the attempt runs.
    pub fencing_token: i32,
    /// The leader's epoch when it assigned the job.
    pub epoch: i32,
    /// Whether a client requested a cancel.
    pub cancel: bool,
    /// When it was assigned, by the leader's wall clock. Only for display.
    pub assigned_at: WallMillis,
    /// The time after the last change of this znode after which the leader considers the attempt hung.
    pub lease: Duration,
    /// The progress that the attempt reported. `None` until it reports any; the record then has that of earlier
    /// attempts.
    pub progress: Option<Progress>,
    /// Whether the attempt has sub-jobs.
    pub spawned: bool,
    /// Which jobs may share the worker. A new leader reads it.
    pub isolation: Isolation,
    /// The token that the attempt had before it was moved here from another worker: see [`takeover`](crate::takeover).
    pub moved_from: Option<i32>,
    /// Who requested the cancel, if a client did.
    pub cancelled: Option<Change>,
}

impl Assignment {
    /// Creates an assignment with the default lease, for an attempt of a job's first generation: each attempt before it has
    /// set the record once.
    #[must_use]
    pub fn new(attempt: u32, epoch: i32, assigned_at: WallMillis) -> Self {
        Self {
            attempt,
            generation: 1,
            fencing_token: attempt.saturating_sub(1).cast_signed(),
            epoch,
            cancel: false,
            assigned_at,
            lease: DEFAULT_LEASE,
            progress: None,
            spawned: false,
            isolation: Isolation::Shared,
            moved_from: None,
            cancelled: None,
        }
    }

    /// Whether it belongs to the attempt that the record has under way, with its isolation. Any other assignment was made
    /// from stale knowledge of a leader or by a manual change, and is not run. The generation does not matter: an assignment
    /// that was made from the entry of the generation before runs the attempt of the same number, as the record states it.
    #[must_use]
    pub fn agrees(&self, record: &JobRecord) -> bool {
        self.attempt == record.attempts + 1 && self.isolation == record.isolation()
    }

    /// Identifies its attempt.
    #[must_use]
    pub fn key(&self) -> AttemptKey {
        let Self { generation, attempt, fencing_token, .. } = *self;
        AttemptKey { generation, number: attempt, fencing_token }
    }
}
