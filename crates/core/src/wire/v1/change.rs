//! The note of who changed something last.

use serde::{Deserialize, Serialize};

use crate::budget::MAX_BY_BYTES;
use crate::change::{Author, Change, ChangeKind, Noted};
use crate::time::WallMillis;
use crate::wire::WireError;

#[derive(Serialize, Deserialize)]
pub struct ChangeV1 {
    what: ChangeKindV1,
    by: String,
    at: u64,
}

/// A setting with the note of its last change.
#[derive(Serialize, Deserialize)]
pub struct NotedV1<B> {
    value: B,
    changed: Option<ChangeV1>,
}

impl<T, B: for<'a> From<&'a T>> From<&Noted<T>> for NotedV1<B> {
    fn from(noted: &Noted<T>) -> Self {
        Self { value: B::from(&noted.value), changed: noted.changed.as_ref().map(Into::into) }
    }
}

impl<T, B: TryInto<T, Error = WireError>> TryFrom<NotedV1<B>> for Noted<T> {
    type Error = WireError;
    fn try_from(stored: NotedV1<B>) -> Result<Self, WireError> {
        let changed = stored.changed.map(TryInto::try_into).transpose()?;
        Ok(Self { value: stored.value.try_into()?, changed })
    }
}

stored_enum!(
    ChangeKindV1 = ChangeKind {
        Added,
        Cancelled,
        Reopened,
        Released,
        Replaced,
        Paused,
        Resumed,
        Abandoned,
        Set,
        Removed
    }
);

impl From<&Change> for ChangeV1 {
    fn from(change: &Change) -> Self {
        Self { what: change.what.into(), by: change.by.as_str().to_owned(), at: change.at.0 }
    }
}

impl TryFrom<ChangeV1> for Change {
    type Error = WireError;
    fn try_from(stored: ChangeV1) -> Result<Self, WireError> {
        Ok(Self { what: stored.what.into(), by: author(stored.by)?, at: WallMillis(stored.at) })
    }
}

/// The author of a change. It must be within its bound.
pub(super) fn author(stored: String) -> Result<Author, WireError> {
    Author::new(stored).map_err(|len| {
        WireError::Value(format!("by is {len} bytes long: at most {MAX_BY_BYTES} are allowed"))
    })
}
