//! Fault injection at the messages of actors: a test can panic, kill or stall any actor at any message. Only with the
//! feature `testing`, never in a release build.
//!
//! ```text
//!  scope(label, Node::start(…)) ──▶ every actor of that node, including later ones, is watched
//!                                      │
//!  message ──▶ Watched<A>::handle ──▶ meet(actor, kind): count it; if a fault is planned here, inject it
//!                                      │
//!                                      └──▶ the actor's own handle
//! ```
//!
//! A [`Probe`] is not an argument but a task-local value of the scope in which a node is started. Each watched actor
//! passes it on to the actors that it spawns. So production code does not carry it, and many clusters with different
//! faults can run in one process. An actor that is started outside of a scope is not watched.
//!
//! The [`roster`] lists all actors with the kinds of their messages, derived from the message enums. With this feature
//! an actor that is not in the roster cannot be started.

mod kind;
mod probe;
mod roster;
mod watched;

pub use kind::{Kind, Kinds};
pub use probe::{Fault, InjectedFault, Planned, Probe};
pub use roster::{Entry, roster};
pub use watched::Probed;

pub(crate) use probe::period;
pub(crate) use roster::entry;
pub(crate) use watched::watch;
