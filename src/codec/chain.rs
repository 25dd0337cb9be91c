//! Two codecs, one after the other.

use super::{CodecContext, CodecError, PayloadCodec};

/// Encodes with an inner codec and then with an outer one. See [`PayloadCodec::then`].
#[derive(Debug, Clone)]
pub struct Chain<A, B> {
    inner: A,
    outer: B,
}

impl<A, B> Chain<A, B> {
    pub(super) fn new(inner: A, outer: B) -> Self {
        Self { inner, outer }
    }
}

impl<A: PayloadCodec, B: PayloadCodec> PayloadCodec for Chain<A, B> {
    async fn encode(&self, plain: Vec<u8>, context: &CodecContext) -> Result<Vec<u8>, CodecError> {
        self.outer.encode(self.inner.encode(plain, context).await?, context).await
    }

    async fn decode(&self, encoded: Vec<u8>, context: &CodecContext) -> Result<Vec<u8>, CodecError> {
        self.inner.decode(self.outer.decode(encoded, context).await?, context).await
    }

    /// Whether both accept them.
    fn accepts_plain(&self) -> bool {
        self.inner.accepts_plain() && self.outer.accepts_plain()
    }
}
