//! What sort of message a message is.

use std::fmt;

use bellwether_core::machine::{assigner, group, leadership, recovery, worker};
use ractor::SupervisionEvent;

use crate::feed::Feed;
use crate::session::SessionEvent;
use crate::spawn::kinds;

/// The name of a message's variant, or of a variant in it: `Sweep`, `Feed.Watching`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    outer: Option<&'static str>,
    name: &'static str,
}

/// An enum whose variants are kinds.
pub trait Kinds {
    /// One for each variant.
    fn all() -> Vec<Kind>;

    /// This one's.
    fn kind(&self) -> Kind;
}

impl Kind {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { outer: None, name }
    }

    /// As a variant in another: two levels are told apart, not more.
    pub(crate) fn of(self, outer: &'static str) -> Self {
        Self { outer: Some(outer), name: self.outer.unwrap_or(self.name) }
    }

    pub(crate) fn within(outer: &'static str, inner: &[Self]) -> Vec<Self> {
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

kinds!(SessionEvent { Connected, Disconnected, Reconnected, Expired });
kinds!(Feed { Watching, Changes });
kinds!(leadership::Reply { Campaign, Epoch, Claimed, Verified });
kinds!(recovery::Event { Lost, Listed, Read, Committed, Removed, Sweep });
kinds!(group::Event { Seen, Changed, Ended, Gone, Looked, Committed, Found, Cancelled, Resync });
kinds!(assigner::Event {
    Queued,
    Unqueued,
    Worker,
    WorkerGone,
    InboxChanged,
    Inbox,
    Committed,
    Resolved,
    LanesWatched,
    TurnGone,
    LanesListed,
    TurnsRead,
    Hangs,
    PausesChanged,
    Paused,
    Tick,
    Pause,
    Resume,
});
kinds!(worker::executor::Event {
    Start,
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
    Wake,
});
kinds!(worker::beats::Event {
    Begun,
    Asked,
    Finished,
    Over,
    Committed,
    Read,
    ReadFailed,
    Hold,
    Resume,
    Wake
});
kinds!(worker::reporter::Event { Report, Committed, Read, ReadFailed, MinuteMade, Hold, Resume, Wake });

/// What a supervisor hears of its children.
pub(crate) mod child {
    use super::Kind;

    pub(crate) const STARTED: Kind = Kind { outer: Some("Child"), name: "Started" };
    pub(crate) const TERMINATED: Kind = Kind { outer: Some("Child"), name: "Terminated" };
    pub(crate) const FAILED: Kind = Kind { outer: Some("Child"), name: "Failed" };
}

/// What sort of news of a child it is; `None` for news of something else.
pub(crate) fn of_child(event: &SupervisionEvent) -> Option<Kind> {
    match event {
        SupervisionEvent::ActorStarted(_) => Some(child::STARTED),
        SupervisionEvent::ActorTerminated(..) => Some(child::TERMINATED),
        SupervisionEvent::ActorFailed(..) => Some(child::FAILED),
        SupervisionEvent::ProcessGroupChanged(_) => None,
    }
}
