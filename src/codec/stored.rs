//! Payloads as they are stored: plain, or encoded by the codec of a client or a node.

use std::fmt;
use std::sync::Arc;

use bellwether_core::job::{ContentType, Payload, has_own_payload};
use bellwether_core::name::{JobId, Kind};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::frame::{framed, unframed};
use super::{CodecContext, CodecError, Part, PayloadCodec};

/// The content type of an encoded payload or result.
const ENCODED: &str = "application/vnd.bellwether.encoded";

/// The content type of a payload that is encoded for all jobs of a schedule, and so not for one job.
const ENCODED_FOR_KIND: &str = "application/vnd.bellwether.encoded; scope=kind";

/// Whether the bytes of a payload or result are encoded.
pub(crate) fn is_encoded(stored: &Payload) -> bool {
    let content_type = stored.content_type().as_str();
    content_type.split(';').next().is_some_and(|essence| essence.trim() == ENCODED)
}

/// Whether a payload is encoded for all jobs of a schedule.
pub(crate) fn is_for_kind(stored: &Payload) -> bool {
    stored.content_type().as_str() == ENCODED_FOR_KIND
}

/// The codec of a client or a node. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Codec(Arc<dyn Erased>);

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PayloadCodec")
    }
}

impl Codec {
    pub(crate) fn new(codec: impl PayloadCodec) -> Self {
        Self(Arc::new(codec))
    }

    /// Returns the stored form of a payload or result.
    pub(crate) async fn encode(
        &self,
        plain: &Payload,
        context: &CodecContext,
    ) -> Result<Payload, CodecError> {
        let encoded = self.0.encode(framed(plain), context).await?;
        let content_type = if context.job.is_some() { ENCODED } else { ENCODED_FOR_KIND };
        let content_type = ContentType::new(content_type).expect("a content type");
        Payload::new(content_type, encoded)
            .map_err(|error| CodecError::invalid(format!("it has, once encoded, {error}")))
    }

    /// Returns the plain payload or result of a job.
    pub(crate) async fn decode(
        &self,
        stored: &Payload,
        (part, kind, job): (Part, &Kind, &JobId),
    ) -> Result<Payload, CodecError> {
        if !is_encoded(stored) {
            let is_own = part == Part::Payload && has_own_payload(job);
            return if self.0.accepts_plain() || is_own {
                Ok(stored.clone())
            } else {
                Err(CodecError::invalid(
                    "it was stored without a codec, and the codec accepts no plain bytes",
                ))
            };
        }
        let job = match stored.content_type().as_str() {
            ENCODED => Some(job.clone()),
            ENCODED_FOR_KIND => None,
            other => return Err(CodecError::invalid(format!("its content type {other} is not known"))),
        };
        let context = CodecContext { part, kind: kind.clone(), job };
        unframed(&self.0.decode(stored.bytes().to_vec(), &context).await?)
    }

    /// Returns the plain payload of a schedule.
    pub(crate) async fn decode_shared(&self, stored: &Payload, kind: &Kind) -> Result<Payload, CodecError> {
        let context = CodecContext { part: Part::Payload, kind: kind.clone(), job: None };
        unframed(&self.0.decode(stored.bytes().to_vec(), &context).await?)
    }
}

/// A codec of any type.
trait Erased: Send + Sync {
    fn encode<'a>(&'a self, plain: Vec<u8>, context: &'a CodecContext) -> Coded<'a>;
    fn decode<'a>(&'a self, encoded: Vec<u8>, context: &'a CodecContext) -> Coded<'a>;
    fn accepts_plain(&self) -> bool;
}

type Coded<'a> = BoxFuture<'a, Result<Vec<u8>, CodecError>>;

impl<C: PayloadCodec> Erased for C {
    fn encode<'a>(&'a self, plain: Vec<u8>, context: &'a CodecContext) -> Coded<'a> {
        PayloadCodec::encode(self, plain, context).boxed()
    }

    fn decode<'a>(&'a self, encoded: Vec<u8>, context: &'a CodecContext) -> Coded<'a> {
        PayloadCodec::decode(self, encoded, context).boxed()
    }

    fn accepts_plain(&self) -> bool {
        PayloadCodec::accepts_plain(self)
    }
}
