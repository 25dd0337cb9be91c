//! The context of an attempt: the values that its handler can read and report.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether_core::job::{Membership, Payload, Priority, PriorityError, Progress, ProgressError, Role};
use bellwether_core::name::{GroupId, JobId, Kind, WorkerId};
use bellwether_core::trace::TraceContext;
use bellwether_host::clock;
use bellwether_host::worker::RunContext;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::node_client::NodeClient;
use super::{Closed, HandlerResult, Stop};

/// The context of one attempt, which its handler receives.
#[derive(Debug, Clone)]
pub struct JobContext {
    pub(super) run: RunContext,
    /// `None` for an attempt without a worker.
    node: Option<Arc<NodeClient>>,
}

impl JobContext {
    /// Returns the first attempt of a job without a worker, to test a handler alone.
    #[must_use]
    pub fn detached(job: JobId, kind: Kind, payload: Payload) -> Self {
        Self { run: RunContext::detached(job, kind, payload), node: None }
    }

    /// Returns the context of an attempt on a node's worker.
    pub(crate) fn of_node(run: RunContext, node: Arc<NodeClient>) -> Self {
        Self { run, node: Some(node) }
    }

    /// Returns the client of the node that runs the attempt.
    pub(super) fn node(&self) -> Option<&NodeClient> {
        self.node.as_deref()
    }

    /// Runs blocking code of the attempt on its own thread: see [`RunContext::blocking`].
    pub(super) async fn blocking(
        &self,
        code: impl FnOnce() -> HandlerResult + Send + 'static,
    ) -> HandlerResult {
        self.run.blocking(code).await
    }

    /// Sets the number of the attempt.
    #[must_use]
    pub fn with_attempt(self, attempt: u32) -> Self {
        Self { run: RunContext { attempt, ..self.run }, ..self }
    }

    /// Sets the priority of the job: 0 to 9.
    ///
    /// # Errors
    /// [`PriorityError`]: it is higher.
    pub fn with_priority(self, priority: u8) -> Result<Self, PriorityError> {
        let priority = Priority::new(priority)?;
        Ok(Self { run: RunContext { priority, ..self.run }, ..self })
    }

    /// Makes the job the member of a group with this number.
    #[must_use]
    pub fn with_member(self, group: GroupId, number: u32) -> Self {
        let membership = Some(Membership { group, role: Role::Member(number), counted: true });
        Self { run: RunContext { membership, ..self.run }, ..self }
    }

    /// Sets the progress that earlier attempts left.
    #[must_use]
    pub fn with_last_progress(self, left: Progress) -> Self {
        Self { run: self.run.with_left(left), ..self }
    }

    /// Sets the trace of the attempt.
    #[must_use]
    pub fn with_traceparent(self, trace: TraceContext) -> Self {
        Self { run: RunContext { trace: Some(trace), ..self.run }, ..self }
    }

    /// Returns the job's id. It is the same for every attempt, so it can serve as an idempotency key.
    #[must_use]
    pub fn job(&self) -> &JobId {
        &self.run.job
    }

