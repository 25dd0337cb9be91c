//! A lane.

use bellwether::client::LaneView;
use serde::Serialize;
use utoipa::ToSchema;

/// A lane with open jobs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Lane)]
pub struct LaneDocument {
    /// Name of the lane.
    lane: String,
    /// Jobs that have not ended, with the running one.
    jobs: usize,
    /// The job that runs, or runs next; null if it was not looked for, because the lanes of the page have many jobs.
    #[schema(required)]
    first: Option<String>,
}

impl From<&LaneView> for LaneDocument {
    fn from(view: &LaneView) -> Self {
        let first = view.first.as_ref().map(|job| job.to_string());
        Self { lane: view.lane.to_string(), jobs: view.jobs, first }
    }
}
