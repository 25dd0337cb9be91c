//! The author of changes, and the note of the last change of a job, a schedule, a group or a setting.

use std::time::SystemTime;

use bellwether_core::change::{Author, Change, ChangeKind};

use super::{Client, Handle};

/// Who changed something last, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changed {
    /// The kind of the change.
    pub what: ChangeKind,
    /// The author, as the client named it. It is a note and no proof.
    pub by: String,
    /// When, by that client's clock.
    pub at: SystemTime,
}

impl Changed {
    pub(super) fn of(change: Change) -> Self {
        Self { what: change.what, by: change.by.to_string(), at: change.at.into() }
    }
}

impl Client {
    /// Returns a handle whose changes name this author instead of the client's [`author`](super::ClientBuilder::author): for a
    /// service that acts for its callers. Of a name of more than 256 bytes the end is kept.
    #[must_use]
    pub fn on_behalf_of(&self, author: &str) -> Self {
        Self(Handle { shared: self.0.shared.clone(), author: Some(Author::cut(author)) })
    }

    /// The note of a change that this client makes now.
    pub(super) fn change(&self, what: ChangeKind) -> Option<Change> {
        self.0.author.clone().map(|by| Change { what, by, at: self.0.session.wall() })
    }
}
