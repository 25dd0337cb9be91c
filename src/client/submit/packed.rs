//! A segment of submissions, and their outcome.
//!
//! ```text
//!  formed ──sent──▶ applied: all members are accepted
//!    ▲                ├─▶ rejected: taken apart, and its submissions are packed again
//!    │                └─▶ unknown ──read──▶ there: all are accepted
//!    └────── absent: the same again ───────────┘
//! ```
//!
//! A segment that may have been sent is never changed: its id names this set of members in this order, so a late first copy and a
//! second one reject each other. Members without a caller stay in it then.

use bellwether_core::job::{JobRecord, QueueEntry};
use bellwether_core::name::JobId;
use bellwether_core::path;
use bellwether_core::segment::{Head, Member, MemberId, Segment, SegmentId};
use bellwether_core::txn::{self, Op};
use bellwether_core::wire;
use uuid::Uuid;

use super::super::session::Session;
use super::parts::Parts;
use super::send_gate::SentAs;
use super::{Submission, SubmitError};

/// A segment, and the submissions of its members in their order.
#[derive(Debug)]
pub(super) struct Packed {
    id: SegmentId,
    segment: Segment,
    jobs: Vec<Submission>,
    /// Whether an earlier copy may have been applied, or may still be applied.
    maybe: bool,
    /// How often it was rejected although it was not found.
    unexplained: u32,
}

impl Packed {
    /// Forms a segment of submissions with the same head: at least one, and at most
    /// [`MAX_PACKED`](bellwether_core::segment::MAX_PACKED). It counts as submitted when the first of them was.
    pub(super) fn new(
        unique: Uuid,
        token: Uuid,
        jobs: Vec<Submission>,
        part: impl FnOnce(&QueueEntry) -> u16,
    ) -> Self {
        let first = &jobs.first().expect("a segment has members").record;
        let JobRecord { kind, policy, placement, priority, .. } = first.clone();
        let submitted_at = jobs.iter().map(|job| job.record.submitted_at).min().unwrap_or(first.submitted_at);
        let head = Head { kind, policy, placement, priority, submitted_at, part: 0, token };
        let member =
            |job: &Submission| Member { payload: job.record.payload.clone(), trace: job.record.trace };
        let mut segment = Segment { head, members: jobs.iter().map(member).collect() };
        segment.head.part = part(&segment.entry());
        let id = u8::try_from(jobs.len()).ok();
        let id = id.and_then(|count| SegmentId::new(unique, count, wire::encode(&segment).len()));
        let id = id.expect("a segment has few members and bytes");
        Self { id, segment, jobs, maybe: false, unexplained: 0 }
    }

    /// Forms a segment with a generated id.
    pub(super) fn of(session: &Session, parts: &Parts, jobs: Vec<Submission>) -> Self {
        Self::new(session.uuid(), session.uuid(), jobs, |entry| parts.choose(entry))
    }

    /// The id under which the segment waits.
    pub(super) fn job(&self) -> JobId {
        self.id.job()
    }

    pub(super) fn path(&self) -> String {
        path::segment(self.id)
    }

    pub(super) fn ops(&self) -> Vec<Op> {
        txn::segment::submit(self.id, &self.segment)
    }

    #[cfg(test)]
    pub(super) fn segment(&self) -> &Segment {
        &self.segment
    }

    pub(super) fn jobs(&self) -> &[Submission] {
        &self.jobs
    }

    /// Whether an earlier copy may have been applied, or may still be applied.
    pub(super) fn may_be_applied(&self) -> bool {
        self.maybe
    }

    /// Whether a caller still waits for one of its members.
    pub(super) fn is_waited_for(&self) -> bool {
        self.jobs.iter().any(Submission::is_waited_for)
    }

    /// The segment is about to be sent. If a caller has given up before, it is taken apart instead.
    ///
    /// # Errors
    /// The submissions that are waited for.
    pub(super) fn send(self) -> Result<Self, Vec<Submission>> {
        if self.maybe {
            return Ok(self);
        }
        let members = members(self.id).zip(&self.jobs);
        let mut sent =
            members.map(|(member, job)| job.is_waited_for() && job.gate.send(SentAs::Member(member)));
        if sent.all(|sent| sent) {
            return Ok(self);
        }
        let mut jobs = self.jobs;
        jobs.iter().for_each(Submission::unsent);
        jobs.retain(Submission::is_waited_for);
        Err(jobs)
    }

    /// The pending send did not happen. So the segment is taken apart, unless an earlier copy may be applied.
    ///
    /// # Errors
    /// Its submissions.
    pub(super) fn unsent(self) -> Result<Self, Vec<Submission>> {
        if self.maybe {
            return Ok(self);
        }
        self.jobs.iter().for_each(Submission::unsent);
        Err(self.jobs)
    }

    /// The outcome of its send is unknown.
    pub(super) fn unknown(&mut self) {
        self.maybe = true;
    }

    /// It was rejected although it was not found. Returns how often.
    pub(super) fn not_explained(&mut self) -> u32 {
        self.unexplained += 1;
        self.unexplained
    }

    /// It was created: all of its members are accepted.
    pub(super) fn made(self) {
        for (member, job) in members(self.id).zip(self.jobs) {
            job.made_as(member);
        }
    }

    /// It was not created. Members of a segment that may have been applied are not answered, which their callers see as unknown.
    pub(super) fn refuse(self, error: impl Fn(JobId) -> SubmitError) {
        if self.maybe {
            tracing::warn!(segment = %self.id, "ZooKeeper refused a segment, but it may have applied an earlier copy");
            return;
        }
        for (member, job) in members(self.id).zip(self.jobs) {
            job.unsent();
            job.settle(Err(error(member.job())));
        }
    }
}

fn members(segment: SegmentId) -> impl Iterator<Item = MemberId> {
    segment.members().iter().map(move |number| MemberId { segment, number })
}

#[cfg(test)]
mod tests;
