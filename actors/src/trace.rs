//! The spans of a job, and how they are linked to a trace.
//!
//! ```text
//!  (caller) ─▶ submit ─┬─▶ assign   the leader; one per attempt
//!                      ├─▶ run      the worker; one per attempt; contains the handler's own spans and events
//!                      └─▶ report   the worker; until the attempt is closed
//! ```
//!
//! For a schedule's job the leader creates the span `submit`, which starts a new trace for each transaction that it
//! sends. A repeated transaction, after a rejection or a lost reply, has its own span. At most one of them is applied
//! (S8), and the record contains the context of that span.
//!
//! The trace context is stored in the job's record (docs/adr/0020-trace-context.md), so an attempt after the death of a
//! leader or a worker belongs to the same trace. `run` has the level info, because it labels the log lines of the
//! handler. The other spans have the level debug, and `assign` and `report` exist only for a sampled trace. Without a
//! subscriber the only cost is the check for one.
//!
//! OpenTelemetry's layer creates the ids and exports the spans, if the build has the feature `otel` and the process's
//! subscriber has the layer. Without it a job keeps the trace that it was submitted with, and no span has an id.

use bellwether_core::job::Ending;
use bellwether_core::machine::worker::Finished;
use bellwether_core::machine::worker::executor_pool::Run;
use bellwether_core::machine::{assigner, schedule_keeper};
use bellwether_core::name::{JobId, Kind};
use bellwether_core::outcome::Outcome;
use bellwether_core::trace::TraceContext;
use bellwether_core::txn::{self, Batch};
use tracing::Span;
use tracing::field::Empty;

#[cfg(feature = "otel")]
mod otel;
#[cfg(not(feature = "otel"))]
#[path = "trace/none.rs"]
mod otel;

pub use otel::{context, follow};

/// The target of these spans. A subscriber can select them by it, independently of their levels.
pub const TARGET: &str = "bellwether::trace";

/// Creates the span of a submission, in the given trace or else in the trace of the current span. A job without an id gets one when
/// it is sent.
#[must_use]
pub fn submit(job: Option<&JobId>, kind: &Kind, given: Option<&TraceContext>) -> Span {
    let job = job.map(tracing::field::display);
    let span = tracing::debug_span!(target: TARGET, "submit", job, %kind, outcome = Empty);
    follow(&span, given);
    span
}

/// The spans of a batch of ticks that is sent to ZooKeeper: one trace for each job that the batch creates.
pub struct Ticking(Vec<Span>);

impl Ticking {
    /// Starts the spans, and stores their contexts in the jobs if OpenTelemetry is active.
    pub fn begin(batch: &mut Batch<schedule_keeper::Key>) -> Self {
        let mut spans = Vec::new();
        if !tracing::enabled!(target: TARGET, tracing::Level::DEBUG) {
            return Self(spans);
        }
        batch.rewrite(|key, ops| {
            let Some((job, made)) = txn::job_of_tick(ops) else { return };
            let span = tracing::debug_span!(
                target: TARGET,
                parent: None,
                "submit",
                %job,
                kind = %made.kind,
                schedule = %key.schedule,
                outcome = Empty,
            );
            if let Some(trace) = context(&span) {
                txn::trace_tick(ops, trace);
            }
            spans.push(span);
        });
        Self(spans)
    }

    /// Ends the spans with the batch's outcome.
    pub fn end(self, outcome: &Outcome<()>) {
        let outcome = match outcome {
            Outcome::Applied(()) => "accepted",
            Outcome::Rejected(_) => "rejected",
            Outcome::Unknown => "unknown",
        };
        for span in self.0 {
            span.record("outcome", outcome);
        }
    }
}

/// The spans of a batch of assignments that is sent to ZooKeeper: one for each job whose trace is sampled, because a
/// trace belongs to one job.
pub struct Assigning(Vec<Span>);

impl Assigning {
    /// Starts a span for each job of the batch whose trace is sampled.
    pub fn begin(batch: &Batch<assigner::Job>, epoch: i32) -> Self {
        if !tracing::enabled!(target: TARGET, tracing::Level::DEBUG) {
            return Self(Vec::new());
        }
        let batched = batch.keys().count();
        let spans = batch.keys().filter_map(|job| {
            let trace = job.trace()?;
            let span = tracing::debug_span!(
                target: TARGET,
                parent: None,
                "assign",
                job = %job.id(),
                kind = %job.kind(),
                attempt = job.attempt(),
                epoch,
                worker = %job.worker(),
                batched,
                outcome = Empty,
            );
            follow(&span, Some(trace));
            Some(span)
        });
        Self(spans.collect())
    }

    /// Ends the spans with the batch's outcome.
    pub fn end(self, outcome: &Outcome<()>) {
        let outcome = match outcome {
            Outcome::Applied(()) => "applied",
            Outcome::Rejected(_) => "rejected",
            Outcome::Unknown => "unknown",
        };
        for span in self.0 {
            span.record("outcome", outcome);
        }
    }
}

/// Creates the span of an attempt's run.
#[must_use]
pub fn run(job: &JobId, kind: &Kind, attempt: u32, epoch: i32, trace: Option<&TraceContext>) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        parent: None,
        "run",
        %job,
        %kind,
        attempt,
        epoch,
        trace = trace.map(|trace| display(trace.trace_id())),
        outcome = Empty,
    );
    follow(&span, trace);
    span
}

/// Records in the span how a run ended.
pub fn ran(span: &Span, how: &Run) {
    let outcome = match how {
        Run::Succeeded(_) => "succeeded",
        Run::Failed(_) => "failed",
        Run::Invalid(_) => "invalid",
        Run::Deferred(_) => "snoozed",
        Run::Aborted => "aborted",
        Run::Lapsed => "lapsed",
    };
    span.record("outcome", outcome);
    if let Run::Failed(why) | Run::Invalid(why) = how {
        otel::failed(span, why);
    }
}

/// Creates the span of an attempt's report, from the end of its run until the attempt is closed; `None` if its trace is
/// not sampled.
#[must_use]
pub fn report(finished: &Finished) -> Option<Span> {
    let trace = finished.start.record.trace.filter(TraceContext::is_sampled)?;
    let ending = match finished.ending {
        Ending::Succeeded(_) => "succeeded",
        Ending::Failed(_) => "failed",
        Ending::Lost => "lost",
        Ending::Released => "released",
        Ending::Cancelled => "cancelled",
        Ending::Invalid(_) => "invalid",
        Ending::Snoozed(_) => "snoozed",
        Ending::LeaseExpired => "lease_expired",
        Ending::Expired => "expired",
    };
    let span = tracing::debug_span!(
        target: TARGET,
        parent: None,
        "report",
        job = %finished.start.job,
        kind = %finished.start.record.kind,
        attempt = finished.start.assignment.attempt,
        ending,
        outcome = Empty,
    );
    follow(&span, Some(&trace));
    (!span.is_disabled()).then_some(span)
}
