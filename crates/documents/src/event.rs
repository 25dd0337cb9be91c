//! A change of a job's state.

use bellwether::State;
use bellwether::client::Event;
use serde::Serialize;
use utoipa::ToSchema;

use super::name;

/// The data of an event `job`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Event)]
pub struct EventDocument {
    /// The job's id.
    job: String,
    /// Kind of the job; null if its record cannot be read.
    #[schema(required)]
    kind: Option<String>,
    /// State of the job.
    state: State,
    /// The worker of the job, while it runs.
    #[schema(required)]
    worker: Option<String>,
    /// The current attempt, or the last closed one; 0 before the first.
    attempt: u32,
    /// 1, plus one for each time the job was opened again.
    generation: u32,
    /// The last error, unless the job succeeded.
    #[schema(required)]
    error: Option<String>,
}

impl From<&Event> for EventDocument {
    fn from(event: &Event) -> Self {
        Self {
            job: event.job.to_string(),
            kind: name(event.kind.as_ref()),
            state: event.state,
            worker: name(event.worker.as_ref()),
            attempt: event.attempt,
            generation: event.generation,
            error: event.error.clone(),
        }
    }
}
