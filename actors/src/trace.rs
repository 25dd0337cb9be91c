//! The spans of a job's life, and how they find their trace.
//!
//! ```text
//!  (caller) ─▶ submit ─┬─▶ assign   the leader; one for each attempt
//!                      ├─▶ run      the worker; one for each attempt; the handler's own spans and events are within
//!                      └─▶ report   the worker; until the attempt is closed
//! ```
//!
//! Of a schedule's job the leader makes `submit`, which begins a trace: one for each transaction that it sends. What follows
//! one that is rejected, or whose reply is lost, has a span of its own; at most one of them is applied (S8), and the record
//! names that one's span.
//!
//! What ties them together stands in the job's record (docs/adr/0020-trace-context.md), not in memory: so an attempt after the
//! death of a leader or a worker is part of the same trace. `run` is made at the level of info, for it says whose lines the
//! handler's are; the others at that of debug, and `assign` and `report` only for a trace that is recorded. Where nobody
//! listens to them they cost the look whether somebody does.
//!
//! Ids are made and handed to a collector by OpenTelemetry's layer, if the feature `otel` and the process's subscriber have
//! it. Without it a job keeps the trace that it was submitted with, and no span has an id.

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

/// The target of these spans, for a subscriber that wants them and not what else is at their levels.
pub const TARGET: &str = "bellwether::trace";

/// Of a submission, within the trace that was given, or that of the span that it is made in.
#[must_use]
pub fn submit(job: &JobId, kind: &Kind, given: Option<&TraceContext>) -> Span {
    let span = tracing::debug_span!(target: TARGET, "submit", %job, %kind, outcome = Empty);
    follow(&span, given);
    span
}

/// The spans of a batch of ticks on its way to ZooKeeper: a trace for each job that the batch makes.
pub struct Ticking(Vec<Span>);

impl Ticking {
    /// Begins the spans, and puts their contexts into the jobs if OpenTelemetry gave them any.
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

/// The spans of a batch of assignments on its way to ZooKeeper: one for each job whose trace is recorded, because a trace
/// shows one job.
pub struct Assigning(Vec<Span>);

impl Assigning {
    /// Begins a span for each job of the batch whose trace is recorded.
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

/// The span of an attempt's run.
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

/// Records how a run ended, as the worker saw it.
pub fn ran(span: &Span, how: &Run) {
    let outcome = match how {
        Run::Succeeded(_) => "succeeded",
        Run::Failed(_) => "failed",
        Run::Invalid(_) => "invalid",
        Run::Deferred(_) => "deferred",
        Run::Aborted => "aborted",
        Run::Lapsed => "lapsed",
    };
    span.record("outcome", outcome);
    if let Run::Failed(why) | Run::Invalid(why) = how {
        otel::failed(span, why);
    }
}

/// The span of an attempt's report, from the end of its run until the attempt is closed; `None` if its trace is not
/// recorded.
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
        Ending::Deferred(_) => "deferred",
        Ending::LeaseExpired => "lease_expired",
        Ending::Overdue => "overdue",
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
