//! Submitting jobs.
//!
//! All submissions of a client go through one [`batcher`]. It sends immediately if nothing is in flight, and gathers
//! otherwise. So a single job is not delayed, and many jobs share a multi.
//!
//! **What if the reply is lost?** The record holds a token that only this submission knows. After the reconnection
//! (or under a new session) the record is read back: our token ⇒ accepted; absent ⇒ sent again; another token ⇒
//! decided by the job's [`IfExists`] ([`identity`](bellwether_core::job::identity)).
//!
//! **What if the first copy is applied late,** after the read-back found nothing? One of the two copies is applied
//! first, and the other is rejected as a whole because the record exists. If the second copy is rejected, its record
//! is read and holds our token: accepted. If the first copy is rejected, no call waits for it. Either way there is
//! one record and one queue entry (S11). A read-back may also lag behind the write, on a lagging server: then the
//! second copy is rejected, and the read after that rejection is at least as new as the rejection.
//!
//! **What if the deadline passes?** One atomic, which caller and batcher swap ([`send_gate`]), decides whether anything
//! was sent. So *not sent* is certain when it is returned. Otherwise the outcome is *unknown*, and submitting again
//! with the same id is safe.
//!
//! **With a codec** ([`codec`](crate::codec)) the caller encodes the payload before it hands the submission to the batcher, in
//! the lane's order ([`turns`]). Every copy of the submission has the same bytes. An existing record is compared by its stored
//! bytes; if only they differ, the caller decodes them and compares the plain ones ([`encoding`]).

mod batcher;
mod encoding;
mod members;
mod minutes;
mod occupancy;
mod parts;
mod round;
mod send_gate;
mod turns;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::change::{Change, ChangeKind};
use bellwether_core::job::{JobRecord, Membership, Payload};
use bellwether_core::name::{GroupId, JobId};
use bellwether_host::{kind_label, trace};
use futures::{Stream, StreamExt, stream};
use tokio::sync::oneshot;
use tracing::{Instrument, Span};

pub(super) use batcher::{Inbox, start};
pub(super) use turns::Turns;

use super::Client;
use super::error::{SubmitError, Unavailable, WaitError};
use super::group::Entrant;
use super::job::{Job, Untyped};
use super::session::Deadline;
use super::view::JobView;
use bellwether_core::job::identity::{Accepted, IfExists};
use send_gate::SendGate;
use turns::Turn;

/// How many submissions of one `submit_many` are in progress: those in the batcher's window, and as many that gather
/// for the next rounds.
pub(super) const MANY_UNDER_WAY: usize = 2 * batcher::WINDOW * batcher::BATCH_JOBS;

/// A submission in progress.
#[derive(Debug)]
pub(super) struct Submission {
    id: JobId,
    record: JobRecord,
    if_exists: IfExists,
    /// The note for the record, if it opens an ended job again.
    reopening: Option<Change>,
    /// The version of the ended job's record that this submission replaces; `None` if it creates a record.
    reopens: Option<i32>,
    /// The group of the sub-jobs of the job that it reopens: until that group is done, the job has not ended either.
    sub_jobs: Option<GroupId>,
    /// Its membership in a group.
    entrant: Option<Entrant>,
    /// Stored bytes of the same plain payload, which an earlier submission encoded.
    equal: Option<Payload>,
    gate: Arc<SendGate>,
    /// Whether an earlier copy may have been applied, or may still be applied.
    maybe: bool,
    /// How often it was rejected for a reason that a read could not explain.
    unexplained: u32,
    reply: oneshot::Sender<Answer>,
}

type Reply = Result<Accepted, SubmitError>;

/// The answer of the batcher.
#[derive(Debug)]
struct Answer {
    reply: Reply,
    /// The stored payload of the existing job of the same kind, if the reply depends on the difference to it.
    differs: Option<Payload>,
}

impl Submission {
    fn new(
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
            gate,
            maybe: false,
            unexplained: 0,
            reply,
        }
    }

    /// Whether the caller still waits for it.
    fn is_waited_for(&self) -> bool {
        !self.reply.is_closed()
    }

    fn settle(self, reply: Reply) {
        self.answer(reply, None);
    }

    fn answer(self, reply: Reply, differs: Option<Payload>) {
        if reply.as_ref().is_ok_and(|accepted| !accepted.is_duplicate()) {
            let kind = kind_label::of(&self.record.kind);
            metrics::counter!(bellwether_core::metric::JOBS_SUBMITTED, "kind" => kind).increment(1);
        }
        if self.reply.send(Answer { reply, differs }).is_err() {
            tracing::debug!(job = %self.id, "the caller of this submission no longer waits for it");
        }
    }
}

