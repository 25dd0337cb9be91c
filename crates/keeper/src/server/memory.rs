//! The memory that the connections hold together: received bytes, unanswered requests, and replies and notifications that are
//! not sent.
//!
//! Each connection counts its part ([`Share`]). While the budget is used up, a connection decodes no further requests, unless its
//! part stays within a small reserve that all connections share equally. The engine closes the connections that hold most until
//! an eighth of the budget is free. A client that reads and waits for its replies holds little, so the closed ones are those
//! that do not read, or send more than they let the server answer. Their clients re-attach, as after any lost connection.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::limits::DECODED_PER_BYTE;

/// The budget of all connections, and the bytes that they hold.
#[derive(Debug)]
pub(super) struct Memory {
    limit: usize,
    held: AtomicUsize,
    /// The part of `held` of connections that are being closed.
    doomed: AtomicUsize,
    /// The number of connections.
    shares: AtomicUsize,
    /// Signals that the held bytes fell below the limit.
    freed: Notify,
}

impl Memory {
    pub(super) fn new(limit: usize) -> Self {
        let zero = || AtomicUsize::new(0);
        Self { limit, held: zero(), doomed: zero(), shares: zero(), freed: Notify::new() }
    }

    /// Whether a connection may decode its `received` bytes: there is memory, or it stays within its part of the reserve, which
    /// is an eighth of the budget on top of it.
    pub(super) fn may_decode(&self, share: &Share, received: usize) -> bool {
        let reserve = self.limit / 8 / self.shares.load(Ordering::SeqCst).max(1);
        !self.is_full() || share.bytes().saturating_add(received.saturating_mul(DECODED_PER_BYTE)) <= reserve
    }

    fn is_full(&self) -> bool {
        self.held.load(Ordering::SeqCst) >= self.limit
    }

    /// Returns the bytes that connections must give up if the budget is used up, in addition to those that are being closed.
    pub(super) fn excess(&self) -> usize {
        let held = self.held.load(Ordering::SeqCst).saturating_sub(self.doomed.load(Ordering::SeqCst));
        if held < self.limit { 0 } else { held - (self.limit - self.limit / 8) }
    }

    /// Waits until the budget is not used up. Cancel safe.
    pub(super) async fn room(&self) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Registered before the check, so that a release between the check and the wait still wakes this task.
            freed.as_mut().enable();
            if !self.is_full() {
                return;
            }
            freed.await;
        }
    }

    fn release(&self, bytes: usize) {
        let before = self.held.fetch_sub(bytes, Ordering::SeqCst);
        if before >= self.limit && before - bytes < self.limit {
            self.freed.notify_waiters();
        }
    }
}

impl Default for Memory {
    /// Without a limit.
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

/// The part of one connection. Its bytes are released at the latest when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    memory: Arc<Memory>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    /// The connection is being closed, and frees its buffers soon.
    doomed: bool,
}

impl Share {
    pub(super) fn of(memory: Arc<Memory>) -> Self {
        memory.shares.fetch_add(1, Ordering::SeqCst);
        Self { memory, held: Mutex::default() }
    }

    /// Counts bytes that the connection now holds.
    pub(super) fn hold(&self, bytes: usize) {
        let mut held = self.held();
        held.bytes += bytes;
        self.memory.held.fetch_add(bytes, Ordering::SeqCst);
        if held.doomed {
            self.memory.doomed.fetch_add(bytes, Ordering::SeqCst);
        }
    }

    /// Counts bytes that the connection no longer holds.
    pub(super) fn release(&self, bytes: usize) {
        let mut held = self.held();
        debug_assert!(bytes <= held.bytes, "only held bytes are released");
        let bytes = bytes.min(held.bytes);
        held.bytes -= bytes;
        if held.doomed {
            self.memory.doomed.fetch_sub(bytes, Ordering::SeqCst);
        }
        self.memory.release(bytes);
    }

    /// Notes that the connection is being closed.
    pub(super) fn doom(&self) {
        let mut held = self.held();
        if !std::mem::replace(&mut held.doomed, true) {
            self.memory.doomed.fetch_add(held.bytes, Ordering::SeqCst);
        }
    }

    /// Returns the held bytes.
    pub(super) fn bytes(&self) -> usize {
        self.held().bytes
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Share {
    fn default() -> Self {
        Self::of(Arc::default())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.release(self.bytes());
        self.memory.shares.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_all_connections_add_up_and_end_with_them() {
        let memory = Arc::new(Memory::new(800));
        let [a, b] = [Share::of(Arc::clone(&memory)), Share::of(Arc::clone(&memory))];
        a.hold(500);
        b.hold(299);
        assert_eq!((memory.is_full(), memory.excess()), (false, 0));
        b.hold(1);
        assert_eq!((memory.is_full(), memory.excess()), (true, 100), "an eighth of the budget becomes free");
        a.doom();
        assert_eq!((memory.is_full(), memory.excess()), (true, 0), "it is not free yet");
        a.hold(50);
        a.release(50);
        drop(a);
        assert_eq!((b.bytes(), memory.held.load(Ordering::SeqCst)), (300, 300));
        drop(b);
        let all = [&memory.held, &memory.doomed, &memory.shares].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(all, [0; 3]);
    }

    #[test]
    fn a_connection_that_holds_little_decodes_also_while_the_budget_is_used_up() {
        let memory = Arc::new(Memory::new(16_000));
        let [many, few] = [Share::of(Arc::clone(&memory)), Share::of(Arc::clone(&memory))];
        assert!(memory.may_decode(&few, usize::MAX));
        many.hold(16_000);
        // An eighth, for two connections.
        let part = 1_000;
        assert!(memory.may_decode(&few, part / DECODED_PER_BYTE));
        assert!(!memory.may_decode(&few, part / DECODED_PER_BYTE + 1));
        assert!(!memory.may_decode(&many, 0));
        few.hold(part + 1);
        assert!(!memory.may_decode(&few, 0));
    }

    #[tokio::test]
    async fn connections_wait_for_free_memory() {
        let memory = Arc::new(Memory::new(100));
        let share = Share::of(Arc::clone(&memory));
        share.hold(100);
        let waiting = tokio::spawn({
            let memory = Arc::clone(&memory);
            async move { memory.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        share.release(1);
        waiting.await.expect("a wake-up");
    }
}
