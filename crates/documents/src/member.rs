//! A member of a group.

use bellwether::{JobId, JobView};
use serde::Serialize;
use utoipa::ToSchema;

use super::JobDocument;

/// A member of a group.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Member)]
pub struct MemberDocument {
    /// Number of the member.
    number: u32,
    /// Id of its job.
    id: String,
    /// The job; null if its record was removed.
    #[schema(required)]
    job: Option<JobDocument>,
}

impl MemberDocument {
    /// Returns the document of a member with its job, unless the job's record was removed.
    pub fn new(number: u32, id: &JobId, job: Option<&JobView>) -> Self {
        Self { number, id: id.to_string(), job: job.map(JobDocument::from) }
    }
}
