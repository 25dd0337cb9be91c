//! Why a job does not run.

use bellwether::client::{Cause, Explanation, Shunned};
use bellwether::{InstantText, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::{name, names};

/// Why a job does not run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub struct ExplanationDocument {
    /// The job's id.
    id: String,
    /// State of the job.
    state: State,
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
    /// No live worker has a handler for its kind.
    UnknownKind {
        /// Its kind.
        kind: String,
    },
    /// No live worker of its kind has all of its tags.
    Tags {
        /// Its kind.
        kind: String,
        /// The tags that it requires.
        tags: Vec<String>,
        /// The required tags that no worker of its kind has. Empty if each tag has a worker, but no worker has all tags.
        missing: Vec<String>,
    },
    /// Its kind is paused.
    Paused {
        /// Its kind.
        kind: String,
        /// The author of the pause.
        #[schema(required)]
        by: Option<String>,
        /// The note of the author.
        #[schema(required)]
        note: Option<String>,
        /// When it was paused.
        #[schema(required)]
        since: Option<InstantText>,
    },
    /// Its kind is paused on each worker that has a handler for it.
    PausedOnWorkers {
        /// Its kind.
        kind: String,
        /// Number of these workers.
        workers: usize,
    },
    /// The workers that could run it are draining.
    Draining {
        /// Number of these workers.
        workers: usize,
    },
    /// The workers that could run it have no free slot.
    Busy {
        /// Number of these workers.
        workers: usize,
        /// Their slots.
        slots: usize,
    },
    /// The workers that could run it and have a free slot get no jobs for a while.
    Shunned {
        /// These workers.
        workers: Vec<ShunnedDocument>,
    },
    /// It has lost workers and waits for a worker on which it is isolated.
    Isolated {
        /// Number of workers that it has lost.
        losses: u32,
        /// Whether it runs alone and waits for a worker without jobs.
        alone: bool,
    },
    /// There is no leader.
    NoLeader,
    /// It may not start yet.
    NotBefore {
        /// When it may start.
        not_before: InstantText,
    },
    /// It waits after a failed, lost or snoozed attempt.
    Backoff {
        /// The end of the wait.
        until: InstantText,
        /// Failed attempts of this generation.
        failures: u32,
        /// Lost attempts of this generation.
        losses: u32,
        /// The last error.
        #[schema(required)]
        error: Option<String>,
    },
    /// It has expired; the leader is about to end it.
    Expired {
        /// When it expired.
        expired_at: InstantText,
    },
    /// Another job of its lane comes first.
    Lane {
        /// The lane.
        lane: String,
        /// The job that comes first.
        behind: String,
        /// The status of that job.
        status: String,
    },
    /// Its turn in its lane was deleted.
    NoTurn,
    /// The leader is about to assign it.
    Assignment,
    /// It is assigned to a worker.
    Running {
        /// The worker.
        worker: String,
        /// Its node.
        #[schema(required)]
        node: Option<String>,
        /// Number of the attempt.
        attempt: u32,
        /// When it was assigned, by the leader's clock.
        #[schema(required)]
        since: Option<InstantText>,
        /// Whether it was asked to stop.
        cancel_requested: bool,
    },
    /// Its worker was lost; the leader will queue it again.
    WorkerLost {
        /// The worker.
        worker: String,
    },
    /// Its record or assignment cannot be read.
    Quarantined {
        /// The reason.
        note: String,
    },
    /// It has ended.
    Ended {
        /// When it ended.
        #[schema(required)]
        finished_at: Option<InstantText>,
        /// The last error, unless it succeeded.
        #[schema(required)]
        error: Option<String>,
    },
    /// It was found in no queue and no inbox.
    Nowhere,
    /// A reason that this version does not know; see `sentence`.
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
        Self { worker: worker.to_string(), node: node.to_string(), until: InstantText(*until) }
    }
}

