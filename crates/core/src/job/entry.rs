//! What stands beside a record while its job is open: an entry while unassigned, an assignment while assigned.

use crate::job::Placement;
use crate::name::Kind;
use crate::time::WallMillis;

/// All that the leader needs to place a job, so that it never reads payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueEntry {
    /// Which handler runs it.
    pub kind: Kind,
    /// The number that its next attempt will have.
    pub attempt: u32,
    /// Where it may run.
    pub placement: Placement,
    /// Not to be queued earlier; meaningful under `/delayed` only.
    pub not_before: WallMillis,
}

/// A job in a worker's inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
