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

    /// Whether it is JSON: `application/json`, or a type that ends with `+json`, with or without parameters.
    #[must_use]
    pub fn is_json(&self) -> bool {
        let essence = self.0.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        essence == "application/json" || essence.ends_with("+json")
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

    /// Checks that JSON nests at most 100 levels deep, because parsers of handlers limit the depth. Bytes of another content type are
    /// not checked.
    ///
    /// # Errors
    /// When it nests deeper.
    pub fn check_nesting(&self) -> Result<(), NestingError> {
        if self.content_type.is_json() && nests_too_deeply(&self.bytes) {
            return Err(NestingError);
        }
        Ok(())
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

/// The depth at which JSON may nest. Common parsers refuse 128 levels.
const MAX_NESTING: usize = 100;

/// JSON nests too deeply for the parsers of handlers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nests deeper than {MAX_NESTING}: flatten it")]
#[non_exhaustive]
pub struct NestingError;

/// Counts the levels of JSON text without recursion.
fn nests_too_deeply(json: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json {
        match (byte, in_string) {
            _ if escaped => escaped = false,
            (b'\\', true) => escaped = true,
            (b'"', _) => in_string = !in_string,
            (b'[' | b'{', false) => depth += 1,
            (b']' | b'}', false) => depth = depth.saturating_sub(1),
            (_, _) => {}
        }
        if depth > MAX_NESTING {
            return true;
        }
    }
    false
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
    fn only_brackets_outside_of_strings_nest() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let check = |text: String| Payload::json(text.into_bytes()).unwrap().check_nesting();
        assert_eq!(check(nested(MAX_NESTING)), Ok(()));
        assert_eq!(check(nested(MAX_NESTING + 1)), Err(NestingError));
        assert_eq!(check(format!(r#""\"{}""#, "[".repeat(1_000))), Ok(()));
        assert_eq!(check(format!(r#"["\\", {}]"#, nested(MAX_NESTING))), Err(NestingError));
        assert_eq!(check(vec!["[]"; 1_000].join(",")), Ok(()));
        let text = ContentType::new("text/plain").unwrap();
        assert_eq!(Payload::new(text, nested(1_000).into_bytes()).unwrap().check_nesting(), Ok(()));
    }

    #[test]
    fn types_with_the_suffix_and_with_parameters_are_json() {
        for (name, is_json) in [
            ("application/json", true),
            ("application/json; charset=utf-8", true),
            ("Application/LD+JSON", true),
            ("text/json", false),
            ("application/jsonl", false),
        ] {
            assert_eq!(ContentType::new(name).unwrap().is_json(), is_json, "{name}");
        }
    }

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
