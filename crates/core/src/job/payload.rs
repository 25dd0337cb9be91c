//! Payloads and results: opaque bytes with a content type.

use std::fmt;
use std::sync::Arc;

use crate::budget::{MAX_PAYLOAD_BYTES, MAX_PLAIN_BYTES};

/// The media type of a payload; the default is JSON.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ContentType(Arc<str>);

/// A content type that is empty, over 127 bytes, or not visible ASCII.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("content type {0:?} is not 1 to 127 visible ASCII characters")]
pub struct ContentTypeError(String);

impl ContentType {
    /// Checks the form of a media type. Its meaning is up to the handler.
    ///
    /// # Errors
    /// When it is empty, over 127 bytes, or has a character that is not visible ASCII.
    pub fn new(name: &str) -> Result<Self, ContentTypeError> {
        let fine = (1..128).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        if fine { Ok(Self(Arc::from(name))) } else { Err(ContentTypeError(name.chars().take(128).collect())) }
    }

    /// `application/json`.
    #[must_use]
    pub fn json() -> Self {
        Self(Arc::from("application/json"))
    }

    /// The media type.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ContentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Bytes and their content type. Cheap to clone.
///
/// A stored payload has at most 64 KiB. One that a codec encodes before it is stored has at most 16 MiB
/// ([`Payload::plain`]); every path to a record checks the stored size ([`Payload::check_stored`]).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Payload {
    content_type: ContentType,
    bytes: Arc<[u8]>,
}

/// The bytes exceed the budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{len} bytes: at most {max} are allowed inline; store larger data elsewhere and submit its address")]
#[non_exhaustive]
pub struct PayloadError {
    /// The number of bytes.
    pub len: usize,
    /// The most bytes that are allowed.
    pub max: usize,
}

impl Payload {
    /// Wraps bytes that can be stored.
    ///
    /// # Errors
    /// When there are more than 64 KiB.
    pub fn new(content_type: ContentType, bytes: impl Into<Arc<[u8]>>) -> Result<Self, PayloadError> {
        Self::bounded(content_type, bytes.into(), MAX_PAYLOAD_BYTES)
    }

    /// Wraps bytes that a codec encodes before they are stored. Without a codec, more than 64 KiB are refused later: by the
    /// submission, or as the result of an attempt.
    ///
    /// # Errors
    /// When there are more than 16 MiB.
    pub fn plain(content_type: ContentType, bytes: impl Into<Arc<[u8]>>) -> Result<Self, PayloadError> {
        Self::bounded(content_type, bytes.into(), MAX_PLAIN_BYTES)
    }

    fn bounded(content_type: ContentType, bytes: Arc<[u8]>, max: usize) -> Result<Self, PayloadError> {
        let payload = Self { content_type, bytes };
        payload.check_len(max)?;
        Ok(payload)
    }

    /// Checks whether the bytes can be stored as they are.
    ///
    /// # Errors
    /// When there are more than 64 KiB.
    pub fn check_stored(&self) -> Result<(), PayloadError> {
        self.check_len(MAX_PAYLOAD_BYTES)
    }

    fn check_len(&self, max: usize) -> Result<(), PayloadError> {
        let len = self.bytes.len();
        if len > max { Err(PayloadError { len, max }) } else { Ok(()) }
    }

    /// Wraps JSON text that can be stored.
    ///
    /// # Errors
    /// When there are more than 64 KiB.
    pub fn json(text: impl Into<Arc<[u8]>>) -> Result<Self, PayloadError> {
        Self::new(ContentType::json(), text)
    }

    /// The media type of the bytes.
    #[must_use]
    pub fn content_type(&self) -> &ContentType {
        &self.content_type
    }

    /// The bytes as submitted.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {:?}", self.bytes.len(), self.content_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_payload_may_be_larger_than_a_stored_one() {
        let bytes = |len: usize| vec![0; len];
        let stored = Payload::plain(ContentType::json(), bytes(MAX_PAYLOAD_BYTES)).unwrap();
        assert_eq!(stored.check_stored(), Ok(()));
        let plain = Payload::plain(ContentType::json(), bytes(MAX_PAYLOAD_BYTES + 1)).unwrap();
        let refused = PayloadError { len: MAX_PAYLOAD_BYTES + 1, max: MAX_PAYLOAD_BYTES };
        assert_eq!(plain.check_stored(), Err(refused));
        let refused = PayloadError { len: MAX_PLAIN_BYTES + 1, max: MAX_PLAIN_BYTES };
        assert_eq!(Payload::plain(ContentType::json(), bytes(MAX_PLAIN_BYTES + 1)), Err(refused));
    }

    /// A log line must not contain the bytes of a job.
    #[test]
    fn debug_output_shows_the_size_and_the_type_but_not_the_bytes() {
        let payload = Payload::json(*b"\"secret\"").unwrap();
        assert_eq!(format!("{payload:?}"), "8 bytes of application/json");
    }
}
