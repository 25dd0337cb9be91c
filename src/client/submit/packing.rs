//! Which submissions of a round are packed into segments.
//!
//! A submission is *plain* if its job has no property that a segment cannot store, and if no one knows its id yet. Plain
//! submissions with the same [`Head`](bellwether_core::segment::Head) form segments, in their order. If fewer than
//! [`MIN_PACKED`] of them are in a round, or fit, they are sent as records like all others.

use bellwether_core::job::identity::IfExists;
use bellwether_core::job::{JobRecord, JobState, Placement, Policy, Priority};
use bellwether_core::name::Kind;
use bellwether_core::segment::{MAX_PACKED, MAX_PACKED_BYTES, MIN_PACKED};

use super::Submission;

/// How often an extraction writes the head for each member: in its record, and in the path and the data of its entry.
const HEADS: usize = 3;

/// Divides submissions into segments, and the others. Each part has them in their order.
pub(super) fn pack(jobs: Vec<Submission>) -> (Vec<Vec<Submission>>, Vec<Submission>) {
    let mut segments = Vec::<Forming>::new();
    let mut others = Vec::new();
    for (at, job) in jobs.into_iter().enumerate() {
        if !is_plain(&job) {
            others.push((at, job));
            continue;
        }
        let bytes = bytes(&job.record);
        match segments.iter_mut().rev().find(|segment| segment.has_head_of(&job.record)) {
            Some(segment) if segment.fits(bytes) => segment.push(at, job, bytes),
            Some(_) | None => segments.push(Forming { jobs: vec![(at, job)], bytes }),
        }
    }
    let mut packed = Vec::new();
    for Forming { jobs, .. } in segments {
        if jobs.len() < usize::from(MIN_PACKED) {
            others.extend(jobs);
        } else {
            packed.push(jobs.into_iter().map(|(_, job)| job).collect());
        }
    }
    others.sort_by_key(|(at, _)| *at);
    (packed, others.into_iter().map(|(_, job)| job).collect())
}

/// Submissions with the same head, and their positions. At least one.
struct Forming {
    jobs: Vec<(usize, Submission)>,
    bytes: usize,
}

impl Forming {
    fn has_head_of(&self, record: &JobRecord) -> bool {
        self.jobs.first().is_some_and(|(_, job)| head(&job.record) == head(record))
    }

    fn fits(&self, bytes: usize) -> bool {
        self.jobs.len() < usize::from(MAX_PACKED) && self.bytes + bytes <= MAX_PACKED_BYTES
    }

    fn push(&mut self, at: usize, job: Submission, bytes: usize) {
        self.jobs.push((at, job));
        self.bytes += bytes;
    }
}

/// What the members of a segment share. First what differs most often and is compared fastest.
fn head(record: &JobRecord) -> (Priority, &Kind, &Placement, &Policy) {
    (record.priority, &record.kind, &record.placement, &record.policy)
}

/// Whether the job can be a member of a segment.
fn is_plain(job: &Submission) -> bool {
    let Submission { if_exists, reopens, entrant, maybe, record, may_pack, .. } = job;
    let JobRecord { placement, policy, expires_at, membership, generation, state, .. } = record;
    *may_pack
        && *if_exists == IfExists::Same
        && reopens.is_none()
        && entrant.is_none()
        && !maybe
        && placement.lane.is_none()
        // A job that must not be lost once must not be lost because of the other members either.
        && policy.max_losses > 1
        && expires_at.is_none()
        && membership.is_none()
        && *generation == 1
        && *state == JobState::Open { not_before: None }
}

/// The bytes that a job uses of a segment's limit: those that it adds to the segment, or to an extraction if these are more.
fn bytes(record: &JobRecord) -> usize {
    let JobRecord { kind, payload, placement: Placement { tags, affinity, lane: _ }, .. } = record;
    let tags = tags.iter().map(|tag| tag.as_str().len()).sum::<usize>();
    let affinity = affinity.as_ref().map_or(0, |key| key.as_str().len());
    let head = kind.as_str().len() + tags + affinity;
    MEMBER + payload.content_type().as_str().len() + payload.bytes().len() + HEADS * head
}

/// What else a member adds to a segment: lengths, the trace context, and its part of the other fields of the head.
const MEMBER: usize = 64;

#[cfg(test)]
mod tests;
