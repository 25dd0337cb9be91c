//! The inbox of the engine: messages that arrive while the engine is busy form its next batch.
//!
//! A `Vec` behind a mutex instead of a channel: a connection adds all requests of one read under one lock, the engine
//! takes all messages under one lock, and a running engine is not woken.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use super::fourletter::Report;
use super::limits::{INBOX_BYTES, INBOX_REQUESTS};
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
#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    /// Wakes the engine.
    filled: Condvar,
    /// Wakes connections that wait for free space or for the end.
    emptied: Notify,
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
    bytes: usize,
    /// The engine is waiting on `filled`.
    asleep: bool,
    closed: bool,
}

impl State {
    fn full(&self) -> bool {
        self.messages.len() >= INBOX_REQUESTS || self.bytes >= INBOX_BYTES
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

    /// Adds `messages` in order and under one lock, once there is free space.
    ///
    /// Cancel safe: all of them were handed over, or none.
    pub(super) async fn send(&self, messages: &mut Vec<Message>) -> Result<(), Closed> {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            // Registered before the check, so that a `take` between the check and the wait still wakes this task.
            emptied.as_mut().enable();
            {
                let mut state = self.state();
                if state.closed {
                    return Err(Closed);
                }
                if !state.full() {
                    state.bytes += messages.iter().map(Message::weight).sum::<usize>();
                    state.messages.append(messages);
                    self.wake(state);
                    return Ok(());
                }
            }
            emptied.await;
        }
    }

    /// Adds a message without waiting for free space. Only for messages that a client cannot repeat without limit.
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
    /// inbox was full, in which case senders may be waiting.
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
        let was_full = batch.len() >= INBOX_REQUESTS || state.bytes >= INBOX_BYTES;
        state.bytes = 0;
        drop(state);
        if was_full {
            self.emptied.notify_waiters();
        }
        was_full
    }

    /// Waits until the engine has ended. Cancel safe.
    pub(super) async fn closed(&self) -> Closed {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.state().closed {
                return Closed;
            }
            emptied.await;
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
        self.emptied.notify_waiters();
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
