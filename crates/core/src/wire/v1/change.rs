//! The note of who changed something last.

use serde::{Deserialize, Serialize};

use crate::budget::MAX_BY_BYTES;
use crate::change::{Author, Change, ChangeKind};
use crate::time::WallMillis;
use crate::wire::WireError;

#[derive(Serialize, Deserialize)]
pub(super) struct ChangeV1 {
    what: ChangeKindV1,
    by: String,
    at: u64,
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
