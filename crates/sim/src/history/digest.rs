//! The digest of a payload, in sixteen digits.

use std::fmt;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The xxh3 hash of a payload's bytes, written as sixteen hexadecimal digits. It distinguishes payloads without storing
/// up to 64 KiB per event. It is text because not all JSON readers keep 64-bit numbers exactly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(u64);

impl Digest {
    /// Computes the digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_64(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        u64::from_str_radix(&text, 16).map(Self).map_err(|error| format!("digest {text:?}: {error}"))
    }
}
