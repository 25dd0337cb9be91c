//! Workers, the leader, and kinds.

use bellwether::client::{KindView, LeaderView, Paused, Setting, WorkerSettings, WorkerView, rfc3339};
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
    #[schema(required, format = DateTime)]
    shunned_until: Option<String>,
    /// When it started, by its own clock.
    #[schema(required, format = DateTime)]
    started_at: Option<String>,
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
            shunned_until: worker.shunned_until.map(rfc3339),
            started_at: known.map(|info| rfc3339(info.started_at)),
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
        let WorkerSettings { slots, tags, paused, .. } = &settings.value;
        Self {
            slots: *slots,
            tags: tags.as_ref().map(|tags| names(tags)),
            paused_kinds: names(paused),
            changed: settings.changed.as_ref().map(Into::into),
        }
    }
}

/// The node that claimed the current epoch.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Leader)]
pub struct LeaderDocument {
    /// The node.
    node: String,
    /// The epoch: the fencing token of the leader's writes.
    epoch: i32,
    /// The ZooKeeper session of the leader.
    #[schema(example = "0x100000000000001")]
    session: String,
    /// When the epoch was claimed, by the leader's clock.
    #[schema(format = DateTime)]
    since: String,
    /// Whether the leader is still a candidate. If not, there is no leader now.
    standing: bool,
}

impl From<&LeaderView> for LeaderDocument {
    fn from(leader: &LeaderView) -> Self {
        Self {
            node: leader.node.to_string(),
            epoch: leader.epoch,
            session: format!("{:#x}", leader.session),
            since: rfc3339(leader.since),
            standing: leader.standing,
        }
    }
}

/// A kind that a worker serves, or that is paused.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Kind)]
pub struct KindDocument {
    /// Name of the kind.
    kind: String,
    /// The live workers that have a handler for it.
    workers: Vec<String>,
    /// The workers among them on which it is paused.
    paused_on: Vec<String>,
    /// Slots of the other workers, for all their kinds together.
    slots: usize,
    /// Number of jobs that are assigned to them. May exceed the slots: jobs that were submitted together are assigned together.
    assigned: usize,
    /// The pause, or null.
    #[schema(required)]
    paused: Option<PausedDocument>,
}

/// A pause.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Paused)]
pub(crate) struct PausedDocument {
    /// Note on who paused the kind and why.
    #[schema(required)]
    by: Option<String>,
    /// When, by the clock of that client.
    #[schema(required, format = DateTime)]
    since: Option<String>,
}

impl From<&KindView> for KindDocument {
    fn from(view: &KindView) -> Self {
        let pause = |pause: &Paused| PausedDocument { by: pause.by.clone(), since: pause.since.map(rfc3339) };
        Self {
            kind: view.kind.to_string(),
            workers: names(&view.workers),
            paused_on: names(&view.paused_on),
            slots: view.slots,
            assigned: view.assigned,
            paused: view.paused.as_ref().map(pause),
        }
    }
}
