//! The engine's inbox: what arrived while it was committing becomes its next batch.
//!
//! A `Vec` behind a mutex, and not a channel: a connection hands over all that one read brought under one lock, the
//! engine takes all that there is under one lock, and nobody is woken who is awake.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use super::fourletter::Report;
use super::limits::{INBOX_BYTES, INBOX_REQUESTS};
use super::outbox::Outbox;
use crate::model::ConnectionId;
use crate::proto::{ConnectRequest, Request};
use crate::store::{Reader, StoreError};

/// What the engine is told. Of one connection in this order: `Connect`, requests, `Disconnected`.
pub(super) enum Message {
    /// A connection with its first frame.
    Connect {
        connection: ConnectionId,
        request: ConnectRequest,
        peer: SocketAddr,
        outbox: Arc<Outbox>,
        password: [u8; 16],
        /// Of the frame.
        size: usize,
    },
    /// A request.
    Request { connection: ConnectionId, asked: Asked },
    /// The connection's unsent bytes went below their low mark.
    Drained(ConnectionId),
    /// The socket is gone.
    Disconnected(ConnectionId),
    /// A four-letter word.
    Report(Report, oneshot::Sender<String>),
    /// A view of the last commit, to be copied on another thread.
    Reader(oneshot::Sender<Result<Box<dyn Reader>, StoreError>>),
    /// End all sessions' connections, and the engine.
    Stop,
    /// End a session as if its time were over.
    #[cfg(feature = "testing")]
    Expire(i64, oneshot::Sender<bool>),
    /// Let time pass at once.
    #[cfg(feature = "testing")]
    Skip(Duration),
}

/// One request as it waits.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) xid: i32,
    pub(super) request: Request,
    /// Of its frame.
    pub(super) size: usize,
    pub(super) received: Instant,
}

impl Message {
    /// What it counts against the inbox's bound: what clients can send without an end.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Connect { size, .. } => *size,
            Self::Request { asked, .. } => asked.size,
            // One per connection at most, or asked for by the operator.
            Self::Drained(_) | Self::Disconnected(_) | Self::Report(..) | Self::Reader(_) | Self::Stop => 0,
            #[cfg(feature = "testing")]
            Self::Expire(..) | Self::Skip(_) => 0,
        }
    }
}

/// The engine is gone, and with it the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed;

/// Shared by all connections and the engine.
#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    /// Wakes the engine.
    filled: Condvar,
    /// Wakes connections that found it full, or wait for the end.
    emptied: Notify,
}

#[derive(Default)]
struct State {
    messages: Vec<Message>,
    bytes: usize,
    /// The engine waits on `filled`.
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
    /// Hands over `messages`, in order and together, once there is room.
    ///
    /// Cancel safe: all of them were handed over, or none.
    pub(super) async fn send(&self, messages: &mut Vec<Message>) -> Result<(), Closed> {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            // Registered before the look: an engine that empties it in between wakes us all the same.
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

    /// Hands over a message that no client can repeat without an end, without waiting for room.
    pub(super) fn tell(&self, message: Message) -> Result<(), Closed> {
        let mut state = self.state();
        if state.closed {
            return Err(Closed);
        }
        state.messages.push(message);
        self.wake(state);
        Ok(())
    }

    /// Takes all that there is into the empty `batch`; waits until something is, or for `patience`.
    pub(super) fn take(&self, batch: &mut Vec<Message>, patience: Option<Duration>) {
        let deadline = patience.map(|patience| Instant::now() + patience);
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
    }

    /// Waits until the engine is gone. Cancel safe.
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

    /// Refuses whatever comes, and drops what nobody will read.
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
        // A panic elsewhere leaves nothing half-done in here, and closing must work after one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
