//! The znodes of an open job other than its record.

use serde::{Deserialize, Serialize};

use super::change::ChangeV1;
use super::job::{PlacementV1, ProgressV1};
use super::parts::{TraceV1, count, lease, value};
use crate::job::{Assignment, Isolation, Priority, QueueEntry, TurnIndex};
use crate::name::Kind;
use crate::time::{WallMillis, as_millis};
use crate::wire::WireError;

#[derive(Serialize, Deserialize)]
pub struct QueueEntryV1 {
    kind: String,
    attempt: u32,
    generation: u32,
    fencing_token: i32,
    placement: PlacementV1,
    not_before: u64,
    priority: u8,
    submitted_at: u64,
    part: u16,
    expires_at: Option<u64>,
    lease_ms: Option<u64>,
    isolation: IsolationV1,
    trace: Option<TraceV1>,
}

stored_enum!(IsolationV1 = Isolation { Shared, Apart, Alone });

#[derive(Serialize, Deserialize)]
pub struct AssignmentV1 {
    attempt: u32,
    generation: u32,
    fencing_token: i32,
    epoch: i32,
    cancel: bool,
    assigned_at: u64,
    lease_ms: u64,
    progress: Option<ProgressV1>,
    spawned: bool,
    isolation: IsolationV1,
    moved_from: Option<i32>,
    cancelled: Option<ChangeV1>,
}

#[derive(Serialize, Deserialize)]
pub struct TurnV1 {
    index: u32,
}

impl From<&QueueEntry> for QueueEntryV1 {
    fn from(entry: &QueueEntry) -> Self {
        Self {
            kind: entry.kind.to_string(),
            attempt: entry.attempt,
            generation: entry.generation,
            fencing_token: entry.fencing_token,
            placement: (&entry.placement).into(),
            not_before: entry.not_before.0,
            priority: entry.priority.get(),
            submitted_at: entry.submitted_at.0,
            part: entry.part,
            expires_at: entry.expires_at.map(|at| at.0),
            lease_ms: entry.lease.map(as_millis),
            isolation: entry.isolation.into(),
            trace: entry.trace.map(Into::into),
        }
    }
}

impl TryFrom<QueueEntryV1> for QueueEntry {
    type Error = WireError;
    fn try_from(stored: QueueEntryV1) -> Result<Self, WireError> {
        Ok(Self {
            kind: Kind::new(stored.kind)?,
            attempt: count("attempt", stored.attempt)?,
            generation: count("generation", stored.generation)?,
            fencing_token: stored.fencing_token,
            placement: stored.placement.try_into()?,
            not_before: WallMillis(stored.not_before),
            priority: Priority::new(stored.priority).map_err(value)?,
            submitted_at: WallMillis(stored.submitted_at),
            part: stored.part,
            expires_at: stored.expires_at.map(WallMillis),
            lease: stored.lease_ms.map(lease).transpose()?,
            isolation: stored.isolation.into(),
            trace: stored.trace.map(TryInto::try_into).transpose()?,
        })
    }
}

impl From<&Assignment> for AssignmentV1 {
    fn from(assignment: &Assignment) -> Self {
        Self {
            attempt: assignment.attempt,
            generation: assignment.generation,
            fencing_token: assignment.fencing_token,
            epoch: assignment.epoch,
            cancel: assignment.cancel,
            assigned_at: assignment.assigned_at.0,
            lease_ms: as_millis(assignment.lease),
            progress: assignment.progress.as_ref().map(Into::into),
            spawned: assignment.spawned,
            isolation: assignment.isolation.into(),
            moved_from: assignment.moved_from,
            cancelled: assignment.cancelled.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<AssignmentV1> for Assignment {
    type Error = WireError;
    fn try_from(stored: AssignmentV1) -> Result<Self, WireError> {
        Ok(Self {
            attempt: count("attempt", stored.attempt)?,
            generation: count("generation", stored.generation)?,
            fencing_token: stored.fencing_token,
            epoch: stored.epoch,
            cancel: stored.cancel,
            assigned_at: WallMillis(stored.assigned_at),
            lease: lease(stored.lease_ms)?,
            progress: stored.progress.map(TryInto::try_into).transpose()?,
            spawned: stored.spawned,
            isolation: stored.isolation.into(),
            moved_from: stored.moved_from,
            cancelled: stored.cancelled.map(TryInto::try_into).transpose()?,
        })
    }
}

impl From<&TurnIndex> for TurnV1 {
    fn from(turn: &TurnIndex) -> Self {
        Self { index: turn.0 }
    }
}

impl TryFrom<TurnV1> for TurnIndex {
    type Error = WireError;
    fn try_from(stored: TurnV1) -> Result<Self, WireError> {
        Ok(Self(stored.index))
    }
}
