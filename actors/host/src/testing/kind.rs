//! The kinds of messages, including supervision events.

pub use bellwether_actors::{Kind, Kinds};
use ractor::SupervisionEvent;

/// The kinds of supervision events about children.
pub(crate) mod child {
    use super::Kind;

    pub(crate) const STARTED: Kind = Kind::new("Started").of("Child");
    pub(crate) const TERMINATED: Kind = Kind::new("Terminated").of("Child");
    pub(crate) const FAILED: Kind = Kind::new("Failed").of("Child");
}

/// The kind of a supervision event about a child; `None` for other events.
pub(crate) fn of_child(event: &SupervisionEvent) -> Option<Kind> {
    match event {
        SupervisionEvent::ActorStarted(_) => Some(child::STARTED),
        SupervisionEvent::ActorTerminated(..) => Some(child::TERMINATED),
        SupervisionEvent::ActorFailed(..) => Some(child::FAILED),
        SupervisionEvent::ProcessGroupChanged(_) => None,
    }
}
