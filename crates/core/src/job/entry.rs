//! What stands beside a record while its job is open: an entry while unassigned, an assignment while assigned, and
//! in any case a turn if it has a lane.

use crate::job::Placement;
use crate::name::{Kind, Lane};
use crate::time::WallMillis;

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
}

impl QueueEntry {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Assignment {
    /// Which attempt this is.
    pub attempt: u32,
    /// The leader's epoch when it assigned the job.
    pub epoch: i32,
    /// Whether a client asked to cancel it.
    pub cancel: bool,
    /// When it was assigned, by the leader's wall clock: shown to people.
    pub assigned_at: WallMillis,
}
