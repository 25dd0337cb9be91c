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

#[derive(Serialize, Deserialize)]
enum ChangeKindV1 {
    Added,
    Cancelled,
    Reopened,
    Released,
    Replaced,
    Paused,
    Resumed,
    Abandoned,
    Set,
    Removed,
}

impl From<&Change> for ChangeV1 {
    fn from(change: &Change) -> Self {
        let what = match change.what {
            ChangeKind::Added => ChangeKindV1::Added,
            ChangeKind::Cancelled => ChangeKindV1::Cancelled,
            ChangeKind::Reopened => ChangeKindV1::Reopened,
            ChangeKind::Released => ChangeKindV1::Released,
            ChangeKind::Replaced => ChangeKindV1::Replaced,
            ChangeKind::Paused => ChangeKindV1::Paused,
            ChangeKind::Resumed => ChangeKindV1::Resumed,
            ChangeKind::Abandoned => ChangeKindV1::Abandoned,
            ChangeKind::Set => ChangeKindV1::Set,
            ChangeKind::Removed => ChangeKindV1::Removed,
        };
        Self { what, by: change.by.as_str().to_owned(), at: change.at.0 }
    }
}

impl TryFrom<ChangeV1> for Change {
    type Error = WireError;
    fn try_from(stored: ChangeV1) -> Result<Self, WireError> {
        let what = match stored.what {
            ChangeKindV1::Added => ChangeKind::Added,
            ChangeKindV1::Cancelled => ChangeKind::Cancelled,
            ChangeKindV1::Reopened => ChangeKind::Reopened,
            ChangeKindV1::Released => ChangeKind::Released,
            ChangeKindV1::Replaced => ChangeKind::Replaced,
            ChangeKindV1::Paused => ChangeKind::Paused,
            ChangeKindV1::Resumed => ChangeKind::Resumed,
            ChangeKindV1::Abandoned => ChangeKind::Abandoned,
            ChangeKindV1::Set => ChangeKind::Set,
            ChangeKindV1::Removed => ChangeKind::Removed,
        };
        Ok(Self { what, by: author(stored.by)?, at: WallMillis(stored.at) })
    }
}

/// The author of a change. It must be within its bound.
pub(super) fn author(stored: String) -> Result<Author, WireError> {
    Author::new(stored).map_err(|len| {
        WireError::Value(format!("by is {len} bytes long: at most {MAX_BY_BYTES} are allowed"))
    })
}
