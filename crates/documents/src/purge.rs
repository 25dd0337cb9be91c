//! The outcome of a purge.

use bellwether::client::Purged;
use serde::Serialize;
use utoipa::ToSchema;

/// The outcome of a purge.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Purged)]
pub struct PurgedDocument {
    /// Matching records that were found.
    pub matched: u64,
    /// Records that were removed.
    pub removed: u64,
    /// Matching records that are kept because their jobs ended within the last minute.
    pub too_recent: u64,
    /// Whether all records were read. Otherwise the time limit was reached: repeat the request to continue.
    pub complete: bool,
}

impl PurgedDocument {
    /// Returns the document of a purge that has ended, or of its progress.
    pub fn new(purged: &Purged, complete: bool) -> Self {
        let Purged { matched, removed, too_recent, .. } = *purged;
        Self { matched, removed, too_recent, complete }
    }
}
