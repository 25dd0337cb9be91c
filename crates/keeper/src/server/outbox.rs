//! What is to be sent on one connection, and how much of what it asked is still to be answered.
//!
//! The engine encodes into a buffer of its own and seals it with its batch; when that is durable, it is handed over;
//! the connection's task takes all that there is and writes it at once. The buffers go round between them.
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

use super::limits::{BUFFER_KEEPS, OUTSTANDING_BYTES, OUTSTANDING_REQUESTS, REPLIES_LOW};

/// Shared by the engine and one connection's task.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    /// The engine queued bytes or the end.
    queued: Notify,
    /// The engine queued the end.
    ended: Notify,
    /// Bytes that were promised and are not in the socket yet.
    unsent: AtomicUsize,
    /// As many of them are notifications.
    unsent_notices: AtomicUsize,
    /// The engine holds back requests of this connection until [`REPLIES_LOW`].
    parked: AtomicBool,
    requests: AtomicUsize,
    request_bytes: AtomicUsize,
    /// The engine answered some.
    answered: Notify,
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
    /// Behind all that was delivered.
    Flushed,
    /// At once: its client does not read, or what it asked for is too much.
    Cut,
}

/// What a writer took: all that was queued.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) bytes: Vec<u8>,
    notices: usize,
    /// Nothing comes behind these bytes.
    pub(super) last: bool,
}

impl Outbox {
    /// Counts bytes that are going to be delivered, of which `notices` are notifications.
    pub(super) fn promise(&self, bytes: usize, notices: usize) {
        self.unsent.fetch_add(bytes, Ordering::SeqCst);
        self.unsent_notices.fetch_add(notices, Ordering::SeqCst);
    }

    /// Queues what was promised, and leaves an empty buffer in its place.
    pub(super) fn deliver(&self, bytes: &mut Vec<u8>, notices: usize) {
        if bytes.is_empty() {
            return;
        }
        {
            let mut queue = self.queue();
            match queue.end {
                // It was cut meanwhile: nobody will write them.
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

    /// Ends the connection.
    pub(super) fn end(&self, end: End) {
        {
            let mut queue = self.queue();
            queue.end = Some(end);
            if end == End::Cut {
                // Nobody will write them; the memory is wanted now.
                queue.bytes = Vec::new();
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

    /// Waits for something to write, and takes all of it into `taken`, whose bytes must have been written.
    ///
    /// Cancel safe: nothing is taken before it returns.
    pub(super) async fn take(&self, taken: &mut Taken) {
        loop {
            {
                let mut queue = self.queue();
                if !queue.bytes.is_empty() || queue.end.is_some() {
                    taken.bytes.clear();
                    taken.bytes.shrink_to(BUFFER_KEEPS);
                    std::mem::swap(&mut queue.bytes, &mut taken.bytes);
                    taken.notices = std::mem::take(&mut queue.notices);
                    taken.last = queue.end.is_some();
                    return;
                }
            }
            self.queued.notified().await;
        }
    }

    /// Tells that what was taken is in the socket; `true` asks to tell the engine that it may go on with what it
    /// parked.
    pub(super) fn written(&self, taken: &Taken) -> bool {
        self.unsent_notices.fetch_sub(taken.notices, Ordering::SeqCst);
        let unsent = self.unsent.fetch_sub(taken.bytes.len(), Ordering::SeqCst) - taken.bytes.len();
        unsent <= REPLIES_LOW && self.parked.swap(false, Ordering::SeqCst)
    }

    /// Asks to be told when less than [`REPLIES_LOW`] is unsent. The caller looks at [`unsent`](Self::unsent)
    /// behind this, for what was written before.
    pub(super) fn park(&self) {
        self.parked.store(true, Ordering::SeqCst);
    }

    /// Takes [`park`](Self::park) back; `false` when the writer was faster and tells of it.
    pub(super) fn unpark(&self) -> bool {
        self.parked.swap(false, Ordering::SeqCst)
    }

    /// Bytes that are on their way.
    pub(super) fn unsent(&self) -> usize {
        self.unsent.load(Ordering::SeqCst)
    }

    /// Bytes of notifications that are on their way.
    pub(super) fn unsent_notices(&self) -> usize {
        self.unsent_notices.load(Ordering::SeqCst)
    }

    /// Waits until this connection may ask for more.
    pub(super) async fn may_ask(&self) {
        while self.outstanding() >= OUTSTANDING_REQUESTS
            || self.request_bytes.load(Ordering::SeqCst) >= OUTSTANDING_BYTES
        {
            self.answered.notified().await;
        }
    }

    /// Counts requests that go to the engine.
    pub(super) fn asked(&self, requests: usize, bytes: usize) {
        self.requests.fetch_add(requests, Ordering::SeqCst);
        self.request_bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Counts requests that the engine is done with.
    pub(super) fn answer(&self, requests: usize, bytes: usize) {
        let requests_before = self.requests.fetch_sub(requests, Ordering::SeqCst);
        let bytes_before = self.request_bytes.fetch_sub(bytes, Ordering::SeqCst);
        if requests_before >= OUTSTANDING_REQUESTS || bytes_before >= OUTSTANDING_BYTES {
            self.answered.notify_one();
        }
    }

    /// Requests that wait for their answers.
    pub(super) fn outstanding(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().expect("nobody panics while holding the queue")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::limits::REPLIES_HIGH;

    fn deliver(outbox: &Outbox, bytes: &mut Vec<u8>, notices: usize) {
        outbox.promise(bytes.len(), notices);
        outbox.deliver(bytes, notices);
    }

    #[tokio::test]
    async fn bytes_are_counted_until_they_are_written_and_go_out_in_order() {
        let outbox = Outbox::default();
        deliver(&outbox, &mut vec![1; 10], 4);
        deliver(&outbox, &mut vec![2; 20], 6);
        let mut taken = Taken::default();
        outbox.take(&mut taken).await;
        deliver(&outbox, &mut vec![3; 30], 30);
        assert_eq!(taken.bytes, [vec![1; 10], vec![2; 20]].concat());
        assert_eq!((outbox.unsent(), outbox.unsent_notices()), (60, 40));
        assert!(!outbox.written(&taken));
        assert_eq!((outbox.unsent(), outbox.unsent_notices()), (30, 30));
        outbox.end(End::Flushed);
        outbox.take(&mut taken).await;
        assert_eq!((taken.bytes.len(), taken.last), (30, true), "the end is behind what was delivered");
    }

    #[tokio::test]
    async fn a_writer_tells_once_when_parked_requests_may_go_on() {
        let outbox = Outbox::default();
        let mut taken = Taken::default();
        deliver(&outbox, &mut vec![1; REPLIES_HIGH], 0);
        outbox.take(&mut taken).await;
        outbox.park();
        deliver(&outbox, &mut vec![2; REPLIES_HIGH], 0);
        assert!(!outbox.written(&taken), "there is as much again");
        outbox.take(&mut taken).await;
        assert!(outbox.written(&taken));
        assert!(!outbox.unpark(), "it was told");
        outbox.park();
        assert!(outbox.unpark(), "nobody else tells");
    }

    #[tokio::test]
    async fn what_is_promised_counts_before_it_is_delivered() {
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
