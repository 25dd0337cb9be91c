//! Outcomes of changes.

use bellwether::client::DrainedWorker;
use bellwether::{Kind, WorkerId};
use serde::Serialize;
use utoipa::ToSchema;

use super::WorkerSettingsDocument;

/// The outcome of a change of a kind.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = KindChanged)]
pub struct KindOutcomeDocument {
    /// The kind.
    pub kind: String,
    /// `paused` or `already_paused`; `resumed` or `not_paused`.
    pub outcome: &'static str,
}

impl KindOutcomeDocument {
    /// Returns the document of a pause; `changed` says whether this call paused the kind.
    pub fn paused(kind: &Kind, changed: bool) -> Self {
        Self { kind: kind.to_string(), outcome: if changed { "paused" } else { "already_paused" } }
    }

    /// Returns the document of a resumption; `changed` says whether this call resumed the kind.
    pub fn resumed(kind: &Kind, changed: bool) -> Self {
        Self { kind: kind.to_string(), outcome: if changed { "resumed" } else { "not_paused" } }
    }
}

/// The outcome of a drain of a worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WorkerChanged)]
pub struct WorkerOutcomeDocument {
    /// The worker's id.
    pub id: String,
    /// `draining` or `already_draining`; on the command line also `not_found`, and `left` if it waits.
    pub outcome: &'static str,
    /// The worker's node, on the command line only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

impl WorkerOutcomeDocument {
    /// Returns the document of a drain.
    pub fn drained(id: WorkerId, drained: DrainedWorker) -> Self {
        Self { id: id.to_string(), outcome: drained.as_str(), node: None }
    }
}

/// A changed worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WorkerSet)]
pub struct ChangedWorkerDocument {
    /// The worker's id.
    pub id: String,
    /// Its settings as they are now.
    pub settings: WorkerSettingsDocument,
    /// The worker's node, on the command line only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}
