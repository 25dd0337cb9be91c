//! Faults at the messages of actors: a test's way to panic, kill or stall any actor at any message. Not in a shipped
//! build: feature `testing`.
//!
//! ```text
//!  scope(label, Node::start(…)) ──▶ every actor of that node, and all that it starts later, is watched
//!                                      │
//!  message ──▶ Watched<A>::handle ──▶ meet(actor, kind): count it; if it is the planned one, strike
//!                                      │
//!                                      └──▶ the actor's own handle
//! ```
//!
//! A [`Probe`] is ambient, not an argument: it is a task-local value of the scope in which a node is started, and each
//! watched actor hands it on to those that it spawns. So production code carries nothing, and many clusters with faults
//! of their own run in one process. What is started outside of a scope is not watched.
//!
//! The [`roster`] lists all actors with the kinds of their messages, as the enums themselves tell them. An actor that is
//! not in it cannot be started with this feature.

mod kind;
mod probe;
mod roster;
mod watched;

pub use kind::{Kind, Kinds};
pub use probe::{Fault, Planned, Probe, Struck};
pub use roster::{Entry, roster};
pub use watched::Probed;

pub(crate) use probe::period;
pub(crate) use roster::entry;
pub(crate) use watched::watch;