    /// Returns the job's kind.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.run.kind
    }

    /// Returns the generation: 1, plus one for each time that the job was opened again after its end.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.run.generation
    }

    /// Returns the number of the attempt, 1 for the first of this generation.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.run.attempt
    }

    /// Returns how urgent the job is: 0 to 9, where 9 is the most urgent and 5 the default. A handler passes it on to its
    /// sub-jobs with [`Job::priority`](crate::Job::priority).
    #[must_use]
    pub fn priority(&self) -> u8 {
        self.run.priority.get()
    }

    /// Returns the group to which the job belongs: as a member, as its join, or as the finished handler of its parent.
    #[must_use]
    pub fn group(&self) -> Option<&GroupId> {
        self.run.membership.as_ref().map(|part| &part.group)
    }

    /// Returns the number of the member in its group; `None` if the job is not a member.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        match self.run.membership.as_ref()?.role {
            Role::Member(number) => Some(number),
            Role::Join | Role::Finish => None,
        }
    }

    /// Returns the trace that the job was submitted in, to propagate to the services that the handler calls. Its text
    /// is a `traceparent`. With OpenTelemetry in the process, it is the context of this attempt's span.
    #[must_use]
    pub fn traceparent(&self) -> Option<&TraceContext> {
        self.run.trace.as_ref()
    }

    /// Returns the submitted payload, byte for byte; decoded, if the node has a [codec](crate::codec).
    #[must_use]
    pub fn payload(&self) -> &Payload {
        &self.run.payload
    }

    /// Returns the worker incarnation that runs the attempt.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.run.worker
    }

    /// Returns the fencing token, which grows from each attempt of this job to the next. A store that remembers the
    /// highest token of a job and rejects writes with a lower one is safe from attempts that were closed but still
    /// run.
    #[must_use]
    pub fn fencing_token(&self) -> i32 {
        self.run.fencing_token
    }

    /// Whether another worker had the attempt before, and this one took it over: see [`TakeOver`](crate::node::TakeOver).
    #[must_use]
    pub fn is_taken_over(&self) -> bool {
        self.run.taken_over
    }

    /// Identifies the submission that created the job. An earlier job with the same id, whose record was removed, had another
    /// value. A process that runs attempts for a [remote worker](crate::node::TakeOver) proves with it which attempt it has.
    #[must_use]
    pub fn submission(&self) -> Uuid {
        self.run.submission
    }

    /// Returns the instant until which no other worker can be given this job, as far as is known now. Do not begin a
    /// side effect that must not happen twice after this instant.
    ///
    /// It is the earlier one of two: the end of the trust in the worker's session, which advances while ZooKeeper
    /// answers, and the end of the lease ([`JobContext::lease_until`]). It is in the past once the attempt should stop
    /// ([`JobContext::is_cancelled`]). If the job has a lane, the attempt is dropped when the trust in the session
    /// ends, because the next job of the lane may begin.
    ///
    /// Read it immediately before each effect: [`Instant`] does not count the time while the machine is suspended. A
    /// blocking handler can read it from its own thread: the worker need not be responsive for it to end.
    #[must_use]
    pub fn trusted_until(&self) -> Instant {
        clock::instant(self.run.trusted_until())
    }

    /// Returns the length of the lease with which the attempt started.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.run.lease
    }

    /// Returns whether the lease is renewed while the handler runs, as the job says; `None`: the option of its kind decides.
    #[must_use]
    pub fn auto_renew(&self) -> Option<bool> {
        self.run.auto_renew
    }

    /// Returns the time after which the attempt fails, counted from the start of its handler; `None` without a limit.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.run.timeout
    }

    /// Returns the instant at which the attempt's lease ends, as far as is known now. It advances when a renewal is
    /// written. At this instant [`JobContext::cancelled`] resolves, and the job goes to another worker.
    #[must_use]
    pub fn lease_until(&self) -> Instant {
        self.run.lease_until()
    }

    /// Reports the progress of the attempt: a percentage from 0 to 100, if known, and a message of at most 1 KiB. The
    /// checkpoint is kept.
    ///
    /// Returns immediately. The newest report is written at most once a second, and always with the attempt's end. A
    /// report that was not written yet is lost if the process dies. Progress does not renew the lease.
    ///
    /// # Errors
    /// Fails if the percentage or the message is out of bounds. Then nothing is reported.
    pub fn progress(
        &self,
        percent: impl Into<Option<u8>>,
        message: impl Into<Arc<str>>,
    ) -> Result<(), ProgressError> {
        let (percent, message) = (percent.into(), message.into());
        self.run.pulse.progress(|said| said.with_message(percent, message))
    }

    /// Stores up to 16 KiB for the next attempt, which reads them with [`JobContext::last_checkpoint`]. The
    /// percentage and the message are kept.
    ///
    /// Returns immediately, and is written like [`JobContext::progress`]. So the next attempt may start from an older
    /// checkpoint and repeat the work that was done after it.
    ///
    /// # Errors
    /// Fails if there are too many bytes. Then the checkpoint is unchanged.
    pub fn checkpoint(&self, bytes: impl Into<Arc<[u8]>>) -> Result<(), ProgressError> {
        let bytes = bytes.into();
        self.run.pulse.progress(|said| said.with_checkpoint(bytes))
    }

    /// Returns the checkpoint that earlier attempts left. Reports of this attempt do not change it.
    #[must_use]
    pub fn last_checkpoint(&self) -> Option<&[u8]> {
        self.run.left.as_ref().map(Progress::checkpoint).filter(|bytes| !bytes.is_empty())
    }

    /// Returns the progress that earlier attempts left. Reports of this attempt do not change it.
    #[must_use]
    pub fn last_progress(&self) -> Option<&Progress> {
        self.run.left.as_ref()
    }

    /// Returns the newest progress of the job, including reports of this attempt.
    #[must_use]
    pub fn newest_progress(&self) -> Progress {
        self.run.pulse.said_last()
    }

    /// Whether the attempt should stop: it was cancelled, timed out, lost its lease, was handed back, or was closed.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.run.cancelled.is_cancelled()
    }

    /// Waits until the attempt should stop. An async handler that does not return is dropped at its next await
    /// shortly after. A blocking handler occupies its slot until it returns.
    pub async fn cancelled(&self) {
        self.run.cancelled.cancelled().await;
    }

    /// Returns why the attempt should stop; `None` while it need not, or when its worker has ended.
    #[must_use]
    pub fn stop_reason(&self) -> Option<Stop> {
        self.run.pulse.stop()
    }

    /// Waits until the attempt is closed: its end is written by this worker, or was written by another process.
    ///
    /// A handler ends before its attempt is closed, so wait in another task, with a clone of the context. For an
    /// attempt without a worker the result is [`Closed::Unknown`].
    ///
    /// # Cancellation
    /// Cancel safe.
    ///
    /// # Connection loss
    /// The call keeps waiting while the worker resolves a lost reply. If its session ends first, the result is
    /// [`Closed::Unknown`].
    pub async fn closed(&self) -> Closed {
        poll_fn(|cx| self.run.pulse.poll_closed(cx)).await
    }

    /// Returns the cancellation token of the attempt, to pass on to other code. It also fires when the attempt has
    /// ended.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.run.cancelled.clone()
    }
}
