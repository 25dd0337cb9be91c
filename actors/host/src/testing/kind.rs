//! What sort of message a message is.

pub use bellwether_actors::{Kind, Kinds};
use ractor::SupervisionEvent;

/// What a supervisor hears of its children.
pub(crate) mod child {
    use super::Kind;

    pub(crate) const STARTED: Kind = Kind::new("Started").of("Child");
    pub(crate) const TERMINATED: Kind = Kind::new("Terminated").of("Child");
    pub(crate) const FAILED: Kind = Kind::new("Failed").of("Child");
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
