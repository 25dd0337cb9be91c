//! The answer to an accepted submission.

use bellwether::client::JobHandle;
use serde::Serialize;
use utoipa::ToSchema;

use super::AcceptedDocument;

/// An accepted submission.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Submitted)]
pub struct SubmittedDocument {
    /// The job's id, given or generated.
    pub id: String,
    /// Whether a job with this id already existed, so that none was created.
    pub duplicate: bool,
    /// How the submission was accepted.
    pub accepted: AcceptedDocument,
    /// The generation that was accepted, for a wait. 1 if the job already existed: its generation was not read.
    pub generation: u32,
}

impl<K> From<&JobHandle<K>> for SubmittedDocument {
    fn from(job: &JobHandle<K>) -> Self {
        Self {
            id: job.id().to_string(),
            duplicate: job.is_duplicate(),
            accepted: AcceptedDocument(job.accepted()),
            generation: job.generation(),
        }
    }
}
