//! Runs Bellwether's actors: one supervised ractor actor per concern.
//!
//! An actor owns one pure machine of `bellwether-core` (or a state that is too small to need one), feeds it messages
//! and carries out its effects. Three rules hold for every actor:
//!
//! * No handler awaits ZooKeeper. It creates the request, which sends it in order, and spawns a task that awaits the
//!   answer and returns it as a message.
//! * Watch callbacks become messages in a pump task that the actor owns. The task is aborted when the actor ends.
//! * Mailboxes are unbounded, so a sender of many messages limits itself, by a window of requests in flight or by
//!   slots.
#![forbid(unsafe_code)]

pub mod clock;
pub mod election;
mod feed;
pub use bellwether_actors::{group, kind_label, trace};
mod host;
pub mod leader;
pub mod node;
pub mod session;
mod session_margin;
mod spawn;
mod supervise;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
pub mod worker;
