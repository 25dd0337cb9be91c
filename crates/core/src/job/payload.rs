//! Payloads and results: opaque bytes with a content type.

use std::fmt;
use std::sync::Arc;

use crate::budget::MAX_PAYLOAD_BYTES;

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

/// At most [`MAX_PAYLOAD_BYTES`] bytes and their content type. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Payload {
    content_type: ContentType,
    bytes: Arc<[u8]>,
}

/// The bytes exceed the budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{len} bytes: at most {max} are allowed inline; store larger data elsewhere and submit its address", max = MAX_PAYLOAD_BYTES)]
#[non_exhaustive]
pub struct PayloadError {
    /// The number of bytes.
    pub len: usize,
}

impl Payload {
    /// Wraps bytes.
    ///
    /// # Errors
    /// When there are more than [`MAX_PAYLOAD_BYTES`].
    pub fn new(content_type: ContentType, bytes: impl Into<Arc<[u8]>>) -> Result<Self, PayloadError> {
        let bytes = bytes.into();
        if bytes.len() > MAX_PAYLOAD_BYTES {
            return Err(PayloadError { len: bytes.len() });
        }
        Ok(Self { content_type, bytes })
    }

    /// Wraps JSON text.
    ///
    /// # Errors
    /// When there are more than [`MAX_PAYLOAD_BYTES`].
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

    /// A log line must not contain the bytes of a job.
    #[test]
    fn debug_output_shows_the_size_and_the_type_but_not_the_bytes() {
        let payload = Payload::json(*b"\"secret\"").unwrap();
        assert_eq!(format!("{payload:?}"), "8 bytes of application/json");
    }
}
