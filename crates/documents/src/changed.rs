//! Who changed something last.

use bellwether::InstantText;
use bellwether::client::{ChangeKind, Changed, rfc3339};
use serde::Serialize;
use utoipa::ToSchema;

/// Who changed something last.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Changed)]
pub struct ChangedDocument {
    /// What the author did.
    what: ChangeKind,
    /// The author, as its client named it: the caller of the gateway, the user and host of a command, or a program. It is a note
    /// and no proof.
    #[schema(example = "ada@host")]
    by: String,
    /// When, by that client's clock.
    at: InstantText,
}

impl From<&Changed> for ChangedDocument {
    fn from(changed: &Changed) -> Self {
        Self { what: changed.what, by: changed.by.clone(), at: InstantText(changed.at) }
    }
}

/// The change as a sentence.
pub fn sentence(changed: &Changed) -> String {
    format!("{} by {} at {}", changed.what, changed.by, rfc3339(changed.at))
}
