//! The outgoing bytes of one connection, and the count of its unanswered requests.
//!
//! The engine encodes into its own buffer and seals it with the batch. After the commit the buffer is moved to the
//! outbox, and the connection task writes all queued bytes in one call. The buffers are reused in both directions.
//!
//! ```text
//!  engine ── promise(n) ─ … commit … ─ deliver(bytes) ──► [ bytes ] ── take() ──► writer ── written(n) ──► socket
//!     │                                                                             │
//!     └── park: more than REPLIES_HIGH unsent ◄──────────────── Drained ────────────┘  below REPLIES_LOW, if something
//!                                                                                      was parked
//! ```

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::limits::{BUFFER_KEEPS, OUTSTANDING_BYTES, OUTSTANDING_REQUESTS, REPLIES_HIGH, REPLIES_LOW};
use super::memory::Share;

/// Shared by the engine and one connection task.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    /// Signals that the engine queued bytes or the end.
    queued: Notify,
    /// Signals that the engine queued the end.
    ended: Notify,
    /// Bytes that are promised but not written to the socket yet.
    unsent: AtomicUsize,
    /// The part of `unsent` that is notifications.
    unsent_notices: AtomicUsize,
    /// The engine holds back requests of this connection until `unsent` is below [`REPLIES_LOW`].
    parked: AtomicBool,
    requests: AtomicUsize,
    request_bytes: AtomicUsize,
    /// Signals that the engine answered requests, or that replies were written: the reader may go on.
    answered: Notify,
    /// Everything that the connection holds: received bytes, unanswered requests and unsent bytes.
    pub(super) share: Share,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    notices: usize,
    end: Option<End>,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// After all delivered bytes are written.
    Flushed,
    /// Immediately: the client does not read, or a reply is too large.
    Cut,
}

/// All bytes that were queued when the writer took them.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) bytes: Vec<u8>,
    notices: usize,
    /// No bytes follow.
    pub(super) last: bool,
}

impl Outbox {
    pub(super) fn new(share: Share) -> Self {
        Self { share, ..Self::default() }
    }

    /// Counts bytes that will be delivered, and that [`share`](Self::share) holds since they were encoded, of which `notices` are notifications.
    pub(super) fn promise(&self, bytes: usize, notices: usize) {
        self.unsent.fetch_add(bytes, Ordering::SeqCst);
        self.unsent_notices.fetch_add(notices, Ordering::SeqCst);
    }

    /// Queues the promised bytes, and leaves an empty buffer in their place.
    pub(super) fn deliver(&self, bytes: &mut Vec<u8>, notices: usize) {
        if bytes.is_empty() {
            return;
        }
        {
            let mut queue = self.queue();
            match queue.end {
                // The connection was cut after the promise: these bytes are never written.
                Some(End::Cut) => {}
                Some(End::Flushed) | None if queue.bytes.is_empty() => {
                    std::mem::swap(&mut queue.bytes, bytes);
                    queue.notices += notices;
                }
                Some(End::Flushed) | None => {
                    queue.bytes.extend_from_slice(bytes);
                    queue.notices += notices;
                }
            }
        }
        bytes.clear();
        bytes.shrink_to(BUFFER_KEEPS);
        self.queued.notify_one();
    }

    /// Queues the end of the connection.
    pub(super) fn end(&self, end: End) {
        {
            let mut queue = self.queue();
            queue.end = Some(end);
            if end == End::Cut {
                // These bytes are never written: free the memory now.
                queue.bytes = Vec::new();
                self.share.doom();
            }
        }
        self.queued.notify_one();
        self.ended.notify_one();
    }

    /// Waits for the end. Cancel safe.
    pub(super) async fn ended(&self) -> End {
        loop {
            if let Some(end) = self.queue().end {
                return end;
            }
            self.ended.notified().await;
        }
    }

    /// Waits for queued bytes and moves all of them into `taken`, which must be empty: new, or passed to
    /// [`written`](Self::written).
    ///
    /// Cancel safe: nothing is taken before it returns.
    pub(super) async fn take(&self, taken: &mut Taken) {
        debug_assert!(taken.bytes.is_empty(), "these bytes were sent");
        loop {
            {
                let mut queue = self.queue();
                if !queue.bytes.is_empty() || queue.end.is_some() {
                    std::mem::swap(&mut queue.bytes, &mut taken.bytes);
                    taken.notices = std::mem::take(&mut queue.notices);
                    taken.last = queue.end.is_some();
                    return;
                }
            }
            self.queued.notified().await;
        }
    }

    /// Records that `taken` was written to the socket, and empties it. Returns `true` if the caller must notify the engine
    /// to resume the parked requests.
    pub(super) fn written(&self, taken: &mut Taken) -> bool {
        let written = taken.bytes.len();
        // Freed before it is released: from then on this memory is not counted.
        taken.bytes.clear();
        taken.bytes.shrink_to(BUFFER_KEEPS);
        self.unsent_notices.fetch_sub(std::mem::take(&mut taken.notices), Ordering::SeqCst);
        self.share.release(written);
        let before = self.unsent.fetch_sub(written, Ordering::SeqCst);
        let unsent = before - written;
        if before >= REPLIES_HIGH && unsent < REPLIES_HIGH {
            self.answered.notify_one();
        }
        unsent <= REPLIES_LOW && self.parked.swap(false, Ordering::SeqCst)
    }

