//! A kind and its pause.

use bellwether::InstantText;
use bellwether::client::{KindView, Paused};
use serde::Serialize;
use utoipa::ToSchema;

use super::names;

/// A kind that a worker serves, or that is paused.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Kind)]
pub struct KindDocument {
    /// Name of the kind.
    kind: String,
    /// The live workers that have a handler for it.
    workers: Vec<String>,
    /// The workers among them on which it is paused.
    paused_on: Vec<String>,
    /// Slots of the other workers, for all their kinds together.
    slots: usize,
    /// Number of jobs that are assigned to them. May exceed the slots: jobs that were submitted together are assigned together.
    assigned: usize,
    /// The pause, or null.
    #[schema(required)]
    paused: Option<PausedDocument>,
}

/// A pause.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Paused)]
pub(crate) struct PausedDocument {
    /// The author of the pause, as its client named it.
    #[schema(required)]
    by: Option<String>,
    /// The note of the author.
    #[schema(required)]
    note: Option<String>,
    /// When, by the clock of that client.
    #[schema(required)]
    since: Option<InstantText>,
}

impl From<&KindView> for KindDocument {
    fn from(view: &KindView) -> Self {
        let pause = |Paused { by, note, since, .. }: &Paused| PausedDocument {
            by: by.clone(),
            note: note.clone(),
            since: since.map(InstantText),
        };
        Self {
            kind: view.kind.to_string(),
            workers: names(&view.workers),
            paused_on: names(&view.paused_on),
            slots: view.slots,
            assigned: view.assigned,
            paused: view.paused.as_ref().map(pause),
        }
    }
}
