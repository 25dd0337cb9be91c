//! The argument of a dead-letter handler: the job that is dead.

use std::fmt;
use std::marker::PhantomData;

use bellwether_core::chain::chain;
use bellwether_core::job::Payload;
use bellwether_core::name::JobId;
use serde::Deserialize;
use serde::de::Error as _;

use super::json::decode;
use super::{HandlerError, JobContext};
use crate::client::{JobKind, JobView, Untyped};

/// The argument of a dead-letter handler: see [`handler::dead_letter`](super::dead_letter()). `K` is the kind of the dead
/// job.
#[non_exhaustive]
pub struct DeadLetter<K = Untyped> {
    /// The dead job.
    pub job: JobId,
    /// The generation in which it died. A retry opens the next one.
    pub generation: u32,
    /// Its last error.
    pub error: String,
    /// The job as it is now; `None` if its record was removed, by retention or a purge. It may have been retried since.
    /// Its payload is as stored: see [`DeadLetter::payload`].
    pub view: Option<JobView>,
    /// Its plain payload, or why it cannot be decoded.
    payload: Result<Option<Payload>, String>,
    typed: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for DeadLetter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, generation, error, view, payload: _, typed: _ } = self;
        let mut letter = f.debug_struct("DeadLetter");
        letter.field("job", job).field("generation", generation).field("error", error);
        letter.field("view", view).finish()
    }
}

impl<K: JobKind> DeadLetter<K> {
    /// Returns the payload of the dead job; `None` if its record was removed.
    ///
    /// # Errors
    /// The payload has another type, or the node's codec cannot decode it.
    pub fn payload(&self) -> Result<Option<K::Payload>, serde_json::Error> {
        let payload = self.payload.as_ref().map_err(serde_json::Error::custom)?;
        payload.as_ref().map(|payload| serde_json::from_slice(payload.bytes())).transpose()
    }
}

/// The payload of a dead-letter job, written by the process that ended the dead job.
#[derive(Deserialize)]
struct Letter {
    job: JobId,
    generation: u32,
    error: String,
}

pub(super) async fn read<K>(context: &JobContext) -> Result<DeadLetter<K>, HandlerError> {
    let Letter { job, generation, error } = decode(context)?;
    let node = context
        .node()
        .ok_or_else(|| HandlerError::new("this context has no node and therefore no namespace"))?;
    let client = node.get().await?;
    let view = client.get(&job).await?;
    let payload = match &view {
        None => Ok(None),
        // The reason may be why the job is dead.
        Some(view) => client.decode_payload(view).await.map_err(|error| chain(&error)),
    };
    Ok(DeadLetter { job, generation, error, view, payload, typed: PhantomData })
}
