//! Why a job does not run.

use bellwether::client::{Cause, Explanation, Shunned, rfc3339};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{StateWord, Word, names};

/// Why a job does not run. Further fields depend on the word, such as `kind` and `missing` for `tags`, or `until` for
/// `backoff`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub struct ExplanationDocument {
    /// The job's id.
    id: String,
    /// State of the job.
    state: StateWord,
    /// The reason as a word.
    #[schema(example = "busy")]
    why: String,
    /// The reason as a sentence.
    sentence: String,
    /// The values in the sentence; their names depend on the reason.
    #[serde(flatten)]
    details: Map<String, Value>,
}

impl From<&Explanation> for ExplanationDocument {
    fn from(explanation: &Explanation) -> Self {
        let cause = &explanation.cause;
        Self {
            id: explanation.id.to_string(),
            state: Word(explanation.state),
            why: cause.as_str().to_owned(),
            sentence: cause.to_string(),
            details: match details(cause) {
                Value::Object(details) => details,
                _ => Map::new(),
            },
        }
    }
}

/// The values of a reason, as an object.
fn details(cause: &Cause) -> Value {
    match cause {
        Cause::UnknownKind { kind } => json!({ "kind": kind.as_str() }),
        Cause::Tags { kind, tags, missing } => {
            json!({ "kind": kind.as_str(), "tags": names(tags), "missing": names(missing) })
        }
        Cause::Paused { kind, pause } => {
            json!({ "kind": kind.as_str(), "by": pause.by, "since": pause.since.map(rfc3339) })
        }
        Cause::PausedOnWorkers { kind, workers } => json!({ "kind": kind.as_str(), "workers": workers }),
        Cause::Draining { workers } => json!({ "workers": workers }),
        Cause::Busy { workers, slots } => json!({ "workers": workers, "slots": slots }),
        Cause::Shunned { workers } => {
            let shunned = workers.iter().map(|Shunned { worker, node, until, .. }| {
                json!({ "worker": worker.to_string(), "node": node.to_string(), "until": rfc3339(*until) })
            });
            json!({ "workers": shunned.collect::<Vec<_>>() })
        }
        Cause::Isolated { losses, alone } => json!({ "losses": losses, "alone": alone }),
        Cause::NotBefore { at } => json!({ "not_before": rfc3339(*at) }),
        Cause::Backoff { until, failures, losses, error } => {
            json!({ "until": rfc3339(*until), "failures": failures, "losses": losses, "error": error })
        }
        Cause::Overdue { at } => json!({ "expired_at": rfc3339(*at) }),
        Cause::LaneBusy { lane, job, status } => {
            json!({ "lane": lane.as_str(), "behind": job.as_str(), "status": status })
        }
        Cause::Running { worker, node, attempt, since, cancel_requested } => json!({
            "worker": worker.to_string(), "node": node.as_ref().map(ToString::to_string), "attempt": attempt,
            "since": since.map(rfc3339), "cancel_requested": cancel_requested,
        }),
        Cause::WorkerLost { worker } => json!({ "worker": worker.to_string() }),
        Cause::Quarantined { note } => json!({ "note": note }),
        Cause::Ended { at, error } => json!({ "finished_at": at.map(rfc3339), "error": error }),
        Cause::NoLeader | Cause::NoTurn | Cause::Assignment | Cause::Nowhere => json!({}),
        // A cause of a later version of the library: the sentence has its values.
        _ => json!({}),
    }
}
