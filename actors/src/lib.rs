//! Bellwether's actors, each written once.
//!
//! A [`Concern`] is an actor without its runtime: its messages, a pure machine of `bellwether-core`, and the
//! interpretation of that machine's effects. It performs no I/O. It pushes its outputs into its [`Context`] as data
//! ([`Out`]): requests to ZooKeeper, watches, timers, messages to neighbours. The host carries the outputs out in
//! order after the handler has returned, so a handler that panics sends nothing.
//!
//! There are two hosts. `bellwether-host` runs a concern as a supervised ractor actor on a real ZooKeeper session.
//! `bellwether-sim` runs the same code in virtual time. This package depends on neither ractor nor tokio nor a
//! ZooKeeper client, so the simulator can use it.
//!
//! Three rules hold for every concern:
//!
//! * A handler never waits. An answer comes back as a message.
//! * An instance lives for one term or one incarnation; its host drops answers that come after its end.
//! * Mailboxes are unbounded, so a concern that sends in bulk bounds its requests in flight.
#![forbid(unsafe_code)]

mod context;
#[macro_use]
mod kind;
pub mod election;
pub mod gauge;
pub mod group;
mod intensity;
pub mod kind_label;
pub mod last_will;
pub mod leader;
mod mail;
pub mod node;
mod paused;
pub mod session;
#[cfg(test)]
mod stage;
pub mod trace;
mod unreadable;
pub mod worker;

pub use context::{Answer, Ask, Commit, Context, Feed, Out, Task, Trust};
#[cfg(feature = "testing")]
pub use kind::{Kind, Kinds};
pub use mail::{Mail, Source, Sources, Stamp};
pub use paused::Paused;
pub use unreadable::Unreadable;

/// A message of a concern. With the feature `testing` it also has a kind.
#[cfg(not(feature = "testing"))]
pub trait Message: Send + 'static {}
#[cfg(not(feature = "testing"))]
impl<M: Send + 'static> Message for M {}

/// A message of a concern. With the feature `testing` it also has a kind.
#[cfg(feature = "testing")]
pub trait Message: Send + 'static + Kinds {}
#[cfg(feature = "testing")]
impl<M: Send + 'static + Kinds> Message for M {}

/// One concern of a node: an actor without its runtime.
pub trait Concern: Sized + Send + 'static {
    /// The one name of its actor, its machine, its metrics label and its section in the docs.
    const NAME: &'static str;
    /// The messages that it receives.
    type Msg: Message;
    /// The arguments of [`Concern::start`].
    type Args: Send + 'static;
    /// Identifies its timers and watches. A timer or watch replaces the one with the same key.
    type Key: Clone + PartialEq + Send + 'static;
    /// Messages to its neighbours, and effects that only a host can carry out.
    type Tell: Send + 'static;

    /// Starts the concern. The host carries out its outputs before it handles the first message.
    fn start(cx: &mut Context<'_, Self>, args: Self::Args) -> Self;

    /// Handles one message.
    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: Self::Msg);
}
