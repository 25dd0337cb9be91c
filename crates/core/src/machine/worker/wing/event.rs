//! What an incarnation hears, and what it wants done.

use std::time::Duration;

use crate::outcome::Outcome;
use crate::time::Millis;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A new session serves.
    Connected,
    /// The connection is lost.
    Disconnected,
    /// The same session serves again.
    Reconnected,
    /// The session is over.
    Expired,
    /// The last write of this machine was answered.
    Committed(Outcome<()>),
    /// The ephemeral was read; `None` when it could not be.
    Read(Option<Ephemeral>),
    /// A child died.
    ChildDied,
    /// Its inbox is not there: no job can be assigned to it any more.
    InboxGone,
    /// Draining, and the executor has nothing left.
    Idle,
    /// Finish what runs within this time, hand back the rest, leave.
    Drain(Duration),
    /// The registration is to be written anew: another number of slots can be used, or a leader took the worker for hung.
    Anew,
    /// An [`Effect::Say`] was answered.
    Said(Outcome<()>),
    /// The ephemeral may have changed.
    Look,
    /// The time of an [`Effect::WakeAt`] has come.
    Wake,
}

/// The ephemeral, as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ephemeral {
    /// Not there.
    Absent,
    /// Of another session.
    Foreign,
    /// Ours.
    Ours {
        /// Its version.
        version: i32,
        /// Whether it says that the worker drains.
        draining: bool,
    },
}

/// What shall happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Take a fresh id.
    Renew,
    /// Register under the id.
    Register,
    /// Make the parents of what a registration creates, as far as they are missing.
    MakeParents,
    /// Read the ephemeral.
    Read,
    /// Start the children.
    Start,
    /// Stop the children; what they run is cancelled.
    Stop,
    /// Tell the children that the connection is lost.
    Hold,
    /// Tell them that it is back.
    Resume,
    /// Set `draining` in the ephemeral of this version.
    MarkDraining(i32),
    /// Write what the worker offers now into the ephemeral of this version: [`Event::Said`] follows.
    Say(i32),
    /// Tell the executor to drain until then, and the inbox to list everything.
    Drain(Millis),
    /// Tell the inbox to list everything.
    Relist,
    /// Delete the inbox and the ephemeral.
    Retire,
    /// Delete the ephemeral alone.
    Leave,
    /// A child's death starts the incarnation anew.
    Restarted,
    /// Answer whoever asked to drain.
    Drained(Drained),
    /// Fail: too many restarts.
    Fail,
    /// Send [`Event::Wake`] then.
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

/// Where an incarnation is in its life, for those who watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// No session.
    Away,
    /// Not registered yet.
    Registering,
    /// Takes jobs.
    Serving,
    /// Takes nothing new.
    Draining,
    /// Its ephemeral is being deleted.
    Leaving,
    /// Has drained, and takes nothing any more.
    Over,
}
