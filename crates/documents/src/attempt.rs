//! A closed attempt of a job.

use bellwether::InstantText;
use bellwether::client::{AttemptOutcome, PastAttemptView};
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
    #[schema(required)]
    assigned_at: Option<InstantText>,
    /// When it was closed, by the clock of its worker or of the leader.
    ended_at: InstantText,
    /// How it ended.
    outcome: AttemptOutcome,
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
            assigned_at: past.assigned_at.map(InstantText),
            ended_at: InstantText(past.ended_at),
            outcome: past.outcome,
            error: past.error.clone(),
        }
    }
}
