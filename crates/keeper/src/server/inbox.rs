//! The inbox of the engine: messages that arrive while the engine is busy form its next batch.
//!
//! A `Vec` behind a mutex instead of a channel: a connection adds all requests of its turn under one lock, the engine
//! takes all messages under one lock, and a running engine is not woken.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, Semaphore, oneshot};

use super::fourletter::Report;
use super::limits::{INBOX_REQUESTS, PLACE_BYTES};
use super::memory::Memory;
use super::outbox::Outbox;
use crate::model::ConnectionId;
use crate::proto::{Compat, ConnectRequest, Request};
use crate::store::{Reader, StoreError};

/// A message to the engine. The order for one connection is `Connect`, requests, `Disconnected`.
pub(super) enum Message {
    /// A new connection with its first frame.
    Connect {
        connection: ConnectionId,
        request: ConnectRequest,
        peer: SocketAddr,
        outbox: Arc<Outbox>,
        password: [u8; 16],
        /// Bytes of the frame.
        size: usize,
    },
    /// A request.
    Request { connection: ConnectionId, asked: Asked },
    /// The connection's unsent bytes fell below the low mark.
    Drained(ConnectionId),
    /// The socket is closed.
    Disconnected(ConnectionId),
    /// A four-letter word.
    Report(Report, oneshot::Sender<String>),
    /// Returns a snapshot of the last commit, for a copy on another thread.
    Reader(oneshot::Sender<Result<Box<dyn Reader>, StoreError>>),
    /// Wakes the engine: the committer has returned a batch.
    Committed,
    /// A connection waits because the memory of all connections is used up.
    Crowded,
    /// Ends the connections of all sessions, and the engine.
    Stop,
    /// Expires a session.
    #[cfg(feature = "testing")]
    Expire(i64, oneshot::Sender<bool>),
    /// Moves the clock forward.
    #[cfg(feature = "testing")]
    Skip(Duration),
}

/// A queued request.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) xid: i32,
    pub(super) request: Request,
    /// Memory that it takes while it waits.
    pub(super) size: usize,
    pub(super) received: Instant,
}

impl Message {
    /// Returns the bytes that count against the inbox's bound. Only messages that clients can send without limit count.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Connect { size, .. } => *size,
            Self::Request { asked, .. } => asked.size,
            // At most one per connection, or sent by the operator.
            Self::Drained(_)
            | Self::Disconnected(_)
            | Self::Report(..)
            | Self::Reader(_)
            | Self::Committed
            | Self::Crowded
            | Self::Stop => 0,
            #[cfg(feature = "testing")]
            Self::Expire(..) | Self::Skip(_) => 0,
        }
    }
}

/// The engine has ended, and so has the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed;

/// Shared by all connections and the engine.
pub(super) struct Inbox {
    state: Mutex<State>,
    /// Wakes the engine.
    filled: Condvar,
    /// The free places. Connections that wait for some get them in the order in which they asked.
    free: Semaphore,
    /// Wakes connections that wait for the end of the engine.
    ended: Notify,
    /// What the connections hold.
    pub(super) memory: Arc<Memory>,
    /// The release whose requests the connections decode.
    pub(super) compat: Compat,
    /// The turn to decode and send a long frame.
    pub(super) long_frames: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    messages: Vec<Message>,
    /// The places that the messages take.
    taken: usize,
    /// The engine is waiting on `filled`.
    asleep: bool,
    closed: bool,
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            filled: Condvar::new(),
            free: Semaphore::new(INBOX_REQUESTS),
            ended: Notify::new(),
            memory: Arc::default(),
            compat: Compat::default(),
            long_frames: tokio::sync::Mutex::default(),
        }
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Inbox")
            .field("messages", &state.messages.len())
            .field("closed", &state.closed)
            .finish()
    }
}

impl Inbox {
    /// Creates an inbox for connections that decode the requests of a release and hold at most about `memory` bytes together.
    pub(super) fn new(memory: usize, compat: Compat) -> Self {
        Self { memory: Arc::new(Memory::new(memory)), compat, ..Self::default() }
    }

