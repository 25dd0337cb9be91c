//! Codecs: encryption, compression or storage elsewhere for payloads and results.
//!
//! A [`PayloadCodec`] is set on a client ([`ClientBuilder::payload_codec`]) and on a node ([`NodeBuilder::payload_codec`]).
//!
//! | value | encoded by | decoded by |
//! | --- | --- | --- |
//! | payload of a job, a member or a sub-job | the client that submits it | the worker, before the handler runs |
//! | payload of the jobs of a schedule | the client that adds the schedule | the worker |
//! | result of a handler, a join or a finished handler | the worker, after the handler | the client that reads the result |
//!
//! Checkpoints, progress messages, errors, ids, kinds, lanes and tags are not encoded. Payloads that the leader writes
//! (of joins, finished jobs and dead-letter jobs) contain only ids and an error, and are not encoded either.
//!
//! ```
//! use bellwether::codec::{CodecContext, CodecError, PayloadCodec};
//!
//! /// Not a cipher: it shows the shape.
//! struct Invert;
//!
//! impl PayloadCodec for Invert {
//!     async fn encode(&self, plain: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
//!         Ok(plain.into_iter().map(|byte| !byte).collect())
//!     }
//!
//!     async fn decode(&self, encoded: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
//!         Ok(encoded.into_iter().map(|byte| !byte).collect())
//!     }
//! }
//! # fn run() {
//! let client = bellwether::Client::builder("zk1:2181/prod").payload_codec(Invert);
//! let node = bellwether::Node::builder("zk1:2181/prod").payload_codec(Invert);
//! # let _both = (client, node); }
//! ```
//!
//! # The stored form
//!
//! An encoded payload has the content type `application/vnd.bellwether.encoded`. Its bytes are what the codec returned. The
//! codec receives a frame: the byte 1, the length of the original content type as one byte, the content type, and the bytes.
//! The payload of a schedule is encoded for all of its jobs, and its content type has the parameter `; scope=kind`.
//!
//! Only programs with the codec see the plain bytes: the command, the console and the HTTP gateway show the stored ones.
//!
//! # Repeated submissions
//!
//! A codec need not be deterministic. If a job with the submitted id exists and its stored payload differs, the client
//! decodes that payload and compares the plain ones. So the same payload is the same job, even after a key was replaced.
//!
//! # Errors
//!
//! If a payload cannot be decoded, the job is dead without further attempts, or the attempt is retried, as the codec says
//! ([`CodecError`]). If a result cannot be encoded, the attempt fails and is retried by the job's policy. A client that cannot
//! decode a result returns [`Error::Undecodable`](crate::client::Error::Undecodable).
//!
//! [`ClientBuilder::payload_codec`]: crate::client::ClientBuilder::payload_codec
//! [`NodeBuilder::payload_codec`]: crate::NodeBuilder::payload_codec

mod chain;
mod context;
mod error;
mod frame;
mod stored;

use std::future::Future;

pub use chain::Chain;
pub use context::{CodecContext, Part};
pub use error::CodecError;
#[cfg(any(test, fuzzing))]
pub(crate) use frame::{framed, unframed};
pub(crate) use stored::{Codec, is_encoded, is_for_kind};

/// Encodes payloads and results before they are stored, and decodes them when they are read. See the [module](self).
///
/// The clients and the workers of a kind need codecs that decode what the others encode. So a new key is first added to all
/// of them for decoding, and only then used for encoding.
pub trait PayloadCodec: Send + Sync + 'static {
    /// Encodes bytes. At most 64 KiB may remain after the last codec of a chain.
    ///
    /// The context is the same when the bytes are decoded: authenticate it ([`CodecContext::binding`]), so that the
    /// payload of one job is not accepted as the payload of another.
    ///
    /// # Errors
    /// [`CodecError`]. Then the job is not submitted, or the attempt has no result.
    ///
    /// # Cancellation
    /// The future is dropped with the call or the attempt, and when the client's deadline passes.
    fn encode(
        &self,
        plain: Vec<u8>,
        context: &CodecContext,
    ) -> impl Future<Output = Result<Vec<u8>, CodecError>> + Send;

    /// Decodes bytes. They come from ZooKeeper and may be from any writer: bound the memory that they can request. At most 16
    /// MiB may result.
    ///
    /// # Errors
    /// [`CodecError`], which says whether a later attempt may succeed.
    ///
    /// # Cancellation
    /// Like [`PayloadCodec::encode`].
    fn decode(
        &self,
        encoded: Vec<u8>,
        context: &CodecContext,
    ) -> impl Future<Output = Result<Vec<u8>, CodecError>> + Send;

    /// Whether payloads and results that were stored without a codec are accepted as they are: by default they are, so that
    /// a codec can be introduced while jobs exist.
    ///
    /// A codec that authenticates returns `false`: otherwise a submitter without the key can replace an encoded payload by a
    /// plain one. Payloads of joins, finished jobs and
    /// dead-letter jobs are always accepted.
    fn accepts_plain(&self) -> bool {
        true
    }

    /// Returns the codec that encodes with this one first and with `outer` after it: `compress.then(encrypt).then(overflow)`.
    /// It decodes in the reverse order.
    fn then<C: PayloadCodec>(self, outer: C) -> Chain<Self, C>
    where
        Self: Sized,
    {
        Chain::new(self, outer)
    }
}

#[cfg(test)]
mod tests;
