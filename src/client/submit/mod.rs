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
//! **What if the deadline passes?** One lock, which caller and batcher share ([`send_gate`]), decides whether anything
//! was sent. So *not sent* is certain when it is returned. Otherwise the outcome is *unknown*, and submitting again
//! with the same id is safe.
//!
//! **Segments.** Plain jobs of a round are packed into segments ([`packing`]), and a job gets its id when its segment is
//! formed. A segment has an id that no other submission has, so it needs no comparison: after a lost reply it is read back. If
//! it is there, it was accepted; if it is absent, the same segment is sent again ([`packed`]).
//!
//! **With a codec** ([`codec`](crate::codec)) the caller encodes the payload before it hands the submission to the batcher, in
//! the lane's order ([`turns`]). Every copy of the submission has the same bytes. An existing record is compared by its stored
//! bytes; if only they differ, the caller decodes them and compares the plain ones ([`encoding`]).

mod batcher;
mod capacity;
mod encoding;
mod load;
mod members;
mod minutes;
mod occupancy;
mod packed;
mod packing;
mod parts;
mod round;
mod send_gate;
mod submission;
mod turns;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::change::ChangeKind;
use bellwether_core::job::{JobRecord, Membership, Payload};
use bellwether_core::name::JobId;
use bellwether_host::trace;
use futures::future::Either;
use futures::{Stream, StreamExt, stream};
use tokio::sync::oneshot;
use tracing::{Instrument, Span};

pub(super) use batcher::{Inbox, start};
pub(super) use turns::Turns;

use super::Client;
use super::error::{SubmitError, Unavailable, WaitError};
use super::group::Entrant;
use super::job::{AnyKind, Job, Untyped};
use super::session::Deadline;
use super::view::JobView;
use bellwether_core::job::identity::{Accepted, IfExists};
use send_gate::{SendGate, SentAs};
use submission::{Answer, Submission};
use turns::Turn;

/// How many submissions of one `submit_many` are in progress: those in the batcher's window, and as many that gather
/// for the next rounds.
pub(super) const MANY_UNDER_WAY: usize = 2 * batcher::WINDOW * batcher::BATCH_JOBS;

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
    /// The errors of [`Client::wait`].
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
    pub async fn submit<K: AnyKind>(&self, job: Job<K>) -> Result<JobHandle<K>, SubmitError> {
        let intent = Intent { if_exists: job.given_if_exists(), has_id: job.has_id() };
        let (id, record) = job.into_record(self.0.session.wall(), || self.0.session.uuid())?;
        self.send(id, record, intent, None, Form::Plain).await
    }

    /// Submits a job whose payload is in its stored form, and opens it again if it has ended.
    pub(super) async fn submit_again(&self, id: JobId, record: JobRecord) -> Result<JobHandle, SubmitError> {
        let intent = Intent { if_exists: IfExists::Again, has_id: true };
        self.send(id, record, intent, None, Form::Stored).await
    }

    /// Submits a member of a group.
    pub(super) async fn submit_member<K: AnyKind>(
        &self,
        job: Job<K>,
        id: JobId,
        membership: Membership,
        entrant: Entrant,
    ) -> Result<JobHandle<K>, SubmitError> {
        let intent = Intent { if_exists: job.given_if_exists(), has_id: true };
        let (_, record) = job.into_record(self.0.session.wall(), || self.0.session.uuid())?;
        // A group is one trace, whichever process submits its members.
        let trace = record.trace.or_else(|| entrant.known.look().0.trace);
        let record = JobRecord { membership: Some(membership), trace, ..record };
        self.send(id, record, intent, Some(entrant), Form::Plain).await
    }

    /// Sends a submission. The batcher has it when this returns, unless its payload must be encoded first: the future is small, because
    /// thousands of them may be in progress.
    fn send<K: AnyKind>(
        &self,
        id: JobId,
        record: JobRecord,
        intent: Intent,
        entrant: Option<Entrant>,
        form: Form,
    ) -> impl Future<Output = Result<JobHandle<K>, SubmitError>> {
        let final_id = Some(&id).filter(|_| !self.may_pack(intent));
        let span = trace::submit(final_id, &record.kind, record.trace.as_ref());
        let within = || trace::context(&Span::current());
        let trace = trace::context(&span).or(record.trace).or_else(within);
        let has_final_id = final_id.is_some();
        let record = JobRecord { trace, ..record };
        let job = Unsent { id: id.clone(), record, intent, entrant, equal: None };
        let sent = match form {
            Form::Plain => Either::Left(self.encoded(job)),
            Form::Stored => Either::Right(self.batched(job, self.by(), None)),
        };
        let sent = sent.instrument(span.clone());
        async move {
            let reply = sent.await.and_then(|answer| answer.accepted(id));
            if !has_final_id {
                let id = match &reply {
                    Ok((id, _)) => Some(id),
                    Err(error) => error.job(),
                };
                span.record("job", id.map(tracing::field::display));
            }
            span.record("outcome", if reply.is_ok() { "accepted" } else { "failed" });
            let (id, accepted) = reply?;
            Ok(JobHandle { client: self.clone(), id, accepted, typed: PhantomData })
        }
    }

    /// Whether the job may get its id when it is sent, as a member of a segment. An encoded payload is bound to an id already.
    fn may_pack(&self, intent: Intent) -> bool {
        !intent.has_id && self.0.codec.is_none()
    }

    /// Hands a submission to the batcher; the future waits for the answer. The turn in its lane ends when the batcher has it.
    fn batched(
        &self,
        job: Unsent,
        by: Deadline,
        turn: Option<Turn>,
    ) -> impl Future<Output = Result<Answer, SubmitError>> {
        let Unsent { id, record, intent, entrant, equal } = job;
        let (gate, (reply, answer)) = (Arc::new(SendGate::default()), oneshot::channel());
        let mut submission = Submission::new(id.clone(), record, intent.if_exists, Arc::clone(&gate), reply);
        (submission.entrant, submission.equal) = (entrant, equal);
        submission.may_pack = self.may_pack(intent);
        if intent.if_exists == IfExists::Again {
            submission.reopening = self.change(ChangeKind::Reopened);
        }
        // Without an await before it, so that the batcher receives submissions in the order of their first polls. If
        // the batcher has ended, the submission and its reply channel are dropped here.
        if self.0.inbox.send(submission).is_err() {
            tracing::debug!(job = %id, "the batcher ended before it received the submission");
        }
        drop(turn);
        async move {
            let reason = match self.0.session.timeout_at(by.at, answer).await {
                Ok(Ok(answer)) => return Ok(answer),
                // The batcher has ended. It answers everything before it ends, unless its runtime was shut down.
                Ok(Err(_)) => Unavailable::Closed,
                Err(_) => self.0.session.not_in_time(by),
            };
            let id = match gate.abandon() {
                Ok(()) => return Err(SubmitError::NotSent { id, reason }),
                Err(SentAs::Record) => id,
                Err(SentAs::Member(member)) => member.job(),
            };
            Err(SubmitError::Unknown { id, repeatable: intent.is_repeatable(), within: by.within })
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
    pub async fn submit_many<K: AnyKind>(
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
    pub fn submit_stream<K: AnyKind>(
        &self,
        jobs: impl IntoIterator<Item = Job<K>>,
    ) -> impl Stream<Item = Result<JobHandle<K>, SubmitError>> {
        stream::iter(jobs).map(|job| self.submit(job)).buffered(MANY_UNDER_WAY)
    }
}

#[cfg(test)]
mod tests;
