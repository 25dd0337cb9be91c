//! All actors and the kinds of their messages.

use super::kind::{Kind, Kinds, child};
use super::watched::Probed;
use crate::{election, leader, node, session, worker};

/// An actor of the roster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The actor's name.
    pub actor: &'static str,
    /// The kinds of messages that it can receive. `Child.…` are supervision events about its children.
    pub kinds: Vec<Kind>,
}

/// Lists every actor, supervisors before their children.
#[must_use]
pub fn roster() -> Vec<Entry> {
    [node::roster(), session::roster(), election::roster(), leader::roster(), worker::roster()].concat()
}

pub(crate) fn entry<A: Probed>() -> Entry {
    let mut kinds = A::Msg::all();
    if A::SUPERVISES {
        kinds.extend([child::STARTED, child::TERMINATED, child::FAILED]);
    }
    Entry { actor: A::NAME, kinds }
}