#[cfg(test)]
impl Submission {
    /// Returns a typical submission and the receiver of its reply.
    fn sample() -> (Self, oneshot::Receiver<Answer>) {
        let now = bellwether_core::time::WallMillis(1);
        let (id, record) = Job::new("sum", &1).into_record(now, uuid::Uuid::now_v7).unwrap();
        let (reply, accepted) = oneshot::channel();
        (Self::new(id, record, IfExists::Same, Arc::default(), reply), accepted)
    }
}

/// What a submission asks for, apart from the record.
#[derive(Debug, Clone, Copy)]
struct Intent {
    if_exists: IfExists,
    /// Whether the job or its group determines the id. Otherwise each submission generates one.
    has_id: bool,
}

impl Intent {
    /// Whether the same submission again is the same job, whatever happened to the first one.
    fn is_repeatable(self) -> bool {
        self.has_id && self.if_exists != IfExists::Again
    }
}

/// The form of the payload in a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// It is encoded if the client has a codec.
    Plain,
    /// It comes from a stored record.
    Stored,
}

/// A submission that the batcher does not have yet.
#[derive(Debug, Clone)]
struct Unsent {
    id: JobId,
    record: JobRecord,
    intent: Intent,
    entrant: Option<Entrant>,
    /// See [`Submission::equal`].
    equal: Option<Payload>,
}

/// A handle on an accepted job.
#[derive(Debug)]
pub struct JobHandle<K = Untyped> {
    pub(super) client: Client,
    id: JobId,
    accepted: Accepted,
    typed: PhantomData<fn() -> K>,
}

impl<K> Clone for JobHandle<K> {
    fn clone(&self) -> Self {
        let (client, id) = (self.client.clone(), self.id.clone());
        Self { client, id, accepted: self.accepted, typed: PhantomData }
    }
}

impl<K> JobHandle<K> {
    /// Returns the job's id, given or generated.
    #[must_use]
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// Returns how the submission was accepted.
    #[must_use]
    pub fn accepted(&self) -> Accepted {
        self.accepted
    }

    /// Whether nothing was created, because a job with this id existed already.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        self.accepted.is_duplicate()
    }

    /// Returns the generation that was accepted. A submission that found the same job does not know its generation and
    /// returns 1.
    #[must_use]
    pub fn generation(&self) -> u32 {
        match self.accepted {
            Accepted::Again(generation) => generation,
            Accepted::New | Accepted::Same | Accepted::Other => 1,
        }
    }

    /// Waits until this generation of the job, or a later one, has ended: see [`Client::wait_for`].
    ///
    /// # Errors
    /// Those of [`Client::wait`].
    pub async fn wait(&self, within: Duration) -> Result<JobView, WaitError> {
        self.client.wait_for(&self.id, self.generation(), within).await
    }
}

impl JobHandle {
    /// Returns the handle of a job that was created in another way.
    pub(super) fn made(client: Client, id: JobId) -> Self {
        Self { client, id, accepted: Accepted::New, typed: PhantomData }
    }
}

impl Client {
    /// Submits a job. Returns when ZooKeeper has stored it on the disks of a majority of its servers: from then on it
    /// is not lost.
    ///
    /// Submitting the same id, kind and payload again is the same job, and the handle shows that. The policy and
    /// placement of the first submission are kept, unless an ended job is [reopened](IfExists::Again).
    ///
    /// # Errors
    /// [`SubmitError`]. For all except [`SubmitError::Unknown`], no job was created.
    ///
    /// # Cancellation
    /// A dropped submission that was not sent yet is not sent; one that was sent may be accepted.
    ///
    /// # Ordering
    /// Jobs of one client in one lane are ordered by the first polls of their submissions, whatever happens to any of
    /// them. Other jobs are sent, and become visible, in approximately that order. With a [codec](crate::codec), a job with a
    /// lane waits until the payloads of the earlier ones are encoded: a submission that is neither polled nor dropped delays
    /// the later ones of its lane.
    ///
    /// # Connection loss
    /// A lost reply is resolved by reading back: the job is accepted exactly once, or the deadline passes.
    pub async fn submit<K>(&self, job: Job<K>) -> Result<JobHandle<K>, SubmitError> {
        let intent = Intent { if_exists: job.mode(), has_id: job.has_id() };
        let (id, record) = job.into_record(self.0.session.wall(), || self.0.session.uuid())?;
        self.send(id, record, intent, None, Form::Plain).await
    }

    /// Submits a job whose payload is in its stored form, and opens it again if it has ended.
    pub(super) async fn submit_again(&self, id: JobId, record: JobRecord) -> Result<JobHandle, SubmitError> {
        let intent = Intent { if_exists: IfExists::Again, has_id: true };
        self.send(id, record, intent, None, Form::Stored).await
    }

