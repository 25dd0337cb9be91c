//! How long this process may assume that its session is alive.
//!
//! The server measures the session timeout from when it last *heard* from the session. The reply to a request proves
//! that the server heard from us after we sent the request. So the send time of the latest answered request is a
//! lower bound that needs only our own monotonic clock. The pings of the client library are not visible to us, so
//! the owner of the session sends a small read as a heartbeat ([`crate::Zk::heartbeat`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One tenth of the session timeout is not trusted, to allow for scheduling delays between a decision and its effect.
const MARGIN: u32 = 10;

#[derive(Debug)]
pub(crate) struct Contact {
    origin: Instant,
    last_nanos: AtomicU64,
    timeout: Duration,
}

impl Contact {
    /// `sent` is when the handshake was sent.
    pub(crate) fn new(sent: Instant, timeout: Duration) -> Self {
        Self { origin: sent, last_nanos: AtomicU64::new(0), timeout }
    }

    /// Records that a request sent at `sent` was answered.
    pub(crate) fn answered(&self, sent: Instant) {
        let nanos = u64::try_from(sent.duration_since(self.origin).as_nanos()).unwrap_or(u64::MAX);
        self.last_nanos.fetch_max(nanos, Ordering::Relaxed);
    }

    pub(crate) fn last(&self) -> Instant {
        self.origin + Duration::from_nanos(self.last_nanos.load(Ordering::Relaxed))
    }

    pub(crate) fn trusted_until(&self) -> Instant {
        self.last() + self.timeout - self.timeout / MARGIN
    }
}
