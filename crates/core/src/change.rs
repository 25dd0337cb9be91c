//! Notes for people of who changed a record last. The note of a removal is in the parent of the removed znode.
//!
//! It is a claim and no proof, because the client that makes the change names the author. Nothing is decided from it.

use std::fmt;

use serde::Serialize;

use crate::budget::{MAX_BY_BYTES, MAX_NOTE_BYTES};
use crate::time::WallMillis;

/// The author of a change, such as `ada@host`: at most [`MAX_BY_BYTES`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Author(String);

impl Author {
    /// An author with this name, or the name's length if it is too long.
    ///
    /// # Errors
    /// The length in bytes.
    pub fn new(name: impl Into<String>) -> Result<Self, usize> {
        let name = name.into();
        if name.len() > MAX_BY_BYTES { Err(name.len()) } else { Ok(Self(name)) }
    }

    /// An author with the end of this name, as far as it fits: a subject of an identity provider ends with what distinguishes it.
    #[must_use]
    pub fn cut(name: &str) -> Self {
        let from =
            (name.len().saturating_sub(MAX_BY_BYTES)..=name.len()).find(|at| name.is_char_boundary(*at));
        Self(name[from.unwrap_or(name.len())..].to_owned())
    }

    /// An author of any length, as a foreign writer may have stored it.
    #[cfg(test)]
    pub(crate) fn unchecked(name: String) -> Self {
        Self(name)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The note of an operator for other people, such as the reason of a pause: at most [`MAX_NOTE_BYTES`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Note(String);

impl Note {
    /// A note with this text, or the text's length if it is too long.
    ///
    /// # Errors
    /// The length in bytes.
    pub fn new(text: impl Into<String>) -> Result<Self, usize> {
        let text = text.into();
        if text.len() > MAX_NOTE_BYTES { Err(text.len()) } else { Ok(Self(text)) }
    }

    /// A note of any length, as a foreign writer may have stored it.
    #[cfg(test)]
    pub(crate) fn unchecked(text: String) -> Self {
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A setting, and the note of its last change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Noted<T> {
    /// The setting.
    pub value: T,
    /// Its last change, if its author was named.
    pub changed: Option<Change>,
}

impl<T> Noted<T> {
    /// Creates a setting without a change.
    pub const fn unchanged(value: T) -> Self {
        Self { value, changed: None }
    }
}

/// A change, its author, and when it was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Change {
    /// The kind of change.
    pub what: ChangeKind,
    /// The author, as the client named it.
    pub by: Author,
    /// When, by the client's wall clock.
    pub at: WallMillis,
}

/// What an author did with a job, a schedule, a group or a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ChangeKind {
    /// Added a schedule.
    Added,
    /// Cancelled a job.
    Cancelled,
    /// Opened an ended job again.
    Reopened,
    /// Released a job from quarantine.
    Released,
    /// Changed a schedule.
    Replaced,
    /// Paused a schedule.
    Paused,
    /// Resumed a schedule.
    Resumed,
    /// Abandoned a group.
    Abandoned,
    /// Changed a setting of the namespace or of a worker.
    Set,
    /// Removed a schedule, or the records of ended jobs.
    Removed,
}

crate::impl_names!(ChangeKind {
    Added = "added",
    Cancelled = "cancelled",
    Reopened = "reopened",
    Released = "released",
    Replaced = "replaced",
    Paused = "paused",
    Resumed = "resumed",
    Abandoned = "abandoned",
    Set = "set",
    Removed = "removed",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_author_is_bounded() {
        let long = "ä".repeat(MAX_BY_BYTES);
        assert_eq!(Author::new(long.as_str()), Err(2 * MAX_BY_BYTES));
        assert_eq!(Author::cut(&long).as_str().len(), MAX_BY_BYTES);
        assert_eq!(Author::cut(&format!("{long}x")).as_str().len(), MAX_BY_BYTES - 1);
        assert_eq!(Author::new("ada@host").unwrap().to_string(), "ada@host");
    }
}