    /// Adds `messages` in order and under one lock, once there are places for them. Longer ones than the inbox has take all.
    ///
    /// Cancel safe: all of them were handed over, or none.
    pub(super) async fn send(&self, messages: &mut Vec<Message>) -> Result<(), Closed> {
        let needed: usize = messages.iter().map(|message| 1 + message.weight() / PLACE_BYTES).sum();
        let needed = needed.min(INBOX_REQUESTS);
        let permits = u32::try_from(needed).expect("the inbox has fewer places than u32::MAX");
        let places = self.free.acquire_many(permits).await.map_err(|_closed| Closed)?;
        let mut state = self.state();
        if state.closed {
            return Err(Closed);
        }
        // `take` adds them again.
        places.forget();
        state.taken += needed;
        state.messages.append(messages);
        self.wake(state);
        Ok(())
    }

    /// Adds a message without waiting for a place. Only for messages that a client cannot repeat without limit.
    pub(super) fn tell(&self, message: Message) -> Result<(), Closed> {
        let mut state = self.state();
        if state.closed {
            return Err(Closed);
        }
        state.messages.push(message);
        self.wake(state);
        Ok(())
    }

    /// Moves all messages into the empty `batch`. Waits for the first one, at most for `timeout`. Returns whether the
    /// inbox was full or senders wait for it.
    pub(super) fn take(&self, batch: &mut Vec<Message>, timeout: Option<Duration>) -> bool {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut state = self.state();
        while state.messages.is_empty() {
            state.asleep = true;
            state = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => self.filled.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => break,
                Some(left) => self.filled.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        state.asleep = false;
        std::mem::swap(&mut state.messages, batch);
        let taken = std::mem::take(&mut state.taken);
        drop(state);
        let free = self.free.available_permits();
        self.free.add_permits(taken);
        // A sender waits, or has its places and adds its messages next.
        free == 0 || free + taken < INBOX_REQUESTS
    }

    /// Waits until the engine has ended. Cancel safe.
    pub(super) async fn closed(&self) -> Closed {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // Registered before the check, so that a `close` between the check and the wait still wakes this task.
            ended.as_mut().enable();
            if self.state().closed {
                return Closed;
            }
            ended.await;
        }
    }

