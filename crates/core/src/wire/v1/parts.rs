//! Parts that the structs of this version share, and their bounds.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::budget::{MAX_COUNT, MAX_ERROR_BYTES, MAX_KINDS, MAX_WAIT, MIN_LEASE};
use crate::trace::TraceContext;
use crate::wire::WireError;

/// A trace context: always 25 bytes.
#[derive(Serialize, Deserialize)]
pub(super) struct TraceV1 {
    trace: [u8; 16],
    span: [u8; 8],
    flags: u8,
}

impl From<TraceContext> for TraceV1 {
    fn from(context: TraceContext) -> Self {
        Self { trace: context.trace(), span: context.span(), flags: context.flags() }
    }
}

impl TryFrom<TraceV1> for TraceContext {
    type Error = WireError;
    fn try_from(stored: TraceV1) -> Result<Self, WireError> {
        Self::stored(stored.trace, stored.span, stored.flags).map_err(value)
    }
}

/// Bytes as one length-prefixed block instead of a sequence of integers.
pub(super) mod bytes {
    use std::fmt;

    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    pub(in super::super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
                Ok(bytes)
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}

/// A list whose length is checked before memory is allocated for it, so that a wrong length costs nothing. No list
/// of this version has more than [`MAX_KINDS`] items; [`set`] checks the bound of each list.
pub(super) fn few<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct Few<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {MAX_KINDS} items")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            if let Some(length) = items.size_hint().filter(|length| *length > MAX_KINDS) {
                return Err(A::Error::invalid_length(length, &self));
            }
            let mut few = Vec::new();
            while let Some(item) = items.next_element()? {
                few.push(item);
            }
            Ok(few)
        }
    }
    deserializer.deserialize_seq(Few(PhantomData))
}

pub(super) fn value(error: impl std::fmt::Display) -> WireError {
    WireError::Value(error.to_string())
}

/// A number that may still be incremented.
pub(super) fn count(field: &str, stored: u32) -> Result<u32, WireError> {
    if stored > MAX_COUNT {
        return Err(WireError::Value(format!("{field} {stored}: at most {MAX_COUNT} is allowed")));
    }
    Ok(stored)
}

/// An error text, within the length to which every build cuts it.
pub(super) fn error_text(stored: String) -> Result<String, WireError> {
    if stored.len() > MAX_ERROR_BYTES {
        let len = stored.len();
        return Err(WireError::Value(format!(
            "an error of {len} bytes: at most {MAX_ERROR_BYTES} are allowed"
        )));
    }
    Ok(stored)
}

/// A sorted set, as every build writes it: readers rely on the order.
pub(super) fn set<T: Ord>(
    field: &str,
    max: usize,
    items: Vec<String>,
    new: fn(String) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    if items.len() > max {
        return Err(WireError::Value(format!("{} {field}: at most {max} are allowed", items.len())));
    }
    let items = items.into_iter().map(new).collect::<Result<Vec<_>, _>>()?;
    if items.is_sorted_by(|a, b| a < b) {
        Ok(items)
    } else {
        Err(WireError::Value(format!("{field} are not a sorted set")))
    }
}

/// A lease within its bounds.
pub(super) fn lease(stored: u64) -> Result<Duration, WireError> {
    let lease = Duration::from_millis(stored);
    if (MIN_LEASE..=MAX_WAIT).contains(&lease) {
        Ok(lease)
    } else {
        Err(WireError::Value(format!("a lease of {lease:?}: {MIN_LEASE:?} to {MAX_WAIT:?} is allowed")))
    }
}
