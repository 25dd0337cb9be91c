//! Bellwether's actors: one supervised ractor actor per concern.
//!
//! An actor owns one pure machine of `bellwether-core` (or a state small enough to need none), feeds it
//! messages and carries out its effects. Three rules hold for all of them:
//!
//! * No handler awaits ZooKeeper. It *makes* the request, which sends it in order, spawns the await, and gets
//!   the outcome back as a message.
//! * Watch callbacks become messages in a pump task that the actor owns and aborts with itself.
//! * Mailboxes are unbounded, so whoever sends in bulk bounds itself: by a window of requests in flight, or by
//!   slots.
#![forbid(unsafe_code)]

pub mod clock;
pub mod election;
mod feed;
pub use bellwether_actors::{group, trace};
mod host;
pub mod leader;
mod margin;
pub mod node;
pub mod session;
mod spawn;
mod supervise;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
pub mod worker;
