//! A worker and its settings.

use bellwether::InstantText;
use bellwether::client::{Setting, WorkerSettings, WorkerView};
use serde::Serialize;
use utoipa::ToSchema;

use super::{ChangedDocument, names};

/// A live worker. Fields of its registration are null if it cannot be read.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Worker)]
pub struct WorkerDocument {
    /// Id of this incarnation of its node's worker.
    id: String,
    /// Its node.
    #[schema(required)]
    node: Option<String>,
    /// The host of its node.
    #[schema(required)]
    host: Option<String>,
    /// The kinds for which it has handlers.
    kinds: Vec<String>,
    /// Its tags.
    tags: Vec<String>,
    /// Number of jobs that it runs at the same time.
    #[schema(required)]
    slots: Option<u32>,
    /// Number of jobs that are assigned to it. May exceed its slots: jobs that were submitted together are assigned together.
    assigned: usize,
    /// Whether it takes no new jobs.
    #[schema(required)]
    draining: Option<bool>,
    /// Until when the leader assigns nothing to it, because a job was taken from it.
    #[schema(required)]
    shunned_until: Option<InstantText>,
    /// When it started, by its own clock.
    #[schema(required)]
    started_at: Option<InstantText>,
    /// What an operator has changed since its process started.
    #[schema(required)]
    settings: Option<WorkerSettingsDocument>,
    /// Why its registration cannot be read.
    #[schema(required)]
    error: Option<String>,
}

impl From<&WorkerView> for WorkerDocument {
    fn from(worker: &WorkerView) -> Self {
        let info = worker.info.as_ref();
        let known = info.ok();
        Self {
            id: worker.id.to_string(),
            node: known.map(|info| info.node.to_string()),
            host: known.map(|info| info.host.clone()),
            kinds: known.map(|info| names(&info.kinds)).unwrap_or_default(),
            tags: known.map(|info| names(&info.tags)).unwrap_or_default(),
            slots: known.map(|info| info.slots),
            assigned: worker.assigned,
            draining: known.map(|info| info.draining),
            shunned_until: worker.shunned_until.map(InstantText),
            started_at: known.map(|info| InstantText(info.started_at)),
            settings: known.map(|info| (&info.settings).into()),
            error: info.err().map(ToString::to_string),
        }
    }
}

/// What an operator has changed on a worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WorkerSettings)]
pub struct WorkerSettingsDocument {
    /// Number of jobs that run at the same time; null for the configured number.
    #[schema(required)]
    slots: Option<u32>,
    /// The tags; null for the configured ones.
    #[schema(required)]
    tags: Option<Vec<String>>,
    /// The kinds of which the worker starts no jobs.
    paused_kinds: Vec<String>,
    /// The last change of the settings; null if there was none, or if its client named no author.
    #[schema(required)]
    changed: Option<ChangedDocument>,
}

impl From<&Setting<WorkerSettings>> for WorkerSettingsDocument {
    fn from(settings: &Setting<WorkerSettings>) -> Self {
        let WorkerSettings { slots, tags, paused_kinds, .. } = &settings.value;
        Self {
            slots: *slots,
            tags: tags.as_ref().map(|tags| names(tags)),
            paused_kinds: names(paused_kinds),
            changed: settings.changed.as_ref().map(Into::into),
        }
    }
}
