//! The data of a segment, which never changes.

use uuid::Uuid;

use super::{ChunkEnd, ChunkName, MemberId, Members, Results, SegmentId};
use crate::job::{Assignment, Attempt, Ending, JobRecord, Payload, Placement, Policy, Priority, QueueEntry};
use crate::name::{JobId, Kind};
use crate::ready::ReadyEntry;
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
    /// The part of the slots in which their entries are.
    pub part: u16,
    /// Chosen by the submitting call.
    pub token: Uuid,
}

/// One job of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// The input of the handler.
    pub payload: Payload,
    /// The trace in which it was submitted.
    pub trace: Option<TraceContext>,
}

/// The jobs of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Segment {
    /// What all members share.
    pub head: Head,
    /// At most [`MAX_PACKED`](super::MAX_PACKED).
    pub members: Vec<Member>,
}

impl Segment {
    /// The record of a member as a submission without a segment would have written it; `None` for a number that the segment does not
    /// have.
    #[must_use]
    pub fn record(&self, number: u8) -> Option<JobRecord> {
        let Member { payload, trace } = self.members.get(usize::from(number))?.clone();
        let Head { kind, policy, placement, priority, submitted_at, part, token } = self.head.clone();
        let record = JobRecord::new(kind, payload, token, submitted_at);
        Some(JobRecord { policy, placement, priority, part, trace, ..record })
    }

    /// The record of a member that has succeeded; `None` if these are not its results.
    #[must_use]
    pub fn succeeded(&self, number: u8, results: &Results) -> Option<JobRecord> {
        let (_, at, result) = results.results.iter().find(|(of, _, _)| *of == number)?;
        let record = self.record(number)?;
        let attempt = Attempt { number: 1, worker: results.worker };
        let record = record.carry(&Assignment::new(1, 0, results.assigned_at));
        Some(record.close(attempt, Ending::Succeeded(result.clone()), *at, 0).0)
    }

    /// What the entry of the segment says: what all members share.
    #[must_use]
    pub fn entry(&self) -> QueueEntry {
        let Head { kind, policy, placement, priority, submitted_at, part, token: _ } = &self.head;
        QueueEntry {
            placement: placement.clone(),
            priority: *priority,
            submitted_at: *submitted_at,
            part: *part,
            lease: policy.lease,
            ..QueueEntry::new(kind.clone(), 1, 1)
        }
    }

    /// Where the entry of the segment is while it waits.
    #[must_use]
    pub fn waits_at(&self, id: SegmentId) -> ReadyEntry {
        ReadyEntry::of(&id.job(), &self.entry())
    }

    /// Whether it has as many members as its name says.
    #[must_use]
    pub fn is_of(&self, id: SegmentId) -> bool {
        self.members.len() == usize::from(id.count())
    }

    /// The ids and records of some members, before their first attempt.
    pub(crate) fn records(
        &self,
        id: SegmentId,
        members: Members,
    ) -> impl Iterator<Item = (JobId, JobRecord)> {
        members
            .iter()
            .filter_map(move |number| Some((MemberId { segment: id, number }.job(), self.record(number)?)))
    }
}

/// Where the members of a segment are, by the names of its chunks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Chunks {
    names: Vec<ChunkName>,
}

impl FromIterator<ChunkName> for Chunks {
    fn from_iter<I: IntoIterator<Item = ChunkName>>(names: I) -> Self {
        Self { names: names.into_iter().collect() }
    }
}

impl Chunks {
    /// Parses the names of a segment's children. Foreign names are ignored.
    #[must_use]
    pub fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        names.into_iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// The names.
    #[must_use]
    pub fn names(&self) -> &[ChunkName] {
        &self.names
    }

    /// The members that left the segment in this way.
    #[must_use]
    pub fn members(&self, end: ChunkEnd) -> Members {
        let names = self.names.iter().filter(|name| name.end == end);
        names.fold(Members::NONE, |all, name| all.with(name.members))
    }

    /// The members that wait or are assigned.
    #[must_use]
    pub fn open(&self, id: SegmentId) -> Members {
        id.members().without(self.members(ChunkEnd::Succeeded)).without(self.members(ChunkEnd::Extracted))
    }

    /// The chunk that says where a member is; `None` while it waits or is assigned.
    #[must_use]
    pub fn of(&self, number: u8) -> Option<ChunkName> {
        self.names.iter().copied().filter(|name| name.members.contains(number)).max_by_key(|name| name.end)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::job::{JobState, Verdict};
    use crate::name::{Tag, WorkerId};
    use crate::segment::fixture::{id, segment};

    #[test]
    fn the_entry_of_a_segment_is_that_of_each_member() {
        let segment = segment();
        for (_, record) in segment.records(id(), id().members()) {
            assert_eq!(record.entry(0), segment.entry());
        }
        assert_eq!(segment.waits_at(id()).plain(), Some(segment.entry()), "its path says everything");
        assert_eq!(segment.record(4), None);
    }

    #[test]
    fn a_member_has_the_policy_and_the_placement_of_its_segment() {
        let mut segment = segment();
        segment.head.policy =
            Policy { max_attempts: 1, lease: Some(Duration::from_secs(7)), ..Policy::default() };
        segment.head.placement = Placement { tags: vec![Tag::new("gpu").unwrap()], ..Placement::default() };
        let Segment { head, members: _ } = segment.clone();
        let (record, entry) = (segment.record(0).unwrap(), segment.entry());
        assert_eq!((&record.policy, &record.placement), (&head.policy, &head.placement));
        assert_eq!((entry.lease, entry.placement), (head.policy.lease, head.placement));
    }

    #[test]
    fn a_succeeded_member_has_its_result_and_its_attempt() {
        let (worker, result) = (WorkerId::new(Uuid::nil()), Payload::json(*b"9").unwrap());
        let results =
            Results { worker, assigned_at: WallMillis(5), results: vec![(2, WallMillis(9), result.clone())] };
        let record = segment().succeeded(2, &results).unwrap();
        assert_eq!(
            record.state,
            JobState::Terminal { verdict: Verdict::Succeeded(result), at: WallMillis(9) }
        );
        assert!(record.was_closed_by(Attempt { number: 1, worker }));
        assert_eq!((record.attempts, record.assigned_at), (1, Some(WallMillis(5))));
        assert_eq!(segment().succeeded(1, &results), None);
    }

    #[test]
    fn chunks_show_where_each_member_is() {
        let chunks = Chunks::of_names(["s3", "x1", "foreign", "x4"]);
        let x = |members| Some(ChunkName { end: ChunkEnd::Extracted, members });
        assert_eq!(chunks.of(0), x(Members::one(0)), "an extraction takes precedence");
        assert_eq!(chunks.of(1).map(|name| name.end), Some(ChunkEnd::Succeeded));
        assert_eq!(chunks.of(2), x(Members::one(2)));
        assert_eq!(chunks.of(3), None);
        assert_eq!(chunks.open(id()), Members::one(3));
        assert_eq!(chunks.names().len(), 3);
    }

    #[test]
    fn a_member_has_its_own_trace() {
        let trace = TraceContext::new([1; 16], [2; 8], 1).ok();
        let mut segment = segment();
        segment.members[1].trace = trace;
        let of = |number| segment.record(number).unwrap().trace;
        assert!(trace.is_some());
        assert_eq!((of(0), of(1)), (None, trace));
    }
}
