//! Segments, moved by the test one transaction at a time.

use bellwether_core::job::{Assignment, Payload, Placement, Policy, Priority};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path;
use bellwether_core::segment::{Chunks, Head, Member, MemberId, Members, Results, Segment, SegmentId};
use bellwether_core::txn::{self, segment::AssignedSegment};
use uuid::Uuid;

use super::{World, kind};

/// A member of a segment.
pub(in crate::client) fn member(segment: SegmentId, number: u8) -> JobId {
    MemberId { segment, number }.job()
}

/// All members of a segment.
pub(in crate::client) fn members(segment: SegmentId) -> Vec<JobId> {
    segment.members().iter().map(|number| member(segment, number)).collect()
}

impl World {
    /// Submits a segment of this many jobs of the kind `sum`.
    pub(in crate::client) fn pack(&self, unique: u128, count: u8) -> SegmentId {
        let id = SegmentId::new(Uuid::from_u128(unique), count, 1_000).unwrap();
        let head = Head {
            kind: kind("sum"),
            policy: Policy::default(),
            placement: Placement::default(),
            priority: Priority::HIGHEST,
            submitted_at: self.wall(),
            part: 0,
            token: Uuid::from_u128(unique),
        };
        let payload = |number: u8| Payload::json(number.to_string().into_bytes()).unwrap();
        let members = (0..count).map(|number| Member { payload: payload(number), trace: None }).collect();
        self.apply(&txn::segment::submit(id, &Segment { head, members }));
        id
    }

    pub(in crate::client) fn segment(&self, id: SegmentId) -> Segment {
        self.tree().decoded(&path::segment(id))
    }

    pub(in crate::client) fn chunks(&self, id: SegmentId) -> Chunks {
        let names = self.tree().children(&path::segment(id)).unwrap();
        Chunks::of_names(names.iter().map(String::as_str))
    }

    pub(in crate::client) fn assign_segment(&self, id: SegmentId, worker: WorkerId) {
        let assignment = Assignment::new(1, 0, self.wall());
        self.apply(&txn::assign(&self.segment(id).waits_at(id), worker, &assignment, None));
    }

    pub(in crate::client) fn held(&self, id: SegmentId, worker: WorkerId) -> AssignedSegment {
        let path = path::assignment(worker, &id.job());
        let assignment = self.tree().decoded(&path);
        let version = self.tree().get(&path).unwrap().version;
        AssignedSegment { id, worker, assignment, version, open: self.chunks(id).open(id) }
    }

    /// Members of an assigned segment succeed. The result of each is ten times its number.
    pub(in crate::client) fn succeed_members(&self, id: SegmentId, worker: WorkerId, members: Members) {
        let result = |number| Payload::json((u32::from(number) * 10).to_string().into_bytes()).unwrap();
        let at = self.wall();
        let results = members.iter().map(|number| (number, at, result(number))).collect();
        let held = self.held(id, worker);
        let results = Results { worker, assigned_at: held.assignment.assigned_at, results };
        self.apply(&txn::segment::succeed(&held, &results));
    }

    /// The worker extracts members of an assigned segment.
    pub(in crate::client) fn extract_members(&self, id: SegmentId, worker: WorkerId, members: Members) {
        self.apply(&txn::segment::extract_assigned(
            &self.held(id, worker),
            &self.segment(id),
            members,
            Members::NONE,
        ));
    }

    /// Removes a segment whose members have all left it.
    pub(in crate::client) fn remove_segment(&self, id: SegmentId) {
        self.apply(&txn::segment::remove(id, &self.chunks(id)));
    }
}
