//! Events and effects of a worker incarnation.

use std::time::Duration;

use crate::outcome::Outcome;
use crate::time::Millis;

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A new session is usable.
    Connected,
    /// The connection is lost.
    Disconnected,
    /// The same session is usable again.
    Reconnected,
    /// The session is over.
    Expired,
    /// The last write of this machine was answered.
    Committed(Outcome<()>),
    /// The ephemeral was read; `None` if the read failed.
    Read(Option<Ephemeral>),
    /// The takeover is complete: each attempt was moved or refused.
    TakenOver,
    /// The takeover was interrupted by a lost connection. Some attempts may have been moved.
    TakeoverInterrupted,
    /// A child died.
    ChildDied,
    /// The incarnation's inbox is absent: it cannot be assigned jobs.
    InboxGone,
    /// The worker drains, and the executor has no job left.
    Idle,
    /// Let running attempts finish within this time, hand back the rest, then leave.
    Drain(Duration),
    /// Write the registration again: the number of usable slots has changed, or a leader considers the worker hung.
    Refresh,
    /// The outcome of an [`Effect::UpdateRegistration`].
    RegistrationUpdated(Outcome<()>),
    /// The ephemeral may have changed.
    Look,
    /// The time of an [`Effect::WakeAt`] has come.
    Wake,
}

/// The ephemeral as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ephemeral {
    /// The ephemeral is absent.
    Absent,
    /// The ephemeral belongs to another session.
    Foreign,
    /// The ephemeral belongs to this session.
    Ours {
        /// Its version.
        version: i32,
        /// Whether the draining mark is set.
        draining: bool,
    },
}

/// Output of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Generate a new worker id.
    Renew,
    /// Register under the worker id.
    Register,
    /// Create the missing parents of the znodes that a registration creates.
    MakeParents,
    /// Read the ephemeral.
    Read,
    /// Take over the attempts: [`Event::TakenOver`] or [`Event::TakeoverInterrupted`] follows.
    TakeOver,
    /// Start the children.
    Start,
    /// Stop the children and cancel their running attempts.
    Stop,
    /// Inform the children that the connection is lost.
    Hold,
    /// Inform the children that the connection is back.
    Resume,
    /// Set `draining` in the ephemeral at this version.
    MarkDraining(i32),
    /// Write the current offer into the ephemeral at this version: [`Event::RegistrationUpdated`] follows.
    UpdateRegistration(i32),
    /// Start the executor's drain with this deadline.
    Drain(Millis),
    /// Make the inbox watcher list the whole inbox.
    Relist,
    /// Delete the inbox and the ephemeral.
    Retire,
    /// Delete only the ephemeral.
    Leave,
    /// The death of a child causes a restart of the incarnation.
    Restarted,
    /// Answer the drain request.
    Drained(Drained),
    /// Fail: too many restarts.
    Fail,
    /// Send [`Event::Wake`] at this time.
    WakeAt(Millis),
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Drained {
    /// Every job was finished or handed back.
    Empty,
    /// Something may be left in the inbox: the leader recovers it once the session is over.
    Abandoned,
}

/// The stage of an incarnation, for observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// There is no session.
    Away,
    /// Not registered yet.
    Registering,
    /// Accepts jobs.
    Serving,
    /// Accepts no new jobs.
    Draining,
    /// Its ephemeral is being deleted.
    Leaving,
    /// The drain is complete; accepts no jobs.
    Over,
}
