//! What a handler is told about the attempt that it runs, and what it says of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether_core::job::{Payload, Policy, PolicyError, Progress, ProgressError};
use bellwether_core::name::{JobId, Kind, WorkerId};
use bellwether_core::trace::TraceContext;
use bellwether_host::worker::RunContext;
use tokio_util::sync::CancellationToken;

use super::node_client::NodeClient;

/// What a handler is told about the attempt that it runs.
#[derive(Debug, Clone)]
pub struct JobContext {
    run: RunContext,
    /// `None` for an attempt of no worker.
    node: Option<Arc<NodeClient>>,
}

impl JobContext {
    /// A first attempt of no worker, to try a handler by itself.
    #[must_use]
    pub fn detached(job: JobId, kind: Kind, payload: Payload) -> Self {
        Self { run: RunContext::detached(job, kind, payload), node: None }
    }

    /// A run of a node's worker.
    pub(crate) fn of_node(run: RunContext, node: Arc<NodeClient>) -> Self {
        Self { run, node: Some(node) }
    }

    /// The client of the node that runs it.
    pub(super) fn node(&self) -> Option<&NodeClient> {
        self.node.as_deref()
    }

    /// The same job's attempt of this number.
    #[must_use]
    pub fn with_attempt(self, attempt: u32) -> Self {
        Self { run: RunContext { attempt, ..self.run }, ..self }
    }

    /// The same job's attempt after others that left this.
    #[must_use]
    pub fn with_left(self, left: Progress) -> Self {
        Self { run: self.run.with_left(left), ..self }
    }

    /// The same job's attempt in this trace.
    #[must_use]
    pub fn with_trace(self, trace: TraceContext) -> Self {
        Self { run: RunContext { trace: Some(trace), ..self.run }, ..self }
    }

    /// The job's id: the same for every attempt, so it makes an idempotency key.
    #[must_use]
    pub fn job(&self) -> &JobId {
        &self.run.job
    }

    /// The job's kind.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.run.kind
    }

    /// 1, and one more for each operator's retry of the job after its end.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.run.generation
    }

    /// 1 for the first attempt of this generation.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.run.attempt
    }

    /// The trace that the job was submitted in, to be handed on to what the handler calls: its text is a `traceparent`. With
    /// OpenTelemetry in the process, of the span of this very attempt.
    #[must_use]
    pub fn trace_context(&self) -> Option<&TraceContext> {
        self.run.trace.as_ref()
    }

    /// What was submitted, byte for byte.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        &self.run.payload
    }

    /// The worker incarnation that runs it.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.run.worker
    }

    /// Grows from each attempt of this job to the next. A store that remembers the highest it has seen for the
    /// job, and refuses writes with a lower one, is safe from attempts that were given up.
    #[must_use]
    pub fn fencing_token(&self) -> i32 {
        self.run.fencing_token
    }

    /// Until when no other worker can be given this job, as far as is known now: it moves on while ZooKeeper
    /// answers. A side effect that must not happen twice should not begin later. The run of a job with a lane is
    /// dropped then, as the next job of the lane may begin.
    #[must_use]
    pub fn trusted_until(&self) -> Instant {
        self.run.trust.until()
    }

    /// Until when the attempt's lease runs, as far as is known now: it moves on when a renewal is written. Then
    /// [`JobContext::cancelled`] resolves, and the job goes to another worker.
    #[must_use]
    pub fn lease_until(&self) -> Instant {
        self.run.lease_until()
    }

    /// Asks for a lease of `lease` from now; it is never made shorter. 1 s to a week.
    ///
    /// Returns at once. The renewal is written when a third of the standing lease has passed, with those of the worker's
    /// other jobs, so that a job that is over by then writes nothing; [`JobContext::lease_until`] tells when it was. While
    /// ZooKeeper cannot be reached it waits, and the standing lease runs on. For a job that renews its lease
    /// automatically it is of use when the next lease shall be longer.
    ///
    /// # Errors
    /// A lease out of its bounds. Nothing is asked for then.
    pub fn renew_lease(&self, lease: Duration) -> Result<(), PolicyError> {
        Policy { lease: Some(lease), ..Policy::default() }.check()?;
        self.run.pulse.renew(lease);
        Ok(())
    }

    /// Says how far the attempt is, 0 to 100 percent if it knows, with a message of at most 1 KiB. The checkpoint stays.
    ///
    /// Returns at once. It is written once a second at most, the newest of what was said, and with the attempt's end in any
    /// case. It does not renew the lease. What was said when the process died in between is lost.
    ///
    /// # Errors
    /// A percentage or message out of its bounds. Nothing is said then.
    pub fn progress(
        &self,
        percent: impl Into<Option<u8>>,
        message: impl Into<Arc<str>>,
    ) -> Result<(), ProgressError> {
        let (percent, message) = (percent.into(), message.into());
        self.run.pulse.progress(|said| said.with_message(percent, message))
    }

    /// Keeps up to 16 KiB for the next attempt, which begins with them: [`JobContext::last_checkpoint`]. Percentage and
    /// message stay.
    ///
    /// Returns at once; written as [`JobContext::progress`] is. So the next attempt may begin with an older one: what was done
    /// after it is done again.
    ///
    /// # Errors
    /// Too many bytes. Nothing is kept of them then.
    pub fn checkpoint(&self, bytes: impl Into<Arc<[u8]>>) -> Result<(), ProgressError> {
        let bytes = bytes.into();
        self.run.pulse.progress(|said| said.with_checkpoint(bytes))
    }

    /// The checkpoint that the attempts before left, whatever this one said since.
    #[must_use]
    pub fn last_checkpoint(&self) -> Option<&[u8]> {
        self.run.left.as_ref().map(Progress::checkpoint).filter(|bytes| !bytes.is_empty())
    }

    /// What the attempts before left, whatever this one said since.
    #[must_use]
    pub fn last_progress(&self) -> Option<&Progress> {
        self.run.left.as_ref()
    }

    /// What the job's attempts said last, this one included.
    #[must_use]
    pub fn said(&self) -> Progress {
        self.run.pulse.said_last()
    }

    /// Whether the attempt should stop: cancelled, out of time, its lease over, handed back, or not ours any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.run.cancelled.is_cancelled()
    }

    /// Waits until the attempt should stop. An async handler that does not heed it is dropped at its next
    /// await a moment later; a blocking one keeps its slot until it returns.
    pub async fn cancelled(&self) {
        self.run.cancelled.cancelled().await;
    }

    /// The sign to stop, to be handed on. It also fires when the attempt is over.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.run.cancelled.clone()
    }
}
