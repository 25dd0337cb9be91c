//! The immutable data of a segment.

use uuid::Uuid;

use super::{MemberId, SegmentId};
use crate::job::{JobRecord, Payload, Placement, Policy, Priority};
use crate::name::{JobId, Kind};
use crate::time::WallMillis;
use crate::trace::TraceContext;

/// What all members of a segment share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Head {
    /// The kind.
    pub kind: Kind,
    /// The limits on attempts, waits and run time.
    pub policy: Policy,
    /// Where they may run. Members have no lane.
    pub placement: Placement,
    /// How urgent they are.
    pub priority: Priority,
    /// When they were submitted, by the client's wall clock.
    pub submitted_at: WallMillis,
    /// Chosen by the submitting call.
    pub token: Uuid,
}

/// One job of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// The input of the handler.
    pub payload: Payload,
    /// Its id, if the submission chose one.
    pub name: Option<JobId>,
    /// The latest time at which it may start, by the worker's clock.
    pub expires_at: Option<WallMillis>,
    /// The trace in which it was submitted.
    pub trace: Option<TraceContext>,
}

/// The jobs of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The values that all members share.
    pub head: Head,
    /// At most [`MAX_PACKED`](super::MAX_PACKED).
    pub members: Vec<Member>,
}

impl Segment {
    /// The id of a member as a job; `None` for a number that it does not have.
    #[must_use]
    pub fn job(&self, segment: SegmentId, number: u8) -> Option<JobId> {
        let member = self.members.get(usize::from(number))?;
        Some(member.name.clone().unwrap_or_else(|| MemberId { segment, number }.job()))
    }

    /// The record of a member that is extracted, before any attempt; `None` for a number that it does not have.
    #[must_use]
    pub fn record(&self, number: u8) -> Option<JobRecord> {
        let member = self.members.get(usize::from(number))?;
        let Head { kind, policy, placement, priority, submitted_at, token } = self.head.clone();
        let record = JobRecord::new(kind, member.payload.clone(), token, submitted_at);
        let (expires_at, trace) = (member.expires_at, member.trace);
        Some(JobRecord { policy, placement, priority, expires_at, trace, ..record })
    }
}

/// The znode of a member with a chosen id, where its record would be, until the member is extracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pointer(pub MemberId);
