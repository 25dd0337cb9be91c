//! Submitting jobs as the members of a segment.

use std::pin::pin;
use std::time::Duration;

use bellwether::client::runtime::{Runtime as _, Status};
use bellwether_core::job::{Placement, Priority};
use bellwether_core::outcome::{Outcome, Reason};
use bellwether_core::path;
use bellwether_core::port::Session;
use bellwether_core::segment::{Head, Member, MemberId, Segment, SegmentId};
use bellwether_core::txn;
use futures::future::{Either, select};
use uuid::Uuid;

use super::{DEADLINE, Env};
use crate::history::{Answer, Call, Digest};
use crate::plan::JobPlan;

/// The pause before a segment is read again.
const PAUSE: Duration = Duration::from_millis(200);

/// The time that is left for the last requests of a submission.
const RESERVE: Duration = Duration::from_secs(1);

/// A segment to submit.
#[derive(Debug, Clone)]
pub(crate) struct Pack {
    id: SegmentId,
    head: Head,
    members: Vec<(Member, Digest)>,
}

impl Pack {
    /// Packs jobs that have the same head.
    pub(crate) fn new(id: SegmentId, jobs: &[JobPlan]) -> Self {
        let first = jobs.first().expect("a segment has members");
        let head = Head {
            kind: first.kind.clone(),
            policy: first.policy(),
            placement: Placement { tags: crate::plan::tags(first.tagged), ..Placement::default() },
            priority: Priority::new(first.priority).expect("a digit"),
            submitted_at: bellwether_core::time::WallMillis(0),
            part: 0,
            token: Uuid::nil(),
        };
        let member = |job: &JobPlan| {
            let payload = job.payload();
            let digest = Digest::of(payload.bytes());
            (Member { payload, trace: None }, digest)
        };
        Self { id, head, members: jobs.iter().map(member).collect() }
    }
}

impl Env {
    /// Submits a segment. After a lost reply it is read: if it is there it was accepted, and otherwise the same is sent again.
    pub(crate) async fn submit_packed(self, pack: Pack) {
        let Pack { id, head, members } = pack;
        let calls = (0..).zip(&members).map(|(number, (_, payload))| {
            let job = MemberId { segment: id, number }.job();
            self.invoke(Call::Submit { job, kind: head.kind.clone(), payload: *payload, lane: None })
        });
        let calls = calls.collect::<Vec<_>>();
        let (submitted_at, token) = (self.handle.wall(), self.handle.uuid());
        let members = members.into_iter().map(|(member, _)| member).collect();
        let segment = Segment { head: Head { submitted_at, token, ..head }, members };
        let (sent, late) = (
            pin!(self.send_segment(id, &segment)),
            pin!(self.sleep(self.promise.unwrap_or(DEADLINE) - RESERVE / 2)),
        );
        let answer = match select(sent, late).await {
            Either::Left((answer, _)) => answer,
            // A request has no reply.
            Either::Right(_) => Answer::Unknown { why: "the deadline has passed".to_owned() },
        };
        for call in calls {
            self.answer(call, answer.clone());
        }
    }

    async fn send_segment(&self, id: SegmentId, segment: &Segment) -> Answer {
        let ops = txn::segment::submit(id, segment);
        let end_us = self.handle.0.now_us() + as_micros(self.promise.unwrap_or(DEADLINE) - RESERVE);
        let mut uncertain = false;
        while self.handle.0.now_us() < end_us {
            if let Status::Connected(session) = self.handle.status() {
                match if uncertain { find(&*session, id).await } else { Some(false) } {
                    Some(true) => return Answer::Accepted,
                    Some(false) => match session.commit(ops.clone()).await {
                        Outcome::Applied(()) => return Answer::Accepted,
                        Outcome::Rejected(rejection) => match rejection.reason {
                            // The first copy: no other call has this id.
                            Reason::NodeExists => return Answer::Accepted,
                            _ if rejection.is_whole() => {}
                            reason => return Answer::Failed { why: reason.to_string() },
                        },
                        Outcome::Unknown => uncertain = true,
                    },
                    None => {}
                }
            }
            self.sleep(PAUSE).await;
        }
        let why = "the deadline has passed".to_owned();
        if uncertain { Answer::Unknown { why } } else { Answer::Failed { why } }
    }
}

/// Whether a segment exists; `None` without an answer.
async fn find(session: &dyn Session, id: SegmentId) -> Option<bool> {
    session.sync(path::segment(id)).await.ok()?;
    Some(session.get(path::segment(id)).await.ok()?.is_some())
}

fn as_micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
