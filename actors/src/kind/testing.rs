//! Kinds of messages, in builds for tests.

use std::fmt;

use bellwether_core::machine::election::leadership;
use bellwether_core::machine::worker_registry::recovery;
use bellwether_core::machine::{assigner, group_joiner, worker};

use crate::{Feed, kinds};

/// The name of a message's variant, or of a variant within it: `Sweep`, `Feed.Watching`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    outer: Option<&'static str>,
    name: &'static str,
}

/// An enum whose variants have kinds.
pub trait Kinds {
    /// The kinds of all variants.
    fn all() -> Vec<Kind>;

    /// The kind of this variant.
    fn kind(&self) -> Kind;
}

impl Kind {
    /// Creates the kind of the variant with this name.
    pub const fn new(name: &'static str) -> Self {
        Self { outer: None, name }
    }

    /// Nests this kind in a variant of an outer enum. At most two levels are kept.
    pub const fn of(self, outer: &'static str) -> Self {
        let name = match self.outer {
            Some(outer) => outer,
            None => self.name,
        };
        Self { outer: Some(outer), name }
    }

    /// Nests the kinds of an inner enum in a variant of an outer enum.
    pub fn within(outer: &'static str, inner: &[Self]) -> Vec<Self> {
        let mut kinds = inner.iter().map(|kind| kind.of(outer)).collect::<Vec<_>>();
        kinds.dedup();
        kinds
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outer {
            Some(outer) => write!(f, "{outer}.{}", self.name),
            None => f.write_str(self.name),
        }
    }
}

kinds!(Feed { Watching, Changes });
kinds!(leadership::Reply { Campaign, Read, Claimed, Beaten, Watched, Changed });
kinds!(recovery::Event { Lost, Survived, Listed, Read, SegmentRead, Committed, Removed, Sweep });
kinds!(group_joiner::Event { Seen, Changed, Ended, Gone, Looked, Committed, Found, Cancelled, Resync });
kinds!(assigner::Event {
    Queued,
    Unqueued,
    Beyond,
    Worker,
    WorkerGone,
    InboxChanged,
    InboxRead,
    Inbox,
    InboxRefused,
    Committed,
    Resolved,
    LanesWatched,
    TurnGone,
    LanesListed,
    TurnsRead,
    Hangs,
    SettingsChanged,
    Settings,
    Tick,
    Relist,
    Resume,
});
kinds!(worker::executor_pool::Event {
    Start,
    Settings,
    SlotGranted,
    Ended,
    Cancel,
    Third,
    Lapsed,
    Vanished,
    Zombie,
    GraceOver,
    Closed,
    Hold,
    Resume,
    Drain,
    Abandoned,
    HandBack,
    Wake,
});
kinds!(worker::status_reporter::beats::Event {
    Started,
    Requested,
    Finished,
    Over,
    Committed,
    Read,
    ReadFailed,
    Hold,
    Resume,
    Wake
});
kinds!(worker::status_reporter::reporter::Event { Report, Committed, Read, ReadFailed, Hold, Resume, Wake });
