//! Where a page of jobs ends.

use std::fmt;
use std::str::FromStr;

use bellwether_core::budget::MAX_NAME_BYTES;
use bellwether_core::name::JobId;

/// Maximum bytes of a parent in a cursor: a class and a slot.
const MAX_PARENT: usize = MAX_NAME_BYTES + 32;

/// The end of a page: this name in this parent. Its text is opaque: pass it back unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub(super) parent: String,
    pub(super) after: JobId,
}

/// The text is not a cursor of a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not the `next` of a page: pass it back unchanged, with the same filter")]
#[non_exhaustive]
pub struct CursorError;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", self.parent, self.after)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let (parent, after) = text.split_once('~').ok_or(CursorError)?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@+:".contains(&byte);
        if parent.len() > MAX_PARENT || !parent.bytes().all(is_name) {
            return Err(CursorError);
        }
        Ok(Self { parent: parent.to_owned(), after: JobId::new(after).map_err(|_| CursorError)? })
    }
}
