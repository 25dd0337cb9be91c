//! A closed attempt of a job.

use bellwether::client::{PastAttemptView, rfc3339};
use serde::Serialize;
use utoipa::ToSchema;

/// A closed attempt.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = PastAttempt)]
pub(crate) struct PastAttemptDocument {
    /// The generation of the job in which it ran.
    generation: u32,
    /// Its number in that generation.
    attempt: u32,
    /// The worker that it was assigned to.
    worker: String,
    /// When it was assigned, by the leader's clock; null if that is not known.
    #[schema(required, format = DateTime)]
    assigned_at: Option<String>,
    /// When it was closed, by the clock of its worker or of the leader.
    #[schema(format = DateTime)]
    ended_at: String,
    /// `succeeded`, `failed`, `lost`, `released`, `cancelled`, `invalid`, `snoozed`, `lease_expired` or `expired`.
    #[schema(example = "failed")]
    outcome: &'static str,
    /// The first 256 bytes of the error that the handler reported.
    #[schema(required)]
    error: Option<String>,
}

impl From<&PastAttemptView> for PastAttemptDocument {
    fn from(past: &PastAttemptView) -> Self {
        Self {
            generation: past.generation,
            attempt: past.attempt,
            worker: past.worker.to_string(),
            assigned_at: past.assigned_at.map(rfc3339),
            ended_at: rfc3339(past.ended_at),
            outcome: past.outcome.as_str(),
            error: past.error.clone(),
        }
    }
}
