//! The server around the model: one engine thread, one task per connection, bounded queues between them.
//!
//! ```text
//!  listener ──► connection task ──► inbox ──► engine (model + store) ──► outbox ──► the same task ──► socket
//!               frames, decoding    bounded   batches, one commit each   bounded    one write per batch
//! ```
//!
//! * **Every reply is durable.** The engine releases the replies of a batch after its commit. A failed commit ends the
//!   server.
//! * **Memory per client is bounded.** Every bound is in [`limits`].
//! * **This module has no protocol semantics.** The [`model`](crate::model) decides each reply.
//!
//! A single node has no failover: while it is down, its clients wait. After a restart every session has its full
//! timeout again. The log and `srvr` state that there is no failover.

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
mod memory;
mod outbox;
mod stats;
#[cfg(feature = "testing")]
mod testing;
#[cfg(feature = "tls")]
mod tls;

pub use crate::model::{Bounds, Compat};
pub use builder::{Builder, StartError, Storage};
pub use keeper::{BackupError, Keeper, StopReason};
pub use limits::Limits;
#[cfg(feature = "testing")]
pub use testing::Logged;
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};
