//! The argument of a dead-letter handler: the job that is dead.

use std::fmt;
use std::marker::PhantomData;

use bellwether_core::name::JobId;
use serde::Deserialize;

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
    pub view: Option<JobView>,
    typed: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for DeadLetter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, generation, error, view, typed: _ } = self;
        let mut letter = f.debug_struct("DeadLetter");
        letter.field("job", job).field("generation", generation).field("error", error);
        letter.field("view", view).finish()
    }
}

impl<K: JobKind> DeadLetter<K> {
    /// Returns the payload of the dead job; `None` if its record was removed.
    ///
    /// # Errors
    /// The payload has another type.
    pub fn payload(&self) -> Result<Option<K::Payload>, serde_json::Error> {
        let payload = self.view.as_ref().and_then(|view| view.payload.as_ref());
        payload.map(|payload| serde_json::from_slice(payload.bytes())).transpose()
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
    let view = node.get().await?.get(&job).await?;
    Ok(DeadLetter { job, generation, error, view, typed: PhantomData })
}