    /// Submits a member of a group.
    pub(super) async fn submit_member<K>(
        &self,
        job: Job<K>,
        id: JobId,
        membership: Membership,
        entrant: Entrant,
    ) -> Result<JobHandle<K>, SubmitError> {
        let intent = Intent { if_exists: job.mode(), has_id: true };
        let (_, record) = job.into_record(self.0.session.wall(), || self.0.session.uuid())?;
        // A group is one trace, whichever process submits its members.
        let trace = record.trace.or_else(|| entrant.known.look().0.trace);
        let record = JobRecord { membership: Some(membership), trace, ..record };
        self.send(id, record, intent, Some(entrant), Form::Plain).await
    }

    async fn send<K>(
        &self,
        id: JobId,
        record: JobRecord,
        intent: Intent,
        entrant: Option<Entrant>,
        form: Form,
    ) -> Result<JobHandle<K>, SubmitError> {
        let span = trace::submit(&id, &record.kind, record.trace.as_ref());
        let within = || trace::context(&Span::current());
        let trace = trace::context(&span).or(record.trace).or_else(within);
        let job =
            Unsent { id: id.clone(), record: JobRecord { trace, ..record }, intent, entrant, equal: None };
        let sent = async {
            match form {
                Form::Plain => self.encoded(job).await,
                Form::Stored => self.batched(job, self.by(), None).await.and_then(|answer| answer.reply),
            }
        };
        let reply = sent.instrument(span.clone()).await;
        span.record("outcome", if reply.is_ok() { "accepted" } else { "failed" });
        Ok(JobHandle { client: self.clone(), id, accepted: reply?, typed: PhantomData })
    }

    /// Hands a submission to the batcher and waits for the answer. The turn in its lane ends when the batcher has it.
    async fn batched(&self, job: Unsent, by: Deadline, turn: Option<Turn>) -> Result<Answer, SubmitError> {
        let Unsent { id, record, intent, entrant, equal } = job;
        let (gate, (reply, answer)) = (Arc::new(SendGate::default()), oneshot::channel());
        let mut submission = Submission::new(id.clone(), record, intent.if_exists, Arc::clone(&gate), reply);
        (submission.entrant, submission.equal) = (entrant, equal);
        if intent.if_exists == IfExists::Again {
            submission.reopening = self.change(ChangeKind::Reopened);
        }
        // Without an await before it, so that the batcher receives submissions in the order of their first polls. If
        // the batcher has ended, the submission and its reply channel are dropped here.
        if self.0.inbox.send(submission).is_err() {
            tracing::debug!(job = %id, "the batcher has ended");
        }
        drop(turn);
        match self.0.session.timeout_at(by.at, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            // The batcher has ended. It answers everything before it ends, unless its runtime was shut down.
            Ok(Err(_)) if gate.abandon() => Err(SubmitError::NotSent { id, reason: Unavailable::Closed }),
            Err(_) if gate.abandon() => {
                Err(SubmitError::NotSent { id, reason: self.0.session.not_in_time(by) })
            }
            Ok(Err(_)) | Err(_) => {
                let (repeatable, within) = (intent.is_repeatable(), by.within);
                Err(SubmitError::Unknown { id, repeatable, within })
            }
        }
    }

    /// Submits many jobs. The results are in the order of the jobs. `progress` is called with the number of answered
    /// jobs.
    ///
    /// Jobs are taken from the iterator as fast as they are sent. Each has its own deadline, which starts when it is
    /// taken.
    ///
    /// # Cancellation
    /// Dropping the future drops the jobs that were not sent; a job that was sent may be accepted. Give the jobs ids,
    /// so that all of them can be submitted again.
    pub async fn submit_many<K>(
        &self,
        jobs: impl IntoIterator<Item = Job<K>>,
        mut progress: impl FnMut(usize),
    ) -> Vec<Result<JobHandle<K>, SubmitError>> {
        let mut answers = Vec::new();
        let mut submitted = std::pin::pin!(self.submit_stream(jobs));
        while let Some(answer) = submitted.next().await {
            answers.push(answer);
            progress(answers.len());
        }
        answers
    }

    /// Like [`Client::submit_many`], for more jobs than fit in memory.
    pub fn submit_stream<K>(
        &self,
        jobs: impl IntoIterator<Item = Job<K>>,
    ) -> impl Stream<Item = Result<JobHandle<K>, SubmitError>> {
        stream::iter(jobs).map(|job| self.submit(job)).buffered(MANY_UNDER_WAY)
    }
}

#[cfg(test)]
mod tests;
