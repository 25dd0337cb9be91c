//! Where an incarnation is in its life, and how its request fares. Nothing is asked twice at a time, so each state that
//! waits for an answer says whether it is on its way.

use crate::time::Millis;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum State {
    Away,
    Registering(Step),
    Serving { version: i32, check: Check },
    Draining { drain: Drain, step: Draining },
    Leaving { then: Then, step: Step },
    Over,
}

/// How a request of ours fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Sent,
    /// Not answered, or not sent: look or try again at the next wake or reconnection.
    Again,
}

/// Whether the ephemeral was seen since the last reconnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Check {
    Seen,
    Asked,
    Again,
    Down,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Draining {
    Marking(Step, Children),
    Emptying,
    Retiring(Step),
}

/// Whether the children were told to go on since the last reconnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Children {
    Live,
    Held,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Drain {
    pub(super) until: Millis,
    pub(super) give_up: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Then {
    Again,
    Over,
    Fail,
}

/// What the worker offers, on its way into its registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Say {
    Nothing,
    Wanted,
    /// On this version of it.
    Sent(i32),
    /// And it has changed again.
    SentBefore(i32),
}