    /// Requests a notification when the unsent bytes are below [`REPLIES_LOW`]. The caller must check
    /// [`unsent`](Self::unsent) after this call, because the writer may have written everything before it.
    pub(super) fn park(&self) {
        self.parked.store(true, Ordering::SeqCst);
    }

    /// Revokes [`park`](Self::park). Returns `false` if the writer was faster and sends the notification.
    pub(super) fn unpark(&self) -> bool {
        self.parked.swap(false, Ordering::SeqCst)
    }

    /// Returns the number of unsent bytes.
    pub(super) fn unsent(&self) -> usize {
        self.unsent.load(Ordering::SeqCst)
    }

    /// Returns the number of unsent bytes of notifications.
    pub(super) fn unsent_notices(&self) -> usize {
        self.unsent_notices.load(Ordering::SeqCst)
    }

    /// Waits until this connection may send further requests.
    pub(super) async fn may_ask(&self) {
        while self.outstanding() >= OUTSTANDING_REQUESTS
            || self.request_bytes.load(Ordering::SeqCst) >= OUTSTANDING_BYTES
        {
            self.answered.notified().await;
        }
    }

    /// Waits until the client has read its replies, so far that the engine would not park a further request.
    pub(super) async fn is_read(&self) {
        while self.unsent() >= REPLIES_HIGH {
            self.answered.notified().await;
        }
    }

    /// Counts requests that are sent to the engine.
    pub(super) fn asked(&self, requests: usize, bytes: usize) {
        self.requests.fetch_add(requests, Ordering::SeqCst);
        self.request_bytes.fetch_add(bytes, Ordering::SeqCst);
        self.share.hold(bytes);
    }

    /// Counts requests that the engine has answered.
    pub(super) fn answer(&self, requests: usize, bytes: usize) {
        let requests_before = self.requests.fetch_sub(requests, Ordering::SeqCst);
        let bytes_before = self.request_bytes.fetch_sub(bytes, Ordering::SeqCst);
        self.share.release(bytes);
        if requests_before >= OUTSTANDING_REQUESTS || bytes_before >= OUTSTANDING_BYTES {
            self.answered.notify_one();
        }
    }

    /// Returns the number of unanswered requests.
    pub(super) fn outstanding(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().expect("no code panics while it holds the queue")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliver(outbox: &Outbox, bytes: &mut Vec<u8>, notices: usize) {
        outbox.share.hold(bytes.len());
        outbox.promise(bytes.len(), notices);
        outbox.deliver(bytes, notices);
    }

    #[tokio::test]
    async fn bytes_are_counted_until_they_are_written_and_sent_in_order() {
        let outbox = Outbox::default();
        deliver(&outbox, &mut vec![1; 10], 4);
        deliver(&outbox, &mut vec![2; 20], 6);
        let mut taken = Taken::default();
        outbox.take(&mut taken).await;
        deliver(&outbox, &mut vec![3; 30], 30);
        assert_eq!(taken.bytes, [vec![1; 10], vec![2; 20]].concat());
        assert_eq!((outbox.unsent(), outbox.unsent_notices()), (60, 40));
        assert!(!outbox.written(&mut taken));
        assert_eq!((outbox.unsent(), outbox.unsent_notices()), (30, 30));
        outbox.end(End::Flushed);
        outbox.take(&mut taken).await;
        assert_eq!((taken.bytes.len(), taken.last), (30, true), "the end follows the delivered bytes");
    }

    #[tokio::test]
    async fn the_writer_notifies_once_when_parked_requests_may_resume() {
        let outbox = Outbox::default();
        let mut taken = Taken::default();
        deliver(&outbox, &mut vec![1; REPLIES_HIGH], 0);
        outbox.take(&mut taken).await;
        outbox.park();
        deliver(&outbox, &mut vec![2; REPLIES_HIGH], 0);
        assert!(!outbox.written(&mut taken), "the second half is still queued");
        outbox.take(&mut taken).await;
        assert!(outbox.written(&mut taken));
        assert!(!outbox.unpark(), "the writer has already notified");
        outbox.park();
        assert!(outbox.unpark(), "the writer does not notify");
    }

    #[tokio::test]
    async fn the_writer_keeps_no_memory_of_written_replies() {
        let outbox = Outbox::default();
        let mut taken = Taken::default();
        deliver(&outbox, &mut vec![1; REPLIES_HIGH], 0);
        outbox.take(&mut taken).await;
        outbox.written(&mut taken);
        let kept = taken.bytes.capacity();
        assert!(kept <= BUFFER_KEEPS, "{kept} bytes are kept");
        assert_eq!(outbox.share.bytes(), 0);
    }

    #[tokio::test]
    async fn promised_bytes_count_before_they_are_delivered() {
        let outbox = Outbox::default();
        outbox.promise(10, 4);
        assert_eq!((outbox.unsent(), outbox.unsent_notices()), (10, 4));
        outbox.deliver(&mut vec![1; 10], 4);
        assert_eq!((outbox.unsent(), outbox.unsent_notices()), (10, 4));
    }

    #[tokio::test]
    async fn a_cut_leaves_nothing_to_write() {
        let outbox = Outbox::default();
        deliver(&outbox, &mut vec![1; 10], 0);
        outbox.promise(20, 0);
        outbox.end(End::Cut);
        outbox.deliver(&mut vec![2; 20], 0);
        let mut taken = Taken::default();
        outbox.take(&mut taken).await;
        assert_eq!((taken.bytes.len(), taken.last), (0, true));
        assert_eq!(outbox.ended().await, End::Cut);
    }
}
