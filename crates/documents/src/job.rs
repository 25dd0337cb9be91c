//! A job.

use bellwether::client::{JobOptions, WaitReason};
use bellwether::{DurationText, InstantText, JobView, State};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::attempt::PastAttemptDocument;
use super::embedded::embedded;
use super::{ChangedDocument, name};

/// A job.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Job)]
pub struct JobDocument {
    /// The job's id.
    #[schema(example = "sum-1")]
    id: String,
    /// Kind of the job; null if its record cannot be read.
    #[schema(example = "sum", required)]
    kind: Option<String>,
    /// State of the job.
    state: State,
    /// The current or last attempt; 0 before the first.
    attempt: u32,
    /// The worker of the current or last attempt.
    #[schema(required)]
    worker: Option<String>,
    /// The node of that worker, while the worker lives.
    #[schema(required)]
    node: Option<String>,
    /// Result of the handler: JSON unchanged, other text as a string, other bytes as `{content_type, base64}`.
    #[schema(required, value_type = Option<serde_json::Value>)]
    result: Option<Box<RawValue>>,
    /// The last error.
    #[schema(required)]
    error: Option<String>,
    /// Progress in percent, as last reported by the handler.
    #[schema(required, minimum = 0, maximum = 100)]
    percent: Option<u8>,
    /// Message, as last reported by the handler.
    #[schema(required)]
    message: Option<String>,
    /// Size of the checkpoint for the next attempt.
    #[schema(required)]
    checkpoint_bytes: Option<usize>,
    /// While the job runs: the lease of its attempt.
    #[schema(required)]
    lease: Option<DurationText>,
    /// Why the job does not run now.
    #[schema(required)]
    waiting: Option<WaitReason>,
    /// Why the job does not run now, as a sentence.
    #[schema(required)]
    waiting_for: Option<String>,
    /// The group that the job belongs to.
    #[schema(required)]
    group: Option<String>,
    /// The groups of the job's sub-jobs, one per kind. A wait shows only the first one.
    sub_jobs: Vec<String>,
    /// The first job of the lane, while this job waits for it.
    #[schema(required)]
    behind: Option<String>,
    /// Whether the current attempt was asked to stop.
    cancel_requested: bool,
    /// 1, plus one for each time the job was opened again.
    generation: u32,
    /// The closed attempts of this and earlier generations, oldest first: the newest eight that did not succeed, and the one that
    /// succeeded.
    attempts: Vec<PastAttemptDocument>,
    /// While the job runs: when its attempt was assigned, by the leader's clock.
    #[schema(required)]
    assigned_at: Option<InstantText>,
    /// Failed attempts of this generation.
    failures: u32,
    /// Lost attempts of this generation.
    losses: u32,
    /// Effective options; null if the record cannot be read.
    #[schema(required)]
    options: Option<JobOptions>,
    /// No attempt starts after this instant.
    #[schema(required)]
    expires_at: Option<InstantText>,
    /// When it was submitted, by the submitter's clock.
    #[schema(required)]
    submitted_at: Option<InstantText>,
    /// While the job is delayed: when it may start, or when its backoff ends.
    #[schema(required)]
    not_before: Option<InstantText>,
    /// When the job ended.
    #[schema(required)]
    finished_at: Option<InstantText>,
    /// Who cancelled the job, opened it again or released it last; null if only the cluster did.
    #[schema(required)]
    changed: Option<ChangedDocument>,
    /// Trace id of the submission: 32 hexadecimal digits.
    #[schema(required)]
    trace_id: Option<String>,
    /// The payload, in the form of `result`.
    #[schema(required, value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
}

impl From<&JobView> for JobDocument {
    fn from(job: &JobView) -> Self {
        let progress = job.progress.as_ref();
        let message = progress.map(|progress| progress.message()).filter(|message| !message.is_empty());
        let checkpoint = progress.map(|progress| progress.checkpoint().len()).filter(|bytes| *bytes > 0);
        Self {
            id: job.id.to_string(),
            kind: name(job.kind.as_ref()),
            state: job.state,
            attempt: job.attempt,
            worker: name(job.worker.as_ref()),
            node: name(job.node.as_ref()),
            result: job.result.as_ref().map(embedded),
            error: job.error.clone(),
            percent: progress.and_then(|progress| progress.percent()),
            message: message.map(ToOwned::to_owned),
            checkpoint_bytes: checkpoint,
            lease: job.lease.map(DurationText),
            waiting: job.waiting,
            waiting_for: job.waiting_for(),
            group: name(job.group.as_ref()),
            sub_jobs: job.sub_jobs.iter().map(ToString::to_string).collect(),
            behind: name(job.behind.as_ref()),
            cancel_requested: job.cancel_requested,
            generation: job.generation,
            attempts: job.attempts.iter().map(Into::into).collect(),
            assigned_at: job.assigned_at.map(InstantText),
            failures: job.failures,
            losses: job.losses,
            options: job.options.clone(),
            expires_at: job.expires_at.map(InstantText),
            submitted_at: job.submitted_at.map(InstantText),
            not_before: job.not_before.map(InstantText),
            finished_at: job.finished_at.map(InstantText),
            changed: job.changed.as_ref().map(Into::into),
            trace_id: job.traceparent.map(|trace| trace.trace_id()),
            payload: job.payload.as_ref().map(embedded),
        }
    }
}
