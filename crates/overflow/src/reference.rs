//! The stored form: bytes, or a reference to an object.
//!
//! | bytes | content |
//! | --- | --- |
//! | 1 | 0: the rest are the plain bytes; 1: a reference follows |
//! | 8 | the length of the object, big endian |
//! | 32 | its SHA-256 |
//! | 16 | the UUID in its name |

use bellwether::CodecError;
use sha2::Digest as _;
use uuid::Uuid;

use crate::MAX_OBJECT_BYTES;

const INLINE: u8 = 0;
const OBJECT: u8 = 1;

/// The digest of an object.
type Sha256 = [u8; 32];

/// Stored bytes of a payload or result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored<'a> {
    /// The plain bytes.
    Inline(&'a [u8]),
    /// They are in an object.
    Object(Reference),
}

/// A reference to an object of the same job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) object: Uuid,
    pub(crate) length: usize,
    sha256: Sha256,
}

impl Reference {
    pub(crate) fn to(bytes: &[u8], object: Uuid) -> Self {
        Self { object, length: bytes.len(), sha256: sha256(bytes) }
    }

    /// Whether these are the bytes of the object.
    pub(crate) fn is_to(&self, bytes: &[u8]) -> bool {
        bytes.len() == self.length && sha256(bytes) == self.sha256
    }
}

fn sha256(bytes: &[u8]) -> Sha256 {
    sha2::Sha256::digest(bytes).into()
}

impl<'a> Stored<'a> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Inline(plain) => [&[INLINE], *plain].concat(),
            Self::Object(Reference { object, length, sha256 }) => {
                [&[OBJECT][..], &(*length as u64).to_be_bytes(), sha256, object.as_bytes()].concat()
            }
        }
    }

    /// Decodes bytes from any writer.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let malformed = || CodecError::invalid("its reference to an object is malformed");
        match bytes {
            [INLINE, plain @ ..] => Ok(Self::Inline(plain)),
            [OBJECT, rest @ ..] => {
                let (length, rest) = rest.split_first_chunk().ok_or_else(malformed)?;
                let (sha256, object) = rest.split_first_chunk().ok_or_else(malformed)?;
                let object = Uuid::from_slice(object).map_err(|_| malformed())?;
                let length = u64::from_be_bytes(*length);
                let length = usize::try_from(length).ok().filter(|length| *length <= MAX_OBJECT_BYTES);
                let length = length.ok_or_else(|| {
                    CodecError::invalid(format!("its object is larger than {MAX_OBJECT_BYTES} bytes"))
                })?;
                Ok(Self::Object(Reference { object, length, sha256: *sha256 }))
            }
            [] | [_, ..] => Err(CodecError::invalid("it was not encoded by the overflow codec")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_round_trip() {
        let reference = Reference::to(b"abc", Uuid::from_u128(7));
        for stored in [Stored::Inline(b""), Stored::Inline(b"\x01abc"), Stored::Object(reference)] {
            assert_eq!(Stored::decode(&stored.encode()), Ok(stored.clone()));
        }
    }

    #[test]
    fn a_reference_is_to_its_own_bytes_only() {
        let reference = Reference::to(b"abc", Uuid::from_u128(7));
        assert!(reference.is_to(b"abc"));
        for other in [&b"abd"[..], b"ab", b"abcd", b""] {
            assert!(!reference.is_to(other), "{}", other.escape_ascii());
        }
    }

    #[test]
    fn malformed_bytes_are_refused_with_their_reason() {
        let reference = Stored::Object(Reference::to(b"abc", Uuid::from_u128(7))).encode();
        for length in 1..reference.len() {
            let cut = Stored::decode(&reference[..length]).unwrap_err().to_string();
            assert_eq!(cut, "its reference to an object is malformed", "{length}");
        }
        let longer = [&reference[..], b"x"].concat();
        assert_eq!(
            Stored::decode(&longer).unwrap_err().to_string(),
            "its reference to an object is malformed"
        );
        let mut huge = reference;
        huge[1..9].copy_from_slice(&u64::MAX.to_be_bytes());
        let refused = Stored::decode(&huge).unwrap_err().to_string();
        assert_eq!(refused, "its object is larger than 16842752 bytes");
        for foreign in [&b""[..], b"\x02abc"] {
            let refused = Stored::decode(foreign).unwrap_err();
            assert_eq!(refused.to_string(), "it was not encoded by the overflow codec");
        }
    }

    /// The decoder accepts every input and returns a value that is encoded to the same bytes, or an error.
    #[test]
    fn any_bytes_are_a_stored_form_or_refused() {
        let seed = std::env::var("BELLWETHER_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
        let mut state: u64 = seed.unwrap_or(0x9e37_79b9_7f4a_7c15);
        let reference = Stored::Object(Reference::to(b"abc", Uuid::from_u128(7))).encode();
        for _ in 0..20_000 {
            let mut bytes = reference.clone();
            for _ in 0..3 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = usize::try_from(state >> 33).expect("31 bits") % (bytes.len() + 1);
                match (state & 3, at < bytes.len()) {
                    (0, true) => bytes.truncate(at),
                    (1, true) => bytes[at] = state.to_le_bytes()[3],
                    _ => bytes.push(state.to_le_bytes()[4]),
                }
            }
            if let Ok(stored) = Stored::decode(&bytes) {
                assert_eq!(stored.encode(), bytes);
            }
        }
    }
}
