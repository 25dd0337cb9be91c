//! How values are stored in znodes.
//!
//! ```text
//! "BW" | format u8 | record kind u8 | schema u16 LE | bincode 2 body, standard configuration
//! ```
//!
//! * Frozen structs per schema version (`v1` is the only one yet); an older value is
//!   upgraded when it is read.
//! * Bytes come from a shared store that operators and other versions write to, so they are hostile: the
//!   size is bounded before and while decoding, trailing bytes are refused, every name and bound is checked
//!   again, and nothing panics.
//! * An unknown version is its own error: the znode is left alone for a node that can read it.
//!
//! No recursive types and no zero-sized elements: they defeat bincode's limit. Enum variants are only ever
//! appended.

mod v1;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::budget::MAX_RECORD_BYTES;
use crate::group::GroupRecord;
use crate::job::{Assignment, JobRecord, QueueEntry, TurnIndex};
use crate::name::NameError;
use crate::retention::Retention;
use crate::schedule::ScheduleRecord;
use crate::worker::{EpochRecord, PauseRecord, WorkerInfo};

const MAGIC: [u8; 2] = *b"BW";
const FORMAT: u8 = 1;
const HEADER: usize = 6;

/// The schema version that this build writes, and the highest that it reads.
pub const SCHEMA: u16 = 1;

/// The layout of znodes that this build writes, and the only one that it serves. Those before were never released: 1 was
/// that before lanes, 2 that before leases, groups and schedules, 3 that before traces.
pub const LAYOUT_VERSION: u16 = 4;

/// Why bytes are not a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// They do not start as ours.
    #[error("not a Bellwether record")]
    Magic,
    /// They hold another kind of record.
    #[error("record kind {found} where {expected} belongs")]
    Kind {
        /// What belongs here.
        expected: u8,
        /// What is here.
        found: u8,
    },
    /// They were written by a newer build. Leave the znode alone.
    #[error("{what} version {found}: this build reads up to {known}")]
    Version {
        /// `format` or `schema`.
        what: &'static str,
        /// What is here.
        found: u16,
        /// What this build reads.
        known: u16,
    },
    /// They are longer than any record may be.
    #[error("{len} bytes: at most {max} are allowed", max = MAX_RECORD_BYTES)]
    TooLarge {
        /// How many there are.
        len: usize,
    },
    /// The body does not decode.
    #[error("corrupt body: {0}")]
    Body(String),
    /// The body is followed by more.
    #[error("{0} bytes after the record's end")]
    Trailing(usize),
    /// The body decodes to a value that no build writes.
    #[error("{0}")]
    Value(String),
}

impl WireError {
    /// Whether a newer build may be able to read what this one cannot.
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

/// A value that is stored in a znode.
pub trait Stored: Sized {
    /// Tells records of different types apart; never reused.
    const KIND: u8;
    /// The body, in the version that this build writes.
    #[doc(hidden)]
    type Body: Serialize + DeserializeOwned + for<'a> From<&'a Self> + TryInto<Self, Error = WireError>;
}

impl Stored for JobRecord {
    const KIND: u8 = 1;
    type Body = v1::JobRecordV1;
}
impl Stored for QueueEntry {
    const KIND: u8 = 2;
    type Body = v1::QueueEntryV1;
}
impl Stored for Assignment {
    const KIND: u8 = 3;
    type Body = v1::AssignmentV1;
}
impl Stored for WorkerInfo {
    const KIND: u8 = 4;
    type Body = v1::WorkerInfoV1;
}
impl Stored for EpochRecord {
    const KIND: u8 = 5;
    type Body = v1::EpochRecordV1;
}
impl Stored for Layout {
    const KIND: u8 = 6;
    type Body = v1::LayoutV1;
}
impl Stored for TurnIndex {
    const KIND: u8 = 7;
    type Body = v1::TurnV1;
}
impl Stored for Retention {
    const KIND: u8 = 10;
    type Body = v1::RetentionV1;
}
impl Stored for ScheduleRecord {
    const KIND: u8 = 9;
    type Body = v1::ScheduleRecordV1;
}
impl Stored for GroupRecord {
    const KIND: u8 = 8;
    type Body = v1::GroupRecordV1;
}

impl Stored for PauseRecord {
    const KIND: u8 = 11;
    type Body = v1::PauseRecordV1;
}

/// The layout of a namespace, in `/layout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Its version.
    pub version: u16,
}

/// Encodes a value. Its parts are bounded where they are made, so this cannot exceed the budget.
#[must_use]
pub fn encode<T: Stored>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&[FORMAT, T::KIND]);
    bytes.extend_from_slice(&SCHEMA.to_le_bytes());
    let body = T::Body::from(value);
    bincode::serde::encode_into_std_write(&body, &mut bytes, bincode::config::standard())
        .expect("frozen structs of plain fields encode, and a Vec takes every byte");
    debug_assert!(bytes.len() <= MAX_RECORD_BYTES, "{} bytes", bytes.len());
    bytes
}

/// Decodes a value.
///
/// # Errors
/// [`WireError`]: [`WireError::is_newer`] tells bytes of a newer build from corrupt ones.
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
