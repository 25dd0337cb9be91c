//! Transactions of segments ([`crate::segment`]).
//!
//! | transaction | by | fenced by | if the reply is lost |
//! | --- | --- | --- | --- |
//! | [`submit`] | client | the segment's absence | read the segment: there ⇒ accepted; else send the same again |
//! | [`assign`](super::assign) | leader | epoch, worker's version, the entry | as for a job |
//! | [`succeed`] | worker | the assignment's version | read the chunk: there ⇒ ours; assignment unchanged ⇒ again; else extracted |
//! | [`extract_assigned`] | worker, leader (epoch) | the assignment's version | read the assignment: unchanged ⇒ again; else see the chunks |
//! | [`extract_waiting`] | client | the entry | read the chunks |
//! | [`release`] | client | the note | read the job: it has a record ⇒ done; else send the same again |
//! | [`remove`] | leader (epoch), client | the absence of other chunks | absent ⇒ removed |
//!
//! Members leave an assignment only in a transaction that sets or deletes it at the version that was read. A check instead of a set
//! would let two transactions of different processes both commit.

use super::{Op, submit as submit_job};
use crate::job::{Assignment, JobRecord};
use crate::name::{JobId, WorkerId};
use crate::path;
use crate::segment::{ChunkEnd, ChunkName, Chunks, Members, Results, Segment, SegmentId};
use crate::wire::encode;

/// The assignment of a segment at the version that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AssignedSegment {
    /// The segment.
    pub id: SegmentId,
    /// The worker in whose inbox it is.
    pub worker: WorkerId,
    /// The assignment.
    pub assignment: Assignment,
    /// The version of the assignment.
    pub version: i32,
    /// The members that have not left at this version.
    pub open: Members,
}

impl AssignedSegment {
    /// The same after these members have left, or `None` if none remains.
    #[must_use]
    pub fn without(self, members: Members) -> Option<Self> {
        let open = self.open.without(members);
        (!open.is_empty()).then_some(Self { version: super::after(self.version), open, ..self })
    }

    /// Sets the assignment, or deletes it if no member remains.
    fn leave(&self, members: Members) -> Op {
        let (path, version) = (path::assignment(self.worker, &self.id.job()), self.version);
        if self.open.without(members).is_empty() {
            Op::Delete { path, version: Some(version) }
        } else {
            Op::Set { path, data: encode(&self.assignment), version }
        }
    }

    /// The assignment of a member, as the leader would have made it for a job.
    fn assign(&self, job: &JobId) -> Op {
        Op::create(path::assignment(self.worker, job), encode(&self.assignment))
    }
}

/// Creates a segment and its entry.
#[must_use]
pub fn submit(id: SegmentId, segment: &Segment) -> Vec<Op> {
    vec![Op::create(path::segment(id), encode(segment)), super::ready(&id.job(), &segment.entry())]
}

/// Ends members as succeeded, with their results.
#[must_use]
pub fn succeed(held: &AssignedSegment, results: &Results) -> Vec<Op> {
    let members = results.members();
    vec![held.leave(members), chunk(held.id, ChunkEnd::Succeeded, members, encode(results))]
}

/// Writes members of an assigned segment as jobs: `assigned` to the same worker, or `waiting` because they have not begun.
#[must_use]
pub fn extract_assigned(
    held: &AssignedSegment,
    segment: &Segment,
    assigned: Members,
    waiting: Members,
) -> Vec<Op> {
    let members = assigned.with(waiting);
    let mut ops = vec![held.leave(members), extracted(held.id, members)];
    for (job, record) in segment.records(held.id, assigned) {
        ops.extend([Op::create(path::record(&job), encode(&record)), held.assign(&job)]);
    }
    for (job, record) in segment.records(held.id, waiting) {
        ops.extend(submit_job(&job, &record, 0));
    }
    ops
}

/// Writes the members of a segment that waits as jobs that wait.
#[must_use]
pub fn extract_waiting(id: SegmentId, segment: &Segment) -> Vec<Op> {
    let entry = Op::delete(path::ready_entry(&segment.waits_at(id)));
    let mut ops = vec![entry, extracted(id, id.members())];
    for (job, record) in segment.records(id, id.members()) {
        ops.extend(submit_job(&job, &record, 0));
    }
    ops
}

/// Writes the `open` members of a segment in quarantine as jobs that wait.
#[must_use]
pub fn release(id: SegmentId, segment: &Segment, open: Members) -> Vec<Op> {
    let mut ops = vec![Op::delete(path::quarantine(&id.job())), extracted(id, open)];
    for (job, record) in segment.records(id, open) {
        ops.extend(submit_job(&job, &JobRecord { released: true, ..record }, 0));
    }
    ops
}

/// Removes a segment whose members have all left it. Rejected as a whole if a chunk was created since these were listed.
#[must_use]
pub fn remove(id: SegmentId, chunks: &Chunks) -> Vec<Op> {
    debug_assert!(chunks.open(id).is_empty(), "an open member would be lost");
    let delete = |path| Op::Delete { path, version: Some(0) };
    let chunks = chunks.names().iter().map(|name| delete(path::segment_chunk(id, *name)));
    chunks.chain([delete(path::segment(id))]).collect()
}

fn extracted(id: SegmentId, members: Members) -> Op {
    chunk(id, ChunkEnd::Extracted, members, Vec::new())
}

fn chunk(id: SegmentId, end: ChunkEnd, members: Members, data: Vec<u8>) -> Op {
    Op::create(path::segment_chunk(id, ChunkName { end, members }), data)
}

#[cfg(test)]
mod tests;
