//! States of an incarnation and of its requests. At most one request is in flight, so each state that waits for an
//! answer records whether its request was sent.

use crate::time::Millis;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum State {
    Away,
    Registering(Step),
    /// Registered without slots.
    TakingOver(Step),
    Serving {
        version: i32,
        check: Check,
    },
    Draining {
        drain: Drain,
        step: Draining,
    },
    Leaving {
        then: Then,
        step: Step,
    },
    Over,
}

/// State of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Sent,
    /// Not answered or not sent: read or retry at the next wake or reconnection.
    Again,
}

/// Whether the ephemeral was read since the last reconnection.
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

/// Whether the children were resumed since the last reconnection.
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

/// State of the write of the worker's offer into its registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Update {
    Nothing,
    Wanted,
    /// Written at this version of the registration.
    Sent(i32),
    /// Written at this version, and the offer has changed again.
    SentBefore(i32),
}
