//! The context in which a worker runs a handler.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether_actors::worker::pulse::Pulse;
use bellwether_core::budget::DEFAULT_LEASE;
use bellwether_core::job::{Membership, Payload, Priority, Progress};
use bellwether_core::name::{JobId, Kind, WorkerId};
use bellwether_core::time::Millis;
use bellwether_core::trace::TraceContext;
use bellwether_zk::Trust;
use tokio_util::sync::CancellationToken;
use tracing::Span;
use uuid::Uuid;

use super::Slot;
use crate::clock;

/// One run of a handler: the attempt, and the state that the run shares with its worker.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// The job.
    pub job: JobId,
    /// The job's kind.
    pub kind: Kind,
    /// The job's generation.
    pub generation: u32,
    /// The number of the attempt within the generation.
    pub attempt: u32,
    /// How urgent the job is.
    pub priority: Priority,
    /// The job's group and its role there.
    pub membership: Option<Membership>,
    /// The payload, byte for byte.
    pub payload: Payload,
    /// The worker incarnation that runs the attempt.
    pub worker: WorkerId,
    /// The version of the job's record.
    pub fencing_token: i32,
    /// The submission of the job.
    pub submission: Uuid,
    /// Whether the attempt was taken over from another worker.
    pub taken_over: bool,
    /// The length of the attempt's lease when it started.
    pub lease: Duration,
    /// Whether the lease is renewed while the handler runs, as the job says; `None`: its kind decides.
    pub auto_renew: Option<bool>,
    /// The time limit of the attempt.
    pub timeout: Option<Duration>,
    /// Fires when the attempt should stop, and when it has ended.
    pub cancelled: CancellationToken,
    /// How long the worker's session can be trusted.
    pub trust: Trust,
    /// The progress of the earlier attempts.
    pub left: Option<Progress>,
    /// The trace of the run.
    pub trace: Option<TraceContext>,
    /// The span of the run. The handler is expected to run in it.
    pub span: Span,
    /// The handler's reports about the attempt, and the lease.
    pub pulse: Arc<Pulse>,
    /// The slot in which the attempt runs.
    pub slot: Slot,
    /// When the run was launched.
    pub launched: Millis,
}

/// The trust of a context without a worker.
const DETACHED_TRUST: Duration = Duration::from_secs(60);

impl RunContext {
    /// Creates the context of a first attempt without a worker.
    #[must_use]
    pub fn detached(job: JobId, kind: Kind, payload: Payload) -> Self {
        let until = clock::now() + DEFAULT_LEASE;
        let pulse = Arc::new(Pulse::new((job.clone(), 1), None, until, Progress::default()));
        Self {
            pulse,
            slot: Slot::default(),
            left: None,
            trace: None,
            span: Span::none(),
            job,
            kind,
            generation: 1,
            attempt: 1,
            priority: Priority::default(),
            membership: None,
            payload,
            worker: WorkerId::new(Uuid::nil()),
            fencing_token: 0,
            submission: Uuid::nil(),
            taken_over: false,
            lease: DEFAULT_LEASE,
            auto_renew: None,
            timeout: None,
            cancelled: CancellationToken::new(),
            trust: Trust::unanswered(DETACHED_TRUST),
            launched: clock::now(),
        }
    }

    /// Starts with the progress of earlier attempts.
    #[must_use]
    pub fn with_left(self, left: Progress) -> Self {
        let of = (self.job.clone(), self.attempt);
        let pulse = Arc::new(Pulse::new(of, None, self.pulse.until(), left.clone()));
        Self { left: Some(left), pulse, ..self }
    }

    /// The currently known end of the attempt's lease.
    #[must_use]
    pub fn lease_until(&self) -> Instant {
        clock::instant(self.pulse.until())
    }

    /// The time until which no other worker can have the job: the earlier end of the session's trust and of the lease.
    /// When the run was told to stop, it is the time of the launch: in the past, however late the caller compares it.
    #[must_use]
    pub fn trusted_until(&self) -> Millis {
        if self.cancelled.is_cancelled() {
            return self.launched;
        }
        self.trust.until().min(self.pulse.until())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunContext {
        let (job, kind) = (JobId::new("a").unwrap(), Kind::new("sum").unwrap());
        RunContext::detached(job, kind, Payload::json(*b"1").unwrap())
    }

    #[test]
    fn trust_ends_with_the_session_or_the_lease_whichever_is_earlier() {
        let run = run();
        assert_eq!(run.trusted_until(), run.trust.until(), "the lease is longer");
        run.pulse.set_until(run.launched);
        assert_eq!(run.trusted_until(), run.launched);
    }

    #[test]
    fn trust_has_ended_when_the_run_must_stop() {
        let run = RunContext { launched: Millis(7), ..run() };
        run.cancelled.cancel();
        assert_eq!(run.trusted_until(), Millis(7));
    }
}