impl From<&Explanation> for ExplanationDocument {
    fn from(explanation: &Explanation) -> Self {
        let cause = &explanation.cause;
        Self {
            id: explanation.id.to_string(),
            state: explanation.state,
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
                since: pause.since.map(InstantText),
            },
            Cause::PausedOnWorkers { kind, workers } => {
                Self::PausedOnWorkers { kind: kind.to_string(), workers: *workers }
            }
            Cause::Draining { workers } => Self::Draining { workers: *workers },
            Cause::Busy { workers, slots } => Self::Busy { workers: *workers, slots: *slots },
            Cause::Shunned { workers } => Self::Shunned { workers: workers.iter().map(Into::into).collect() },
            Cause::Isolated { losses, alone } => Self::Isolated { losses: *losses, alone: *alone },
            Cause::NoLeader => Self::NoLeader,
            Cause::NotBefore { at } => Self::NotBefore { not_before: InstantText(*at) },
            Cause::Backoff { until, failures, losses, error } => Self::Backoff {
                until: InstantText(*until),
                failures: *failures,
                losses: *losses,
                error: error.clone(),
            },
            Cause::Expired { at } => Self::Expired { expired_at: InstantText(*at) },
            Cause::LaneBusy { lane, job, status } => {
                Self::Lane { lane: lane.to_string(), behind: job.to_string(), status: status.clone() }
            }
            Cause::NoTurn => Self::NoTurn,
            Cause::Assignment => Self::Assignment,
            Cause::Running { worker, node, attempt, since, cancel_requested } => Self::Running {
                worker: worker.to_string(),
                node: name(node.as_ref()),
                attempt: *attempt,
                since: since.map(InstantText),
                cancel_requested: *cancel_requested,
            },
            Cause::WorkerLost { worker } => Self::WorkerLost { worker: worker.to_string() },
            Cause::Quarantined { note } => Self::Quarantined { note: note.clone() },
            Cause::Ended { at, error } => {
                Self::Ended { finished_at: at.map(InstantText), error: error.clone() }
            }
            Cause::Nowhere => Self::Nowhere,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bellwether::client::WaitReason;
    use utoipa::PartialSchema as _;

    use super::*;

    /// The words of a schema: those of its variants, or of a list.
    fn words(schema: &serde_json::Value) -> BTreeSet<String> {
        let variants = schema["oneOf"].as_array().into_iter().flatten();
        let tags = variants.flat_map(|variant| variant["properties"]["why"]["enum"].as_array()).flatten();
        let listed = schema["enum"].as_array().into_iter().flatten();
        tags.chain(listed).map(|word| word.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn each_reason_to_wait_is_a_cause_and_the_other_causes_are_known() {
        let causes = words(&serde_json::to_value(CauseDocument::schema()).unwrap());
        let waits = words(&serde_json::to_value(WaitReason::schema()).unwrap());
        assert_eq!(waits.difference(&causes).count(), 0, "{waits:?}, {causes:?}");
        let others = causes.difference(&waits).map(String::as_str).collect::<Vec<_>>();
        assert_eq!(others, ["ended", "expired", "other", "quarantined", "running"]);
    }

    #[test]
    fn a_cause_is_written_with_its_word_and_its_values() {
        let id = bellwether::JobId::new("a").unwrap();
        let kind = bellwether::Kind::new("sum").unwrap();
        let explained = |cause: &Cause| {
            let document = ExplanationDocument {
                id: id.to_string(),
                state: bellwether::State::Queued,
                sentence: cause.to_string(),
                cause: cause.into(),
            };
            serde_json::to_value(document).unwrap()
        };
        let unknown = explained(&Cause::UnknownKind { kind: kind.clone() });
        assert_eq!(
            unknown,
            serde_json::json!({
                "id": "a", "state": "queued", "why": "unknown_kind", "kind": "sum",
                "sentence": "no live worker has a handler for kind sum",
            })
        );
        let behind = Cause::LaneBusy {
            lane: bellwether::Lane::new("l").unwrap(),
            job: id.clone(),
            status: "queued".to_owned(),
        };
        assert_eq!(
            (&explained(&behind)["why"], &explained(&behind)["behind"]),
            (&"lane".into(), &"a".into())
        );
        assert_eq!(explained(&Cause::NoLeader)["why"], "no_leader");
    }
}
