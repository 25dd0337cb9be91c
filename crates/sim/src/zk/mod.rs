//! `bellwether-zk` in virtual time, as the actors use it.
//!
//! * [`protocol`]: the requests of a session's methods, and the [`Outcome`](bellwether_core::outcome::Outcome) or the
//!   value of each reply. A request is sent when its method is called, or is rejected immediately if the session is
//!   known not to be connected.
//! * [`library`]: the client library: connections, requests in flight, watches, the end of a session as its client sees
//!   it.

pub(crate) mod library;
pub(crate) mod protocol;

/// A handle to a session. It does not become a handle to a later session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Zk(pub(crate) u64);

use bellwether_core::clock::Clock;
pub(crate) use bellwether_core::port::{Node as Znode, ReadError, ReadResult};

/// The session's status, as the session supervisor last published it.
#[derive(Debug, Clone)]
pub(crate) enum Published {
    /// There is no session.
    Connecting {
        error: Option<String>,
    },
    Connected(Zk),
    /// The connection is lost.
    Disconnected,
}

impl Default for Published {
    fn default() -> Self {
        Self::Connecting { error: None }
    }
}

/// The state of the current session.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct View {
    /// The number of sessions of this process so far; 0 before the first.
    pub(crate) generation: u64,
    pub(crate) connected: bool,
    pub(crate) session: i64,
    pub(crate) timeout_us: u64,
    /// The sending of the request from which the timeout is trusted to count.
    pub(crate) last_contact_us: u64,
    /// The time of this process. It outlives its sessions.
    pub(crate) clock: Clock,
}

impl View {
    /// A tenth of the timeout is not trusted, as in `bellwether-zk`.
    pub(crate) fn trusted_until_us(&self) -> u64 {
        self.last_contact_us + self.timeout_us - self.timeout_us / 10
    }
}
