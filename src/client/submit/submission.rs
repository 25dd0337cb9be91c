//! A submission in the batcher, and its answer.

use std::sync::Arc;

use bellwether_core::change::Change;
use bellwether_core::job::identity::{Accepted, IfExists};
use bellwether_core::job::{JobRecord, Payload};
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::segment::MemberId;
use bellwether_host::kind_label;
use tokio::sync::oneshot;

use super::super::error::SubmitError;
use super::super::group::Entrant;
use super::send_gate::SendGate;

/// A submission in progress.
#[derive(Debug)]
pub(in crate::client) struct Submission {
    pub(super) id: JobId,
    pub(super) record: JobRecord,
    pub(super) if_exists: IfExists,
    /// The note for the record, if it opens an ended job again.
    pub(super) reopening: Option<Change>,
    /// The version of the ended job's record that this submission replaces; `None` if it creates a record.
    pub(super) reopens: Option<i32>,
    /// The group of the sub-jobs of the job that it reopens: until that group is done, the job has not ended either.
    pub(super) sub_jobs: Option<GroupId>,
    /// Its membership in a group.
    pub(super) entrant: Option<Entrant>,
    /// Stored bytes of the same plain payload, which an earlier submission encoded.
    pub(super) equal: Option<Payload>,
    /// Whether it may get another id, as a member of a segment.
    pub(super) may_pack: bool,
    pub(super) gate: Arc<SendGate>,
    /// Whether an earlier copy may have been applied, or may still be applied.
    pub(super) maybe: bool,
    /// How often it was rejected for a reason that a read could not explain.
    pub(super) unexplained: u32,
    pub(super) reply: oneshot::Sender<Answer>,
}

pub(super) type Reply = Result<Accepted, SubmitError>;

/// The answer of the batcher.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) reply: Reply,
    /// The member that the job became, which determines its id.
    pub(super) member: Option<MemberId>,
    /// The stored payload of the existing job of the same kind, if the reply depends on the difference to it.
    pub(super) differs: Option<Payload>,
}

impl Submission {
    pub(super) fn new(
        id: JobId,
        record: JobRecord,
        if_exists: IfExists,
        gate: Arc<SendGate>,
        reply: oneshot::Sender<Answer>,
    ) -> Self {
        Self {
            id,
            record,
            if_exists,
            reopening: None,
            reopens: None,
            sub_jobs: None,
            entrant: None,
            equal: None,
            may_pack: false,
            gate,
            maybe: false,
            unexplained: 0,
            reply,
        }
    }

    /// Whether the caller still waits for it.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.reply.is_closed()
    }

    pub(super) fn settle(self, reply: Reply) {
        self.reply_with(Answer { reply, member: None, differs: None });
    }

    pub(super) fn answer(self, reply: Reply, differs: Option<Payload>) {
        self.reply_with(Answer { reply, member: None, differs });
    }

    /// It was created as a member of a segment.
    pub(super) fn made_as(self, member: MemberId) {
        self.reply_with(Answer { reply: Ok(Accepted::New), member: Some(member), differs: None });
    }

    fn reply_with(self, answer: Answer) {
        let Answer { reply, member, .. } = &answer;
        if reply.as_ref().is_ok_and(|accepted| !accepted.is_duplicate()) {
            let kind = kind_label::of(&self.record.kind);
            metrics::counter!(bellwether_core::metric::JOBS_SUBMITTED, "kind" => kind).increment(1);
        }
        let id = member.map_or(self.id, MemberId::job);
        if self.reply.send(answer).is_err() {
            tracing::debug!(job = %id, "the caller of this submission no longer waits for it");
        }
    }
}

impl Answer {
    /// The id of the accepted job, which had this id before, and how it was accepted.
    pub(super) fn accepted(self, id: JobId) -> Result<(JobId, Accepted), SubmitError> {
        Ok((self.member.map_or(id, MemberId::job), self.reply?))
    }
}

#[cfg(test)]
impl Submission {
    /// Returns a typical submission and the receiver of its reply.
    pub(super) fn sample() -> (Self, oneshot::Receiver<Answer>) {
        let now = bellwether_core::time::WallMillis(1);
        let (id, record) = crate::client::Job::new("sum", &1).into_record(now, uuid::Uuid::now_v7).unwrap();
        let (reply, accepted) = oneshot::channel();
        (Self::new(id, record, IfExists::Same, Arc::default(), reply), accepted)
    }
}
