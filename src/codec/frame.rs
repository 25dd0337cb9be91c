//! The plain bytes that a codec receives: a version, the content type, and the bytes.

use bellwether_core::job::{ContentType, Payload};

use super::CodecError;

/// The version of the frame.
const VERSION: u8 = 1;

/// Puts a payload into a frame.
pub(crate) fn framed(plain: &Payload) -> Vec<u8> {
    let content_type = plain.content_type().as_str().as_bytes();
    let length = u8::try_from(content_type.len()).expect("a content type has at most 127 bytes");
    [&[VERSION, length], content_type, plain.bytes()].concat()
}

/// Takes a payload out of a frame.
///
/// # Errors
/// The frame has another version, or is malformed or too large.
pub(crate) fn unframed(frame: &[u8]) -> Result<Payload, CodecError> {
    let (content_type, bytes) = match frame {
        [VERSION, length, rest @ ..] => rest
            .split_at_checked(usize::from(*length))
            .ok_or_else(|| CodecError::invalid("its frame is cut"))?,
        [version, ..] if *version != VERSION => {
            return Err(CodecError::invalid(format!(
                "its frame has version {version}: only {VERSION} is known"
            )));
        }
        _ => return Err(CodecError::invalid("its frame is cut")),
    };
    let content_type = str::from_utf8(content_type)
        .map_err(CodecError::invalid)
        .and_then(|text| ContentType::new(text).map_err(CodecError::invalid))?;
    Payload::plain(content_type, bytes).map_err(|error| CodecError::invalid(format!("it has {error}")))
}
