//! The stored form of values in znodes.
//!
//! ```text
//! "BW" | format u8 | record kind u8 | schema u16 LE | bincode 2 body, standard configuration
//! ```
//!
//! * One set of frozen structs per schema version. `v1` is the only one so far. A later version converts older values
//!   when it reads them.
//! * The bytes are untrusted, because operators and other versions write to the same store. The size is bounded before
//!   and while decoding, trailing bytes are refused, every name and bound is checked again, and nothing panics.
//! * An unknown version is a separate error: the znode is kept for a node that can read it.
//!
//! No recursive types and no zero-sized elements: bincode's limit does not bound them. Enum variants are only appended.

mod stored;
mod v1;

use crate::budget::MAX_RECORD_BYTES;
use crate::machine::election::campaign::Strategy;
use crate::name::NameError;

pub use stored::{Stored, Types, each_type};

const MAGIC: [u8; 2] = *b"BW";
const FORMAT: u8 = 1;
const HEADER: usize = 6;

/// The schema version that this build writes, and the highest that it reads.
pub const SCHEMA: u16 = 1;

/// The layout of znodes that this build writes, and the only one that it accepts. Earlier layouts were never released:
/// 1 had no lanes, 2 had no leases, groups and schedules, 3 had no traces, 4 named delayed entries by job only, 5 had no
/// beats and no election strategy, 6 kept only the last attempt of a job and no ids of lost workers, 7 did not name the author of
/// a change, 8 did so only for jobs, schedules and groups, and had all waiting jobs in hashed buckets, 10 had 256 parents of
/// records, 11 had no segments.
pub const LAYOUT_VERSION: u16 = 12;

/// Why bytes cannot be decoded to a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// They do not start with the magic bytes.
    #[error("not a Bellwether record")]
    Magic,
    /// They contain another kind of record.
    #[error("record kind {found}, not {expected}")]
    Kind {
        /// The expected kind.
        expected: u8,
        /// The kind in the header.
        found: u8,
    },
    /// They were written by another version, usually a newer build. The znode must be left unchanged.
    #[error("{what} version {found}: this build reads up to {known}")]
    Version {
        /// `format` or `schema`.
        what: &'static str,
        /// The version in the header.
        found: u16,
        /// The version that this build reads.
        known: u16,
    },
    /// They are longer than any valid record.
    #[error("{len} bytes: at most {max} are allowed", max = MAX_RECORD_BYTES)]
    TooLarge {
        /// The number of bytes.
        len: usize,
    },
    /// The body does not decode.
    #[error("corrupt body: {0}")]
    Body(String),
    /// The body is followed by more bytes.
    #[error("{0} bytes after the record's end")]
    Trailing(usize),
    /// The body decodes to a value that no build writes.
    #[error("{0}")]
    Value(String),
}

impl WireError {
    /// Whether a newer build may be able to read the bytes.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        matches!(self, Self::Version { .. })
    }
}

impl From<NameError> for WireError {
    fn from(error: NameError) -> Self {
        Self::Value(error.to_string())
    }
}

/// The layout of a namespace, in `/layout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Its version.
    pub version: u16,
    /// How its candidates are ordered; `None` until its first candidate starts.
    pub election: Option<Strategy>,
}

impl Layout {
    /// Creates the layout of a namespace without candidates.
    #[must_use]
    pub const fn new(version: u16) -> Self {
        Self { version, election: None }
    }
}

/// Encodes a value. The parts of a value are bounded when they are created, so the result is within the budget.
#[must_use]
pub fn encode<T: Stored>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&[FORMAT, T::KIND]);
    bytes.extend_from_slice(&SCHEMA.to_le_bytes());
    let body = T::Body::from(value);
    bincode::serde::encode_into_std_write(&body, &mut bytes, bincode::config::standard())
        .expect("frozen structs always encode, and writing to a Vec cannot fail");
    debug_assert!(bytes.len() <= MAX_RECORD_BYTES, "{} bytes", bytes.len());
    bytes
}

/// Decodes a value.
///
/// # Errors
/// A [`WireError`]; [`WireError::is_newer`] distinguishes bytes of a newer build from corrupt bytes.
pub fn decode<T: Stored>(bytes: &[u8]) -> Result<T, WireError> {
    if bytes.len() > MAX_RECORD_BYTES {
        return Err(WireError::TooLarge { len: bytes.len() });
    }
    let Some((header, body)) = bytes.split_at_checked(HEADER) else {
        return Err(WireError::Magic);
    };
    let &[m0, m1, format, kind, s0, s1] = header else {
        return Err(WireError::Magic);
    };
    if [m0, m1] != MAGIC {
        return Err(WireError::Magic);
    }
    if format != FORMAT {
        return Err(WireError::Version { what: "format", found: format.into(), known: FORMAT.into() });
    }
    if kind != T::KIND {
        return Err(WireError::Kind { expected: T::KIND, found: kind });
    }
    let schema = u16::from_le_bytes([s0, s1]);
    if schema != SCHEMA {
        return Err(WireError::Version { what: "schema", found: schema, known: SCHEMA });
    }
    let config = bincode::config::standard().with_limit::<MAX_RECORD_BYTES>();
    let (value, used): (T::Body, usize) = bincode::serde::decode_from_slice(body, config)
        .map_err(|error| WireError::Body(error.to_string()))?;
    if used != body.len() {
        return Err(WireError::Trailing(body.len() - used));
    }
    value.try_into()
}

#[cfg(test)]
mod tests;
