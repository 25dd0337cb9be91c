//! What a handler is told about the attempt that it runs, and what it says of it.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether_actors::worker::pulse::Pulse;
use bellwether_core::budget::DEFAULT_LEASE;
use bellwether_core::job::{Payload, Policy, PolicyError, Progress, ProgressError};
use bellwether_core::name::{JobId, Kind, WorkerId};
use bellwether_core::trace::TraceContext;
use bellwether_zk::Trust;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Tools;
use crate::clock;

/// What a handler is told about the attempt that it runs.
#[derive(Debug, Clone)]
pub struct JobContext {
    pub(in crate::worker) job: JobId,
    pub(in crate::worker) kind: Kind,
    pub(in crate::worker) generation: u32,
    pub(in crate::worker) attempt: u32,
    pub(in crate::worker) payload: Payload,
    pub(in crate::worker) worker: WorkerId,
    pub(in crate::worker) fencing_token: i32,
    pub(in crate::worker) cancelled: CancellationToken,
    pub(in crate::worker) trust: Trust,
    /// What the attempts before left.
    pub(in crate::worker) left: Option<Progress>,
    pub(in crate::worker) trace: Option<TraceContext>,
    pub(in crate::worker) pulse: Arc<Pulse>,
    pub(in crate::worker) tools: Tools,
}

/// How long a context without a worker says that it may be trusted.
const DETACHED_TRUST: Duration = Duration::from_secs(60);

impl JobContext {
    /// A first attempt of no worker, to try a handler by itself.
    #[must_use]
    pub fn detached(job: JobId, kind: Kind, payload: Payload) -> Self {
        let until = clock::now() + DEFAULT_LEASE;
        let pulse = Arc::new(Pulse::new((job.clone(), 1), None, until, Progress::default()));
        Self {
            pulse,
            left: None,
            trace: None,
            job,
            kind,
            generation: 1,
            attempt: 1,
            payload,
            worker: WorkerId::new(Uuid::nil()),
            fencing_token: 0,
            cancelled: CancellationToken::new(),
            trust: Trust::unanswered(DETACHED_TRUST),
            tools: Tools::default(),
        }
    }

    /// The same job's attempt of this number.
    #[must_use]
    pub fn with_attempt(self, attempt: u32) -> Self {
        Self { attempt, ..self }
    }

    /// The same job's attempt after others that left this.
    #[must_use]
    pub fn with_left(self, left: Progress) -> Self {
        let of = (self.job.clone(), self.attempt);
        let pulse = Arc::new(Pulse::new(of, None, self.pulse.until(), left.clone()));
        Self { left: Some(left), pulse, ..self }
    }

    /// The same job's attempt in this trace.
    #[must_use]
    pub fn with_trace(self, trace: TraceContext) -> Self {
        Self { trace: Some(trace), ..self }
    }

    /// The job's id: the same for every attempt, so it makes an idempotency key.
    #[must_use]
    pub fn job(&self) -> &JobId {
        &self.job
    }

    /// The job's kind.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// 1, and one more for each operator's retry of the job after its end.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// 1 for the first attempt of this generation.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The trace that the job was submitted in, to be handed on to what the handler calls: its text is a `traceparent`. With
    /// OpenTelemetry in the process, of the span of this very attempt.
    #[must_use]
    pub fn trace_context(&self) -> Option<&TraceContext> {
        self.trace.as_ref()
    }

    /// What was submitted, byte for byte.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// The worker incarnation that runs it.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Grows from each attempt of this job to the next. A store that remembers the highest it has seen for the
    /// job, and refuses writes with a lower one, is safe from attempts that were given up.
    #[must_use]
    pub fn fencing_token(&self) -> i32 {
        self.fencing_token
    }

    /// Until when no other worker can be given this job, as far as is known now: it moves on while ZooKeeper
    /// answers. A side effect that must not happen twice should not begin later. The run of a job with a lane is
    /// dropped then, as the next job of the lane may begin.
    #[must_use]
    pub fn trusted_until(&self) -> Instant {
        self.trust.until()
    }

    /// Until when the attempt's lease runs, as far as is known now: it moves on when a renewal is written. Then
    /// [`JobContext::cancelled`] resolves, and the job goes to another worker.
    #[must_use]
    pub fn lease_until(&self) -> Instant {
        clock::instant(self.pulse.until())
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
        self.pulse.renew(lease);
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
        self.pulse.progress(|said| said.with_message(percent, message))
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
        self.pulse.progress(|said| said.with_checkpoint(bytes))
    }

    /// The checkpoint that the attempts before left, whatever this one said since.
    #[must_use]
    pub fn last_checkpoint(&self) -> Option<&[u8]> {
        self.left.as_ref().map(Progress::checkpoint).filter(|bytes| !bytes.is_empty())
    }

    /// What the attempts before left, whatever this one said since.
    #[must_use]
    pub fn last_progress(&self) -> Option<&Progress> {
        self.left.as_ref()
    }

    /// What the job's attempts said last, this one included.
    #[must_use]
    pub fn said(&self) -> Progress {
        self.pulse.said_last()
    }

    /// What the package above gave; `None` for a context without a node, and for what is of another type.
    #[doc(hidden)]
    #[must_use]
    pub fn tools<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.tools.get()
    }

    /// Whether the attempt should stop: cancelled, out of time, its lease over, handed back, or not ours any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Waits until the attempt should stop. An async handler that does not heed it is dropped at its next
    /// await a moment later; a blocking one keeps its slot until it returns.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// The sign to stop, to be handed on. It also fires when the attempt is over.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.cancelled.clone()
    }
}
