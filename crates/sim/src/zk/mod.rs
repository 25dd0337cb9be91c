//! What `bellwether-zk` is to the actors, in virtual time.
//!
//! * [`ask`]: its methods. A request is sent when its method is called, or is refused at once if the session is known
//!   not to be connected. What comes back is an [`Outcome`](bellwether_core::outcome::Outcome), or a read's answer.
//! * [`link`]: the client library: connections, requests in flight, watches, the end of a session as its client sees it.

pub(crate) mod ask;
pub(crate) mod library;

/// A session, as those hold it who use it: of a later one it is not a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Zk(pub(crate) u64);

pub(crate) use bellwether_core::port::{Node as Znode, ReadError, ReadResult};

/// The session's status, as the session supervisor published it last.
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

/// The session now, for those who are about to use it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct View {
    /// Counts the sessions of this process; 0 before the first.
    pub(crate) generation: u64,
    pub(crate) connected: bool,
    pub(crate) session: i64,
    pub(crate) timeout_us: u64,
    /// When the last answered request was sent.
    pub(crate) last_contact_us: u64,
}

impl View {
    /// As `bellwether-zk` computes it: a tenth of the timeout is not trusted.
    pub(crate) fn trusted_until_us(&self) -> u64 {
        self.last_contact_us + self.timeout_us - self.timeout_us / 10
    }
}
