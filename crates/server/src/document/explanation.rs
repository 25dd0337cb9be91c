//! Why a job does not run.

use bellwether::client::{Explanation, Why, rfc3339};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{StateName, names};

/// Why a job does not run. Further fields depend on the word, such as `kind` and `missing` for `tags`, or `until` for
/// `backoff`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub(crate) struct ExplanationDocument {
    /// The job's id.
    id: String,
    /// State of the job.
    state: StateName,
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
        let why = &explanation.why;
        Self {
            id: explanation.id.to_string(),
            state: explanation.state.into(),
            why: why.as_str().to_owned(),
            sentence: why.to_string(),
            details: match details(why) {
                Value::Object(details) => details,
                _ => Map::new(),
            },
        }
    }
}

/// The values of a reason, as an object.
fn details(why: &Why) -> Value {
    match why {
        Why::UnknownKind { kind } => json!({ "kind": kind.as_str() }),
        Why::Tags { kind, tags, missing } => {
            json!({ "kind": kind.as_str(), "tags": names(tags), "missing": names(missing) })
        }
        Why::Paused { kind, pause } => {
            json!({ "kind": kind.as_str(), "by": pause.by, "since": pause.since.map(rfc3339) })
        }
        Why::Draining { workers } => json!({ "workers": workers }),
        Why::Busy { workers, slots } => json!({ "workers": workers, "slots": slots }),
        Why::Shunned { workers } => {
            let shunned = workers.iter().map(|(worker, node, until)| {
                json!({ "worker": worker.to_string(), "node": node.to_string(), "until": rfc3339(*until) })
            });
            json!({ "workers": shunned.collect::<Vec<_>>() })
        }
        Why::NotBefore { at } => json!({ "not_before": rfc3339(*at) }),
        Why::Backoff { until, failures, error } => {
            json!({ "until": rfc3339(*until), "failures": failures, "error": error })
        }
        Why::Overdue { at } => json!({ "expired_at": rfc3339(*at) }),
        Why::Behind { lane, job, status } => {
            json!({ "lane": lane.as_str(), "behind": job.as_str(), "status": status })
        }
        Why::Running { worker, node, attempt, since, cancel_requested } => json!({
            "worker": worker.to_string(), "node": node.as_ref().map(ToString::to_string), "attempt": attempt,
            "since": since.map(rfc3339), "cancel_requested": cancel_requested,
        }),
        Why::WorkerLost { worker } => json!({ "worker": worker.to_string() }),
        Why::Quarantined { note } => json!({ "note": note }),
        Why::Over { at, error } => json!({ "finished_at": at.map(rfc3339), "error": error }),
        Why::NoLeader | Why::NoTurn | Why::Assignment | Why::Nowhere => json!({}),
    }
}
