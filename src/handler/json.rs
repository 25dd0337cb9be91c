//! Payloads and results as JSON.

use bellwether_core::job::{ContentType, Payload};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{HandlerError, HandlerResult, JobContext};

/// Decodes the payload of an attempt. A payload of another type can never be handled.
pub(super) fn decode<P: DeserializeOwned>(context: &JobContext) -> Result<P, HandlerError> {
    let (kind, payload) = (context.kind(), context.payload());
    let content_type = payload.content_type();
    if !content_type.is_json() {
        let content_type = content_type.as_str();
        return Err(HandlerError::invalid(format!(
            "kind {kind} takes JSON, and the payload is {content_type}"
        )));
    }
    serde_json::from_slice(payload.bytes())
        .map_err(|error| HandlerError::invalid(format!("the payload does not fit kind {kind}: {error}")))
}

pub(super) fn encode<R: Serialize>(result: &R) -> HandlerResult {
    let json = serde_json::to_vec(result)
        .map_err(|error| HandlerError::new(format!("the result is not JSON: {error}")))?;
    Payload::plain(ContentType::json(), json)
        .map_err(|error| HandlerError::new(format!("the result has {error}")))
}
