//! Why a job does not run.

use bellwether::client::{Cause, Explanation, Shunned};
use serde::Serialize;
use utoipa::ToSchema;

use super::{InstantText, StateWord, Text, Word, name, names};

/// Why a job does not run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub struct ExplanationDocument {
    /// The job's id.
    id: String,
    /// State of the job.
    state: StateWord,
    /// The reason as a sentence.
    sentence: String,
    /// The reason as a word, and the values in the sentence.
    #[serde(flatten)]
    cause: CauseDocument,
}

/// The reason as a word, and the values in the sentence.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "why", rename_all = "snake_case")]
#[schema(as = Cause)]
enum CauseDocument {
    /// No live worker has a handler for the kind.
    UnknownKind { kind: String },
    /// No live worker of the kind has all of the tags; `missing` are those that no worker has.
    Tags { kind: String, tags: Vec<String>, missing: Vec<String> },
    /// The kind is paused.
    Paused { kind: String, by: Option<String>, note: Option<String>, since: Option<InstantText> },
    /// The kind is paused on each of so many workers that have a handler for it.
    PausedOnWorkers { kind: String, workers: usize },
    /// The workers that could run it are draining.
    Draining { workers: usize },
    /// The workers that could run it have no free slot.
    Busy { workers: usize, slots: usize },
    /// The workers that could run it and have a free slot get no jobs for a while.
    Shunned { workers: Vec<ShunnedDocument> },
    /// It has lost workers and waits for a worker on which it is isolated.
    Isolated { losses: u32, alone: bool },
    /// There is no leader.
    NoLeader,
    /// It may not start yet.
    NotBefore { not_before: InstantText },
    /// It waits after a failed, lost or snoozed attempt.
    Backoff { until: InstantText, failures: u32, losses: u32, error: Option<String> },
    /// It has expired; the leader is about to end it.
    Overdue { expired_at: InstantText },
    /// Another job of its lane comes first, with this status.
    Lane { lane: String, behind: String, status: String },
    /// Its turn in its lane was deleted.
    NoTurn,
    /// The leader is about to assign it.
    Assignment,
    /// It is assigned to a worker.
    Running {
        worker: String,
        node: Option<String>,
        attempt: u32,
        since: Option<InstantText>,
        cancel_requested: bool,
    },
    /// Its worker was lost; the leader will queue it again.
    WorkerLost { worker: String },
    /// Its record or assignment cannot be read, with the reason.
    Quarantined { note: String },
    /// It has ended.
    Ended { finished_at: Option<InstantText>, error: Option<String> },
    /// It moved while it was read, or its entry was deleted.
    Nowhere,
    /// A reason of a later version; the sentence tells it.
    Other,
}

/// A worker that gets no jobs for a while.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Shunned)]
struct ShunnedDocument {
    /// The worker.
    worker: String,
    /// Its node.
    node: String,
    /// Until when, by ZooKeeper's clock.
    until: InstantText,
}

impl From<&Shunned> for ShunnedDocument {
    fn from(Shunned { worker, node, until, .. }: &Shunned) -> Self {
        Self { worker: worker.to_string(), node: node.to_string(), until: Text(*until) }
    }
}

impl From<&Explanation> for ExplanationDocument {
    fn from(explanation: &Explanation) -> Self {
        let cause = &explanation.cause;
        Self {
            id: explanation.id.to_string(),
            state: Word(explanation.state),
            sentence: cause.to_string(),
            cause: cause.into(),
        }
    }
}

impl From<&Cause> for CauseDocument {
    fn from(cause: &Cause) -> Self {
        match cause {
            Cause::UnknownKind { kind } => Self::UnknownKind { kind: kind.to_string() },
            Cause::Tags { kind, tags, missing } => {
                Self::Tags { kind: kind.to_string(), tags: names(tags), missing: names(missing) }
            }
            Cause::Paused { kind, pause } => Self::Paused {
                kind: kind.to_string(),
                by: pause.by.clone(),
                note: pause.note.clone(),
                since: pause.since.map(Text),
            },
            Cause::PausedOnWorkers { kind, workers } => {
                Self::PausedOnWorkers { kind: kind.to_string(), workers: *workers }
            }
            Cause::Draining { workers } => Self::Draining { workers: *workers },
            Cause::Busy { workers, slots } => Self::Busy { workers: *workers, slots: *slots },
            Cause::Shunned { workers } => Self::Shunned { workers: workers.iter().map(Into::into).collect() },
            Cause::Isolated { losses, alone } => Self::Isolated { losses: *losses, alone: *alone },
            Cause::NoLeader => Self::NoLeader,
            Cause::NotBefore { at } => Self::NotBefore { not_before: Text(*at) },
            Cause::Backoff { until, failures, losses, error } => Self::Backoff {
                until: Text(*until),
                failures: *failures,
                losses: *losses,
                error: error.clone(),
            },
            Cause::Overdue { at } => Self::Overdue { expired_at: Text(*at) },
            Cause::LaneBusy { lane, job, status } => {
                Self::Lane { lane: lane.to_string(), behind: job.to_string(), status: status.clone() }
            }
            Cause::NoTurn => Self::NoTurn,
            Cause::Assignment => Self::Assignment,
            Cause::Running { worker, node, attempt, since, cancel_requested } => Self::Running {
                worker: worker.to_string(),
                node: name(node.as_ref()),
                attempt: *attempt,
                since: since.map(Text),
                cancel_requested: *cancel_requested,
            },
            Cause::WorkerLost { worker } => Self::WorkerLost { worker: worker.to_string() },
            Cause::Quarantined { note } => Self::Quarantined { note: note.clone() },
            Cause::Ended { at, error } => Self::Ended { finished_at: at.map(Text), error: error.clone() },
            Cause::Nowhere => Self::Nowhere,
            _ => Self::Other,
        }
    }
}
