//! Writing and reading one object.

use bellwether::{CodecError, JobId};
use futures::StreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt, PutPayload};
use uuid::Uuid;

use crate::OverflowCodec;
use crate::reference::Reference;

impl OverflowCodec {
    pub(crate) fn path(&self, job: &JobId, object: Uuid) -> Path {
        self.prefix.clone().join(job.as_str()).join(object.hyphenated().to_string())
    }

    /// If the reply is lost, the object may exist without a record, and a sweep removes it.
    pub(crate) async fn write(&self, path: &Path, bytes: Vec<u8>) -> Result<(), CodecError> {
        let written = self.store.put(path, PutPayload::from(bytes)).await;
        written
            .map(drop)
            .map_err(|error| CodecError::retryable(format!("object {path} cannot be written: {error}")))
    }

    /// Reads an object and checks it. Takes at most the memory that its reference states.
    pub(crate) async fn read(&self, path: &Path, reference: &Reference) -> Result<Vec<u8>, CodecError> {
        let unreadable = |error: Error| match error {
            Error::NotFound { .. } => CodecError::retryable(format!(
                "object {path} is not in the store: it was removed, or this process uses another store"
            )),
            error => CodecError::retryable(format!("object {path} cannot be read: {error}")),
        };
        let changed = || CodecError::invalid(format!("object {path} was changed"));
        let found = self.store.get(path).await.map_err(unreadable)?;
        let mut bytes = Vec::with_capacity(reference.length);
        let mut chunks = found.into_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(unreadable)?;
            if bytes.len() + chunk.len() > reference.length {
                return Err(changed());
            }
            bytes.extend_from_slice(&chunk);
        }
        if reference.is_to(&bytes) { Ok(bytes) } else { Err(changed()) }
    }
}