    /// Rejects further messages and drops the queued ones.
    pub(super) fn close(&self) {
        let dropped = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.messages)
        };
        drop(dropped);
        self.free.close();
        self.ended.notify_waiters();
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let asleep = std::mem::take(&mut state.asleep);
        drop(state);
        if asleep {
            self.filled.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in another thread leaves the state consistent, and `close` must work after it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::limits::INBOX_BYTES;
    use super::*;

    fn ping(xid: i32) -> Message {
        let asked = Asked { xid, request: Request::Ping, size: 8, received: Instant::now() };
        Message::Request { connection: ConnectionId(1), asked }
    }

    fn xids(batch: &[Message]) -> Vec<i32> {
        let xid = |message: &Message| match message {
            Message::Request { asked, .. } => asked.xid,
            _ => panic!("only requests were sent"),
        };
        batch.iter().map(xid).collect()
    }

    #[tokio::test]
    async fn senders_wait_until_a_full_inbox_is_taken() {
        let inbox = Inbox::default();
        let many = i32::try_from(INBOX_REQUESTS).unwrap();
        inbox.send(&mut (0..many).map(ping).collect()).await.unwrap();
        let mut last = vec![ping(many)];
        {
            let mut waits = std::pin::pin!(inbox.send(&mut last));
            assert!(poll_once(waits.as_mut()).await.is_none(), "the inbox was full");
            inbox.tell(Message::Drained(ConnectionId(2))).unwrap();
            let mut batch = Vec::new();
            inbox.take(&mut batch, None);
            assert_eq!(batch.len(), INBOX_REQUESTS + 1, "an unrepeatable message needs no free space");
            waits.await.unwrap();
        }
        assert!(last.is_empty());
        let mut batch = Vec::new();
        inbox.take(&mut batch, None);
        assert_eq!(xids(&batch), [many]);
    }

    #[tokio::test]
    async fn waiting_senders_get_places_in_the_order_in_which_they_asked() {
        let inbox = Inbox::default();
        inbox.send(&mut vec![ping(0)]).await.unwrap();
        let (mut many, mut one) = ((1..=1_000).map(ping).collect(), vec![ping(9_999)]);
        let mut first = std::pin::pin!(inbox.send(&mut many));
        let mut second = std::pin::pin!(inbox.send(&mut one));
        assert!(poll_once(first.as_mut()).await.is_none());
        assert!(poll_once(second.as_mut()).await.is_none(), "a short message does not overtake");
        let mut batch = Vec::new();
        inbox.take(&mut batch, None);
        assert!(poll_once(second.as_mut()).await.is_none());
        first.await.unwrap();
        batch.clear();
        inbox.take(&mut batch, None);
        assert_eq!(batch.len(), 1_000);
        second.await.unwrap();
    }

    #[tokio::test]
    async fn an_inbox_is_full_when_no_place_is_free_or_a_sender_waits() {
        let inbox = Inbox::default();
        let full = || inbox.take(&mut Vec::new(), Some(Duration::ZERO));
        assert!(!full());
        inbox.send(&mut (1..1_000).map(ping).collect()).await.unwrap();
        assert!(!full());
        inbox.send(&mut (1..1_000).map(ping).collect()).await.unwrap();
        let mut two = vec![ping(1), ping(2)];
        let mut waits = std::pin::pin!(inbox.send(&mut two));
        assert!(poll_once(waits.as_mut()).await.is_none());
        assert!(full(), "a sender waits");
        assert!(full(), "the sender has its places, and has not added its messages");
        waits.await.unwrap();
        assert!(!full());
        inbox.send(&mut (0..1_000).map(ping).collect()).await.unwrap();
        assert!(full());
    }

    #[tokio::test]
    async fn long_messages_take_more_places_and_the_longest_take_all() {
        let inbox = Inbox::default();
        let long = |size| match ping(1) {
            Message::Request { connection, asked } => {
                Message::Request { connection, asked: Asked { size, ..asked } }
            }
            _ => panic!("a ping is a request"),
        };
        inbox.send(&mut vec![long(INBOX_BYTES / 2)]).await.unwrap();
        inbox.send(&mut vec![long(INBOX_BYTES / 4)]).await.unwrap();
        let mut last = vec![long(2 * INBOX_BYTES)];
        let mut waits = std::pin::pin!(inbox.send(&mut last));
        assert!(poll_once(waits.as_mut()).await.is_none());
        inbox.take(&mut Vec::new(), None);
        waits.await.unwrap();
        assert!(inbox.take(&mut Vec::new(), None));
    }

    #[tokio::test]
    async fn a_cancelled_sender_keeps_its_messages() {
        let inbox = Inbox::default();
        inbox.send(&mut (0..1_000).map(ping).collect()).await.unwrap();
        let mut mine = vec![ping(7)];
        assert!(poll_once(std::pin::pin!(inbox.send(&mut mine))).await.is_none());
        assert_eq!(xids(&mine), [7]);
    }

    #[tokio::test]
    async fn closing_wakes_waiting_senders_and_rejects_new_ones() {
        let inbox = Inbox::default();
        inbox.send(&mut (0..1_000).map(ping).collect()).await.unwrap();
        let mut mine = vec![ping(7)];
        let mut waits = std::pin::pin!(inbox.send(&mut mine));
        assert!(poll_once(waits.as_mut()).await.is_none());
        inbox.close();
        assert_eq!(waits.await, Err(Closed));
        assert_eq!(inbox.tell(Message::Stop), Err(Closed));
        assert_eq!(inbox.closed().await, Closed);
    }

    #[test]
    fn take_with_a_deadline_returns_without_messages() {
        let inbox = Inbox::default();
        let mut batch = Vec::new();
        inbox.take(&mut batch, Some(Duration::from_millis(1)));
        assert!(batch.is_empty());
    }

    async fn poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(match future.as_mut().poll(context) {
                std::task::Poll::Ready(output) => Some(output),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }
}
