//! How long this process may believe that its session lives.
//!
//! The server counts a session's timeout from when it last *heard* from us. An answered request proves that it
//! had heard from us no earlier than when we sent it, so the send time of the latest answered request is a
//! lower bound that needs no clock but our own monotonic one. The client's own pings are invisible to us, so
//! the session's owner sends a small read as a heartbeat ([`crate::Zk::heartbeat`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Part of the session timeout that is not trusted: for scheduling delays between a decision and its effect.
const MARGIN: u32 = 10;

#[derive(Debug)]
pub(crate) struct Contact {
    origin: Instant,
    last_nanos: AtomicU64,
    timeout: Duration,
}

impl Contact {
    /// `sent` is when the handshake's answer was asked for.
    pub(crate) fn new(sent: Instant, timeout: Duration) -> Self {
        Self { origin: sent, last_nanos: AtomicU64::new(0), timeout }
    }

    /// A request sent at `sent` was answered.
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
