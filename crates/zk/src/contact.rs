//! How long this process may assume that its session is alive.
//!
//! The rule is [`bellwether_core::contact`]: only answers that passed ZooKeeper's leader count, and the timeout counts from
//! a request that the leader has heard of. It needs only our own monotonic clock. The pings of the client library are not
//! visible to us, so the owner of the session sends a `sync` as a heartbeat ([`crate::Zk::heartbeat`]).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bellwether_core::contact;

#[derive(Debug)]
pub(crate) struct Contact {
    origin: Instant,
    rule: Mutex<contact::Contact>,
}

impl Contact {
    /// `sent` is when the handshake was sent.
    pub(crate) fn new(sent: Instant, timeout: Duration) -> Self {
        Self { origin: sent, rule: Mutex::new(contact::Contact::new(timeout)) }
    }

    /// Records that a sync sent at `sent` is answered now.
    pub(crate) fn answered(&self, sent: Instant) {
        let now = self.origin.elapsed();
        self.rule().answered(sent.duration_since(self.origin), now);
    }

    pub(crate) fn heard(&self) -> Instant {
        self.origin + self.rule().heard()
    }

    pub(crate) fn trusted_until(&self) -> Instant {
        self.origin + self.rule().trusted_until()
    }

    fn rule(&self) -> MutexGuard<'_, contact::Contact> {
        // The rule is consistent after every call.
        self.rule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
