//! A payload codec that keeps large payloads and results in an object store: a directory that all processes share, S3 and
//! compatible stores, and every other store of the crate [`object_store`].
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use bellwether::Client;
//! use bellwether_overflow::OverflowCodec;
//! use bellwether_overflow::object_store::memory::InMemory;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // `AmazonS3Builder::from_env().with_bucket_name("jobs").build()?`, with the feature `aws` of `object_store`.
//! let store = Arc::new(InMemory::new());
//! let overflow = OverflowCodec::new(store, "prod")?;
//! let client = Client::builder("zk1:2181/prod").payload_codec(overflow.clone()).connect().await?;
//! // Nodes: `Node::builder("zk1:2181/prod").payload_codec(overflow)`.
//! # drop(client);
//! # Ok(()) }
//! ```
//!
//! Up to [`INLINE_BYTES`] stay in the job's record. More are written to a new object `{prefix}/{job id}/{uuid}` before the job
//! is submitted, or before its result is reported. The record then has a reference: the UUID, the length and the SHA-256 of
//! the object. Both are checked when it is read.
//!
//! | | bound |
//! | --- | --- |
//! | bytes in a record | [`INLINE_BYTES`] |
//! | bytes in an object | [`MAX_OBJECT_BYTES`] |
//! | payload of a schedule | in the record only, because its jobs share it |
//!
//! The tests of the crate use a directory. `crates/overflow/s3/run.py` runs others on a store that speaks S3's protocol.
//!
//! The codec does not encrypt. Put a cipher inside: `cipher.then(overflow)`.
//!
//! # Durability
//!
//! An accepted job is as durable as its object. `LocalFileSystem` needs `with_fsync(true)` for that, and a directory that all
//! clients and workers share.
//!
//! # Removing objects
//!
//! Bellwether does not know the objects, so its retention does not remove them: call [`OverflowCodec::sweep`] from time to
//! time. It removes objects of jobs that have no record.
//!
//! # Errors
//!
//! A store that is not reachable, or does not have the object, is a retryable error: the process may use another store than
//! the writer. A changed object and a malformed reference are invalid.

#![forbid(unsafe_code)]

mod object;
mod reference;
mod sweep;

use std::fmt;
use std::sync::Arc;

use bellwether::{CodecContext, CodecError, PayloadCodec};
pub use object_store;
use object_store::ObjectStore;
use object_store::path::Path;
use uuid::Uuid;

pub use sweep::{MIN_AGE, SweepError, Swept};

use reference::{Reference, Stored};

/// Most bytes that stay in a record: two of them, and their type, fit into one with room for errors and progress.
pub const INLINE_BYTES: usize = 48 * 1024;

/// Most bytes of an object: the largest plain payload, and what other codecs of a chain may add to it.
pub const MAX_OBJECT_BYTES: usize = 16 * 1024 * 1024 + 64 * 1024;

/// The prefix is not a path of an object store.
#[derive(Debug, thiserror::Error)]
#[error("the prefix {0:?} is not a path of an object store: give at least one name, such as prod/jobs")]
pub struct PrefixError(String);

/// Keeps large payloads and results in an object store. Cheap to clone. See the [crate](self).
#[derive(Clone)]
pub struct OverflowCodec {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl fmt::Debug for OverflowCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverflowCodec").field("prefix", &self.prefix.as_ref()).finish_non_exhaustive()
    }
}

impl OverflowCodec {
    /// Stores objects under this prefix. **Each namespace needs its own prefix**: a sweep removes the objects of all jobs that
    /// do not exist in its namespace.
    ///
    /// # Errors
    /// The prefix is empty or malformed.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self, PrefixError> {
        let path = Path::parse(prefix).map_err(|_| PrefixError(prefix.to_owned()))?;
        if path.parts().next().is_none() {
            return Err(PrefixError(prefix.to_owned()));
        }
        Ok(Self { store, prefix: path })
    }
}

impl PayloadCodec for OverflowCodec {
    async fn encode(&self, plain: Vec<u8>, context: &CodecContext) -> Result<Vec<u8>, CodecError> {
        if plain.len() <= INLINE_BYTES {
            return Ok(Stored::Inline(&plain).encode());
        }
        let Some(job) = &context.job else {
            let bytes = plain.len();
            return Err(CodecError::invalid(format!(
                "the payload of a schedule has {bytes} bytes: at most {INLINE_BYTES} are allowed"
            )));
        };
        if plain.len() > MAX_OBJECT_BYTES {
            let bytes = plain.len();
            return Err(CodecError::invalid(format!(
                "it has {bytes} bytes: at most {MAX_OBJECT_BYTES} are allowed in an object"
            )));
        }
        // Always another object: a sweep may be about to remove one that an earlier submission left.
        let reference = Reference::to(&plain, Uuid::now_v7());
        self.write(&self.path(job, reference.object), plain).await?;
        Ok(Stored::Object(reference).encode())
    }

    async fn decode(&self, encoded: Vec<u8>, context: &CodecContext) -> Result<Vec<u8>, CodecError> {
        match Stored::decode(&encoded)? {
            Stored::Inline(plain) => Ok(plain.to_vec()),
            Stored::Object(reference) => {
                let job = context.job.as_ref();
                let job =
                    job.ok_or_else(|| CodecError::invalid("the payload of a schedule is in no object"))?;
                self.read(&self.path(job, reference.object), &reference).await
            }
        }
    }
}
