//! What one ZooKeeper server does, as a function: tree, sessions, watches, transactions.
//!
//! No I/O, no clock, no randomness: time and passwords come in, answers and notifications go out in order, and the
//! same inputs give the same outputs. The server feeds it from sockets, a simulator from a seed.
//!
//! ```text
//!   Input ─► engine ─┬─ visit: connections come, re-attach, go; sessions begin and end (refuse: what is none of ours)
//!                    ├─ write ─► journal ─┬─ commit ─► changes (rows for the store), events ─► watch ─► Notify
//!                    │                    └─ revert (a multi that failed)
//!                    └─ read ─► tree                                            … and then ─► Reply
//! ```
//!
//! What holds after every input: the tree, its parents' lists and its registers agree; a connection that is known
//! has a session that lives; an ephemeral znode's session lives; a notification of a change precedes every answer
//! that lets its reader see the change; the transaction number never goes back.

mod acl;
mod changes;
mod config;
mod engine;
mod inspect;
#[cfg(feature = "testing")]
mod log;
mod node;
mod path;
mod read;
mod refuse;
mod reply;
mod restore;
mod session;
#[cfg(test)]
mod tests;
mod tree;
mod visit;
mod watch;
mod write;

pub use config::{Compat, Config};
pub use engine::Model;
pub use inspect::{SessionView, WatchView};
#[cfg(feature = "testing")]
pub use log::{Entry, Transaction};
pub use restore::RestoreError;

use crate::proto::{ConnectRequest, ConnectResponse, Reply, Request, WatchedEvent};

/// A connection, as its driver numbers it. Numbers are not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// The driver's clocks at one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since 1970, for `ctime` and `mtime`.
    pub wall_ms: i64,
    /// Milliseconds that never go back, for everything that expires.
    pub monotonic_ms: u64,
}

/// What a connection brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Its first frame.
    Connect {
        /// What it asks for.
        request: ConnectRequest,
        /// Where it comes from, for the scheme `ip`.
        peer: std::net::IpAddr,
        /// Fresh randomness, used when a session begins: its password, and nothing else.
        password: [u8; 16],
    },
    /// A request.
    Request {
        /// Its number.
        xid: i32,
        /// What it asks.
        request: Request,
    },
    /// The socket is gone; the session goes on until it expires.
    Disconnected,
}

/// What a driver has to do, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Answer a first frame.
    Connected(ConnectionId, ConnectResponse),
    /// Answer a request.
    Reply(ConnectionId, Reply),
    /// Tell these of a change, each once. Always before the answer that lets a client see it. One effect for all of
    /// them: a transaction of thousands of changes that hundreds watch is no list of all pairs.
    Notify(Vec<ConnectionId>, WatchedEvent),
    /// Close the socket, after all that was sent before.
    Close(ConnectionId),
}
