//! The model behind sockets: one engine thread, a task per connection, bounded queues between them.
//!
//! ```text
//!  listener ──► connection task ──► inbox ──► engine (model + store) ──► outbox ──► the same task ──► socket
//!               frames, decoding    bounded   batches, one commit each   bounded    one write per batch
//! ```
//!
//! **What is answered is durable**: the engine releases a batch behind its commit, and ends the server when a commit
//! fails. **What a client can make the server hold is bounded**: every number is in [`limits`]. **Nothing here
//! decides** what an answer is: that is the [`model`](crate::model)'s business.
//!
//! A single node has no failover: while it is down, its clients wait, and sessions that time out meanwhile get their
//! time anew. It says so in its log and in `srvr`.

mod builder;
mod clock;
mod connection;
mod engine;
mod fourletter;
mod frames;
mod inbox;
mod keeper;
pub mod limits;
mod listener;
mod outbox;
mod stats;
#[cfg(feature = "testing")]
mod testing;
#[cfg(feature = "tls")]
mod tls;

pub use builder::{Builder, StartError, Storage};
pub use keeper::{BackupError, Keeper, StopReason};
pub use limits::Limits;
#[cfg(feature = "testing")]
pub use testing::Logged;
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};
