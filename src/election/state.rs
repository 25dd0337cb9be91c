//! The leadership state of a node.

use std::time::Instant;

use bellwether_core::machine::election::leadership::{self as core, Inactive, Term};
use bellwether_host::clock;
use bellwether_host::election::ActiveTerm;

/// The leadership state of a node. Callers decide on each of the three cases, so it stays exhaustive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeadershipState {
    /// Not the leader.
    Inactive(Inactive),
    /// The leader, cut off from ZooKeeper or without an applied beat for too long; the term may still be valid.
    Paused {
        /// The term, which continues if the session lives.
        term: Term,
        /// The latest end of the pause; `None` if the policy does not limit it.
        until: Option<Instant>,
    },
    /// The leader, with a new term, or with the same term after a pause.
    Active(Term),
}

impl LeadershipState {
    pub(super) fn of(state: &core::LeadershipState<ActiveTerm>) -> Self {
        match state {
            core::LeadershipState::Inactive(inactive) => Self::Inactive(*inactive),
            core::LeadershipState::Paused { term, until } => {
                Self::Paused { term: term.clone(), until: (*until).map(clock::instant) }
            }
            core::LeadershipState::Active(active) => Self::Active(active.term.clone()),
        }
    }

    /// Returns its name: `inactive`, `paused`, `active`.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Inactive(_) => "inactive",
            Self::Paused { .. } => "paused",
            Self::Active(_) => "active",
        }
    }

    /// Returns the term, if active or paused.
    #[must_use]
    pub fn term(&self) -> Option<&Term> {
        match self {
            Self::Inactive(_) => None,
            Self::Paused { term, .. } | Self::Active(term) => Some(term),
        }
    }
}
