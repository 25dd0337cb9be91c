//! How long this process may assume that its session is alive.
//!
//! The rule is [`bellwether_core::contact`]: only answers that passed ZooKeeper's leader count, and the timeout counts from
//! a request that the leader has heard of. It needs only our own clock, which counts suspension ([`crate::clock`]). The pings of the client library are not
//! visible to us, so the owner of the session sends a `sync` as a heartbeat ([`crate::Zk::heartbeat`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_core::contact;
use bellwether_core::time::{Millis, as_millis};

use tokio::sync::Notify;

use crate::clock::uptime;

#[derive(Debug)]
pub(crate) struct Contact {
    origin: Duration,
    rule: Mutex<contact::Contact>,
    shortened: Arc<Notify>,
}

impl Contact {
    /// `sent` is the [`uptime`] at which the handshake was sent.
    pub(crate) fn new(sent: Duration, timeout: Duration) -> Self {
        Self { origin: sent, rule: Mutex::new(contact::Contact::new(timeout)), shortened: Arc::default() }
    }

    /// Records that a sync sent at `sent` is answered now.
    pub(crate) fn answered(&self, sent: Duration) {
        let since = |at: Duration| at.saturating_sub(self.origin);
        self.rule().answered(since(sent), since(uptime()));
    }

    /// As [`contact::Contact::shorten`].
    pub(crate) fn shorten(&self, timeout: Duration) {
        self.rule().shorten(timeout);
        self.shortened.notify_waiters();
    }

    /// Resolves at the next call of [`shorten`](Self::shorten) after this call.
    pub(crate) fn shortened(&self) -> impl Future<Output = ()> + Send + use<> {
        Arc::clone(&self.shortened).notified_owned()
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.rule().timeout()
    }

    pub(crate) fn heard(&self) -> Millis {
        Millis(as_millis(self.origin + self.rule().heard()))
    }

    pub(crate) fn trusted_until(&self) -> Millis {
        Millis(as_millis(self.origin + self.rule().trusted_until()))
    }

    fn rule(&self) -> MutexGuard<'_, contact::Contact> {
        // The rule is consistent after every call.
        self.rule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
