//! Schemas of the OpenAPI document. The documents themselves are written by the client's views, which the command line
//! prints, too; a test compares schemas and documents.

use serde::Serialize;
use utoipa::ToSchema;

use bellwether::client::{Accepted, JobHandle, State};

/// A job.
#[derive(ToSchema)]
#[schema(as = Job)]
#[expect(dead_code, reason = "describes what another type writes")]
pub(super) struct JobDocument {
    /// The job's id.
    #[schema(example = "sum-1")]
    id: String,
    /// Kind of the job; null if its record cannot be read.
    #[schema(example = "sum", required)]
    kind: Option<String>,
    /// State of the job.
    state: StateName,
    /// The current or last attempt; 0 before the first.
    attempt: u32,
    /// The worker of the current or last attempt.
    #[schema(required)]
    worker: Option<String>,
    /// The node of that worker, while the worker lives.
    #[schema(required)]
    node: Option<String>,
    /// Result of the handler: JSON unchanged, other text as a string, other bytes as `{content_type, base64}`.
    #[schema(required)]
    result: Option<serde_json::Value>,
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
    checkpoint_bytes: Option<u64>,
    /// While the job runs: the lease of its attempt in milliseconds.
    #[schema(required)]
    lease_ms: Option<u64>,
    /// Why the job does not run now, as a word.
    #[schema(required, example = "busy")]
    waiting: Option<String>,
    /// Why the job does not run now, as a sentence.
    #[schema(required)]
    waiting_for: Option<String>,
    /// Lane of the job.
    #[schema(required)]
    lane: Option<String>,
    /// The first job of the lane, while this job waits for it.
    #[schema(required)]
    behind: Option<String>,
    /// Whether the current attempt was asked to stop.
    cancel_requested: bool,
    /// The group that the job belongs to.
    #[schema(required)]
    group: Option<String>,
    /// The group of the job's sub-jobs.
    #[schema(required)]
    sub_jobs: Option<String>,
    /// 1, plus one for each time the job was opened again.
    generation: u32,
    /// Failed attempts of this generation.
    failures: u32,
    /// Lost attempts of this generation.
    losses: u32,
    /// Priority, 0 to 9; 9 runs first. Null if the record cannot be read.
    #[schema(required, minimum = 0, maximum = 9)]
    priority: Option<u8>,
    /// Trace id of the submission: 32 hexadecimal digits.
    #[schema(required)]
    trace_id: Option<String>,
    /// No attempt starts after this instant.
    #[schema(required, format = DateTime)]
    expires_at: Option<String>,
    /// When it was submitted, in RFC 3339, by the submitter's clock.
    #[schema(required, format = DateTime)]
    submitted_at: Option<String>,
    /// While the job is delayed: when it may start, or when its backoff ends.
    #[schema(required, format = DateTime)]
    not_before: Option<String>,
    /// When the job ended.
    #[schema(required, format = DateTime)]
    finished_at: Option<String>,
    /// The payload, in the form of `result`.
    #[schema(required)]
    payload: Option<serde_json::Value>,
}

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = State)]
pub(super) enum StateName {
    Queued,
    Delayed,
    Running,
    Succeeded,
    Cancelled,
    Dead,
    Quarantined,
}

impl From<StateName> for State {
    fn from(name: StateName) -> Self {
        match name {
            StateName::Queued => Self::Queued,
            StateName::Delayed => Self::Delayed,
            StateName::Running => Self::Running,
            StateName::Succeeded => Self::Succeeded,
            StateName::Cancelled => Self::Cancelled,
            StateName::Dead => Self::Dead,
            StateName::Quarantined => Self::Quarantined,
        }
    }
}

/// An accepted submission.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Submitted {
    /// The job's id, given or generated.
    pub(super) id: String,
    /// Whether a job with this id already existed, so that none was created.
    pub(super) duplicate: bool,
    /// How the submission was accepted: `new`, `same` (the job already existed), `other` (another job has the id, and
    /// `if_exists` is `ignore`), `again` (the job had ended and is open again).
    pub(super) accepted: &'static str,
}

impl Submitted {
    pub(super) fn of<K>(job: &JobHandle<K>) -> Self {
        let accepted = match job.accepted() {
            Accepted::New => "new",
            Accepted::Same => "same",
            Accepted::Other => "other",
            Accepted::Again(_) => "again",
        };
        Self { id: job.id().to_string(), duplicate: job.is_duplicate(), accepted }
    }
}
