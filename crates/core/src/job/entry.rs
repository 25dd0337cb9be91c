//! What stands beside a record while its job is open: an entry while unassigned, an assignment while assigned, and
//! in any case a turn if it has a lane.

use std::time::Duration;

use crate::budget::DEFAULT_LEASE;
use crate::job::{JobRecord, Placement, Priority, Progress};
use crate::name::{Kind, Lane};
use crate::time::WallMillis;
use crate::trace::TraceContext;

/// All that the leader needs to place a job, so that it never reads payloads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueueEntry {
    /// Which handler runs it.
    pub kind: Kind,
    /// The number that its next attempt will have.
    pub attempt: u32,
    /// The generation that this attempt belongs to.
    pub generation: u32,
    /// Where it may run.
    pub placement: Placement,
    /// Not to be queued earlier; meaningful under `/delayed` only.
    pub not_before: WallMillis,
    /// How urgent it is.
    pub priority: Priority,
    /// Since when it could run: its submission by the client's wall clock, or the time that it waited for. Orders those of
    /// one priority.
    pub submitted_at: WallMillis,
    /// Not to be started later.
    pub expires_at: Option<WallMillis>,
    /// Its lease, if it has one of its own.
    pub lease: Option<Duration>,
    /// The trace that its assignment is to be seen in, if somebody records it. The worker finds it in the record, so an
    /// assignment has none.
    pub trace: Option<TraceContext>,
}

impl QueueEntry {
    /// An ordinary one.
    #[must_use]
    pub fn new(kind: Kind, attempt: u32, generation: u32) -> Self {
        Self {
            kind,
            attempt,
            generation,
            placement: Placement::default(),
            not_before: WallMillis::default(),
            priority: Priority::default(),
            submitted_at: WallMillis::default(),
            expires_at: None,
            lease: None,
            trace: None,
        }
    }

    /// Its job's turn in its lane.
    #[must_use]
    pub fn turn(&self) -> Option<Turn> {
        let lane = self.placement.lane.clone()?;
        Some(Turn { lane, generation: self.generation })
    }
}

/// Names a job's turn in a lane, together with the job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Turn {
    /// Which lane.
    pub lane: Lane,
    /// The job's generation: a retry waits for another turn.
    pub generation: u32,
}

/// What is stored in a turn. Turns are ordered by the transaction that created them, and those of one transaction
/// by this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TurnIndex(pub u32);

/// A job in a worker's inbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Assignment {
    /// Which attempt this is.
    pub attempt: u32,
    /// The leader's epoch when it assigned the job.
    pub epoch: i32,
    /// Whether a client asked to cancel it.
    pub cancel: bool,
    /// When it was assigned, by the leader's wall clock: shown to people.
    pub assigned_at: WallMillis,
    /// From the last change of this znode until the leader takes the attempt for hung.
    pub lease: Duration,
    /// What the attempt says of itself, once it says something; until then the record has what the one before left.
    pub progress: Option<Progress>,
    /// Whether the attempt has sub-jobs.
    pub spawned: bool,
}

impl Assignment {
    /// A fresh one, with the ordinary lease.
    #[must_use]
    pub fn new(attempt: u32, epoch: i32, assigned_at: WallMillis) -> Self {
        Self {
            attempt,
            epoch,
            cancel: false,
            assigned_at,
            lease: DEFAULT_LEASE,
            progress: None,
            spawned: false,
        }
    }

    /// Whether it is of the attempt that the record has under way. One that is not is of what a leader knew of old, or of
    /// a strange hand, and nobody runs it.
    #[must_use]
    pub fn agrees(&self, record: &JobRecord) -> bool {
        self.attempt == record.attempts + 1
    }
}
