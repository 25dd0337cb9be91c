//! What documents look like, for the OpenAPI document. The documents themselves are written by the client's views, which
//! the command line prints as well; a test compares the two.

use serde::Serialize;
use utoipa::ToSchema;

use bellwether::client::{Accepted, JobHandle, State};

/// A job.
#[derive(ToSchema)]
#[schema(as = Job)]
#[expect(dead_code, reason = "describes what another type writes")]
pub(super) struct JobDocument {
    /// Its id.
    #[schema(example = "sum-1")]
    id: String,
    /// Which handler runs it; null when its record cannot be read.
    #[schema(example = "sum", required)]
    kind: Option<String>,
    /// Where it is in its life.
    state: StateName,
    /// The attempt under way or the last; 0 before the first.
    attempt: u32,
    /// The worker that has it or had it last.
    #[schema(required)]
    worker: Option<String>,
    /// That worker's node, while the worker lives.
    #[schema(required)]
    node: Option<String>,
    /// What its handler returned: JSON as it is, other text as a string, other bytes as `{content_type, base64}`.
    #[schema(required)]
    result: Option<serde_json::Value>,
    /// The last error.
    #[schema(required)]
    error: Option<String>,
    /// How far it is, as its handler said last.
    #[schema(required, minimum = 0, maximum = 100)]
    percent: Option<u8>,
    /// What its handler said last.
    #[schema(required)]
    message: Option<String>,
    /// How many bytes its handler left for its next attempt.
    #[schema(required)]
    checkpoint_bytes: Option<u64>,
    /// While it runs: how long its worker may give no sign of life, in milliseconds.
    #[schema(required)]
    lease_ms: Option<u64>,
    /// Why it does not run now, as a word.
    #[schema(required, example = "busy")]
    waiting: Option<String>,
    /// Why it does not run now, as a sentence.
    #[schema(required)]
    waiting_for: Option<String>,
    /// Its lane.
    #[schema(required)]
    lane: Option<String>,
    /// The job whose turn it is in that lane, while this one waits for it.
    #[schema(required)]
    behind: Option<String>,
    /// Whether the attempt under way was asked to stop.
    cancel_requested: bool,
    /// The group that it is part of.
    #[schema(required)]
    group: Option<String>,
    /// The group of its sub-jobs.
    #[schema(required)]
    sub_jobs: Option<String>,
    /// 1, and one more for each retry by an operator.
    generation: u32,
    /// Attempts of this generation that failed.
    failures: u32,
    /// Attempts of this generation that lost their worker.
    losses: u32,
    /// 0 to 9; 9 goes first. Null when its record cannot be read.
    #[schema(required, minimum = 0, maximum = 9)]
    priority: Option<u8>,
    /// The trace that it was submitted in: 32 hexadecimal digits.
    #[schema(required)]
    trace_id: Option<String>,
    /// No attempt begins after this.
    #[schema(required, format = DateTime)]
    expires_at: Option<String>,
    /// RFC 3339, by the clock of who submitted it.
    #[schema(required, format = DateTime)]
    submitted_at: Option<String>,
    /// When it may start, or its backoff ends, while it is delayed.
    #[schema(required, format = DateTime)]
    not_before: Option<String>,
    /// When it ended.
    #[schema(required, format = DateTime)]
    finished_at: Option<String>,
    /// What was submitted, in the form of `result`.
    #[schema(required)]
    payload: Option<serde_json::Value>,
}

/// Where a job is in its life.
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

/// What was accepted.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Submitted {
    /// The job's id, given or made.
    pub(super) id: String,
    /// Whether nothing was made, because there was a job with this id.
    pub(super) duplicate: bool,
    /// How it was accepted: `new`, `same` (the job was there), `other` (another job has the id, and `if_exists` is
    /// `ignore`), `again` (it was over, and is open again).
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
