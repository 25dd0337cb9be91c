//! Built-in middleware: the codec of a node, and the size of results.
//!
//! The handler and all other middleware see plain payloads and results. The attempt includes the time of the codec.

use std::sync::Arc;

use bellwether_core::chain::chain;
use bellwether_core::job::Payload;
use bellwether_host::worker::OnInvalid;
use futures::FutureExt;

use super::middleware::{Middleware, Next};
use super::{HandlerError, HandlerResult, JobContext};
use crate::codec::{Codec, CodecContext, CodecError, Part};

/// Decodes the payload, and encodes the result. Without a codec it only checks the size of the result.
pub(super) struct Encoded(Option<Codec>);

impl Encoded {
    pub(super) fn new(codec: Option<&Codec>) -> Self {
        Self(codec.cloned())
    }
}

impl Middleware for Encoded {
    async fn handle(&self, mut context: JobContext, next: Next) -> HandlerResult {
        let Some(codec) = &self.0 else { return stored(next.run(context).await?) };
        let (kind, job) = (context.kind().clone(), context.job().clone());
        context.run.payload = decode(codec, &context).await.map_err(|error| {
            let reason = format!("the payload of job {job} cannot be decoded: {}", chain(&error));
            if error.is_retryable() { HandlerError::new(reason) } else { HandlerError::invalid(reason) }
        })?;
        let result = next.run(context).await?;
        let encoded = codec.encode(&result, &CodecContext::new(Part::Result, kind, job.clone())).await;
        // Another attempt may have another result.
        encoded.map_err(|error| {
            HandlerError::new(format!("the result of job {job} cannot be encoded: {}", chain(&error)))
        })
    }
}

/// Returns a result that can be stored without a codec.
fn stored(result: Payload) -> HandlerResult {
    result.check_stored().map_err(|error| HandlerError::new(format!("the result has {error}")))?;
    Ok(result)
}

async fn decode(codec: &Codec, context: &JobContext) -> Result<Payload, CodecError> {
    codec.decode(context.payload(), (Part::Payload, context.kind(), context.job())).await
}

/// Gives the plain payload to the function for invalid jobs. A payload that cannot be decoded stays in its stored form: it may be
/// the reason why the job is invalid.
pub(super) fn on_invalid(codec: Option<&Codec>, run: OnInvalid<JobContext>) -> OnInvalid<JobContext> {
    let Some(codec) = codec.cloned() else { return run };
    Arc::new(move |mut context, why| {
        let (codec, run) = (codec.clone(), Arc::clone(&run));
        async move {
            match decode(&codec, &context).await {
                Ok(payload) => context.run.payload = payload,
                Err(error) => {
                    let job = context.job();
                    tracing::debug!(%job, %error, "the payload of the invalid job cannot be decoded");
                }
            }
            run(context, why).await;
        }
        .boxed()
    })
}
