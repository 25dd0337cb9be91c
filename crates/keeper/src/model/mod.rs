//! The semantics of one ZooKeeper server as a pure function: tree, sessions, watches, transactions.
//!
//! No I/O, no clock, no randomness. Time and session passwords are inputs; replies and notifications are ordered
//! outputs; the same inputs give the same outputs. The server feeds the model from sockets, a simulator from a seed.
//!
//! ```text
//!   Input ─► engine ─┬─ visit: connections and sessions start and end (refuse: unsupported requests)
//!                    ├─ write ─► journal ─┬─ commit ─► changes (rows for the store), events ─► watch ─► Notify
//!                    │                    └─ revert (a multi that failed)
//!                    └─ read ─► tree                                            … then ─► Reply
//! ```
//!
//! Invariants after every input: the tree, the child lists and the indexes agree; every known connection has a live
//! session; the session of every ephemeral znode is live; the notification of a change precedes every reply that shows
//! its client the change; the zxid never decreases.

mod acl;
mod changes;
mod config;
mod connect;
mod engine;
mod inspect;
#[cfg(feature = "testing")]
mod log;
mod member;
mod node;
mod path;
mod read;
mod reply;
mod restore;
mod session;
#[cfg(test)]
mod tests;
mod tree;
mod unsupported;
mod watch;
mod write;

pub use crate::proto::Compat;
pub use config::{Bounds, Config};
pub use engine::Model;
pub use inspect::{SessionView, WatchView};
#[cfg(feature = "testing")]
pub use log::{Entry, Transaction};
pub use restore::RestoreError;

use crate::proto::{ConnectRequest, ConnectResponse, Reply, Request, WatchedEvent};

/// A connection id, assigned by the driver and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// The driver's clocks at one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since 1970, for `ctime` and `mtime`.
    pub wall_ms: i64,
    /// Monotonic milliseconds, for everything that expires.
    pub monotonic_ms: u64,
}

/// An input of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The first frame.
    Connect {
        /// The connect request.
        request: ConnectRequest,
        /// The address of the client, for the scheme `ip`.
        peer: std::net::IpAddr,
        /// Random bytes for the password of a new session.
        password: [u8; 16],
    },
    /// A request.
    Request {
        /// The number that the client gave the request.
        xid: i32,
        /// The request.
        request: Request,
    },
    /// The socket is closed; the session continues until it expires.
    Disconnected,
}

/// An action for the driver. Effects must be executed in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Reply to a first frame.
    Connected(ConnectionId, ConnectResponse),
    /// Reply to a request.
    Reply(ConnectionId, Reply),
    /// Notify each of these connections once. Always before the reply that shows a client the change. One effect per
    /// change: a transaction of thousands of changes with hundreds of watchers does not produce a list of all pairs.
    Notify(Vec<ConnectionId>, WatchedEvent),
    /// Close the socket after everything sent before.
    Close(ConnectionId),
}
