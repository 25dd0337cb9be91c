//! The session supervisor: makes ZooKeeper sessions, one after the other, and reports each change to its subscribers.
//!
//! ```text
//!  Connecting ──session made, namespace open──▶ Up(generation) ◀─────same session────┐
//!      ▲  └─ unreachable: wait, try again           │ connection lost                │
//!      │                                            ▼                                │
//!      └───────────────session over────────── Down(generation) ──────────────────────┘
//! ```
//!
//! Every session is a new *generation*. Subscribers receive each transition, in order, as a message. A session that has ended
//! never comes back: the server deletes its ephemeral znodes, and a new generation starts from nothing. The client library may
//! report two transitions as one: the connection was lost and regained before the supervisor looked. The supervisor sends two
//! events then, so that every reconnection is followed by the re-reading that it demands.
//!
//! A refused namespace (foreign, another layout, closed to this session) or a refused login ends the concern with that error,
//! because another attempt would not help.
//!
//! The host owns the client library, opens the namespace, and holds the subscribers. A lost reply needs no case here: a
//! heartbeat is answered or ends with its connection, and the next one follows in both cases.

#[cfg(test)]
mod tests;

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use bellwether_core::backoff::Backoff;
use bellwether_core::metric;
use bellwether_core::time::Millis;
use metrics::{counter, gauge, histogram};

use crate::{Concern, Context};

/// Waits between attempts to connect: short enough to be back soon after ZooKeeper is, long enough not to storm an ensemble
/// that is electing.
const RETRY: Backoff = Backoff { initial: Duration::from_millis(100), max: Duration::from_secs(5) };

/// Heartbeats per session timeout: the trusted deadline lags by one of them at most.
const HEARTBEATS: u32 = 5;

/// What happened to the session: for the concerns that make requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEvent {
    /// A new session serves, with its namespace open. The host switches the concern's requests to it.
    Connected {
        /// Its id.
        session: i64,
        /// Its timeout, as the server granted it.
        timeout: Duration,
    },
    /// The connection is lost; the session may live.
    Disconnected,
    /// The same session serves again: set watches again, then read everything again.
    Reconnected,
    /// The session is over.
    Expired,
}

kinds!(SessionEvent { Connected, Disconnected, Reconnected, Expired });

/// Types of a host that the concern passes on without reading them.
pub trait Opaque: Send + 'static {
    /// Receives session events.
    type Subscriber: Send + 'static;
    /// The reason why a namespace or a login is refused.
    type Refusal: fmt::Display + Send + 'static;
}

/// A session that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// Its id.
    pub session: i64,
    /// Its timeout, as the server granted it.
    pub timeout: Duration,
}

/// Why no session was made.
#[derive(Debug)]
pub enum Failure<R> {
    /// Another attempt may help.
    Transient(String),
    /// Another attempt would not help.
    Refused(R),
}

/// A session's state, as the client library reports it. States that come close together are reported as the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Requests are served.
    Connected,
    /// The connection is lost; the session may live.
    Disconnected,
    /// Over: expired, closed, or refused.
    Ended,
}

/// Messages to the session supervisor.
pub enum SessionMsg<O: Opaque> {
    /// A subscriber wants every event from now on, beginning with those that lead to the present state.
    Subscribe(O::Subscriber),
    /// An attempt has ended. The host switches the concern to the new session, if there is one.
    Made(Result<Made, Failure<O::Refusal>>),
    /// The wait before the next attempt is over.
    Retry,
    /// The session of this generation has changed its state.
    State(u64, State),
    /// The next heartbeat is due.
    Heartbeat,
    /// A heartbeat of this generation has ended. With its round trip if it was answered.
    Answered(u64, Option<Duration>),
}

kinds!(SessionMsg<O> { Subscribe, Made, Retry, State, Heartbeat, Answered } for O: Opaque);

/// The present state, for tasks that wait for one instead of receiving events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// There is no session.
    Connecting {
        /// Why the last attempt failed.
        error: Option<String>,
    },
    /// The session serves.
    Connected,
    /// The connection is lost.
    Disconnected,
}

/// What the session supervisor has its host do.
pub enum Tell<O: Opaque> {
    /// Make a session and open its namespace. [`SessionMsg::Made`] follows.
    Connect,
    /// Report the states of the new session, which has this generation, and show its margin. A state that it has reached since
    /// it was made is reported first.
    Follow(u64),
    /// The session has ended: report no more states of it, and show no margin.
    Forget,
    /// Publish the status.
    Status(Status),
    /// Send this event to every subscriber.
    Event(SessionEvent),
    /// Send these events to a new subscriber, and every later event.
    Greet(O::Subscriber, Vec<SessionEvent>),
    /// Send a heartbeat in the session of this generation. [`SessionMsg::Answered`] follows.
    Heartbeat(u64),
    /// End with this error.
    Refuse(O::Refusal),
}

/// The timers of the session supervisor. It has no watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The wait between two attempts.
    Retry,
    /// The wait between two heartbeats.
    Heartbeat,
}

/// What the session supervisor is started with.
#[derive(Debug, Clone)]
pub struct Args {
    /// The servers and the namespace, for the log.
    pub to: String,
}

/// Supervises the sessions of a process.
pub struct Session<O> {
    to: String,
    /// Counts the sessions.
    generation: u64,
    connection: Connection,
    opaque: PhantomData<fn() -> O>,
}

/// How the process stands with ZooKeeper.
enum Connection {
    /// An attempt, or the wait before it, is under way.
    Connecting {
        failures: u32,
    },
    Up(Live),
    Down(Live),
}

/// A session that has not ended.
#[derive(Debug, Clone, Copy)]
struct Live {
    made: Made,
    /// When the last heartbeat was sent.
    beat: Millis,
}

impl<O: Opaque> Concern for Session<O> {
    const NAME: &'static str = "session";
    type Msg = SessionMsg<O>;
    type Args = Args;
    type Key = Key;
    type Tell = Tell<O>;

    fn start(cx: &mut Context<'_, Self>, Args { to }: Args) -> Self {
        gauge!(metric::SESSION_CONNECTED).set(0.0);
        cx.tell(Tell::Connect);
        let connection = Connection::Connecting { failures: 0 };
        Self { to, generation: 0, connection, opaque: PhantomData }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: SessionMsg<O>) {
        match msg {
            SessionMsg::Subscribe(subscriber) => cx.tell(Tell::Greet(subscriber, self.greeting())),
            SessionMsg::Made(Ok(made)) => self.made(cx, made),
            SessionMsg::Made(Err(Failure::Transient(error))) => self.failed(cx, error),
            SessionMsg::Made(Err(Failure::Refused(error))) => {
                tracing::error!(%error, "the namespace cannot be used");
                cx.tell(Tell::Refuse(error));
            }
            SessionMsg::Retry => cx.tell(Tell::Connect),
            SessionMsg::State(generation, now) if generation == self.generation => self.changed(cx, now),
            SessionMsg::Heartbeat => self.heartbeat(cx),
            SessionMsg::Answered(generation, round_trip) if generation == self.generation => {
                self.answered(cx, round_trip);
            }
            // Of a session that has ended.
            SessionMsg::State(..) | SessionMsg::Answered(..) => {}
        }
    }
}

impl<O: Opaque> Session<O> {
    /// The events that lead to the present state.
    fn greeting(&self) -> Vec<SessionEvent> {
        let connected = |Live { made: Made { session, timeout }, .. }: &Live| SessionEvent::Connected {
            session: *session,
            timeout: *timeout,
        };
        match &self.connection {
            Connection::Connecting { .. } => Vec::new(),
            Connection::Up(live) => vec![connected(live)],
            Connection::Down(live) => vec![connected(live), SessionEvent::Disconnected],
        }
    }

    fn made(&mut self, cx: &mut Context<'_, Self>, made: Made) {
        self.generation += 1;
        let (generation, Made { session, timeout }) = (self.generation, made);
        tracing::info!(session = %format_args!("{session:#x}"), generation, ?timeout, "connected to ZooKeeper");
        counter!(metric::SESSION_GENERATIONS).increment(1);
        gauge!(metric::SESSION_CONNECTED).set(1.0);
        cx.tell(Tell::Follow(generation));
        self.connection = Connection::Up(Live { made, beat: cx.now });
        cx.tell(Tell::Status(Status::Connected));
        cx.tell(Tell::Event(SessionEvent::Connected { session, timeout }));
        self.heartbeat(cx);
    }

    fn failed(&mut self, cx: &mut Context<'_, Self>, error: String) {
        // There is one attempt at a time, so it is this one.
        let Connection::Connecting { failures } = &mut self.connection else { return };
        *failures += 1;
        let wait = RETRY.delay(*failures, cx.rng.u64(..));
        tracing::warn!(%error, to = %self.to, "no session yet, trying again");
        cx.tell(Tell::Status(Status::Connecting { error: Some(error) }));
        cx.after(Key::Retry, wait, SessionMsg::Retry);
    }

    fn changed(&mut self, cx: &mut Context<'_, Self>, now: State) {
        match now {
            State::Connected => {
                self.lost(cx);
                self.regained(cx);
            }
            State::Disconnected => self.lost(cx),
            State::Ended => self.ended(cx),
        }
    }

    fn lost(&mut self, cx: &mut Context<'_, Self>) {
        let Connection::Up(live) = self.connection else { return };
        self.connection = Connection::Down(live);
        let trusted = cx.trust.map_or(Duration::ZERO, |trust| trust.until.since(cx.now));
        tracing::warn!(?trusted, "connection to ZooKeeper lost");
        gauge!(metric::SESSION_CONNECTED).set(0.0);
        cx.tell(Tell::Status(Status::Disconnected));
        cx.tell(Tell::Event(SessionEvent::Disconnected));
    }

    fn regained(&mut self, cx: &mut Context<'_, Self>) {
        let Connection::Down(live) = self.connection else { return };
        self.connection = Connection::Up(live);
        tracing::info!("connection to ZooKeeper regained, same session");
        gauge!(metric::SESSION_CONNECTED).set(1.0);
        counter!(metric::SESSION_RECONNECTS).increment(1);
        cx.tell(Tell::Status(Status::Connected));
        cx.tell(Tell::Event(SessionEvent::Reconnected));
    }

    fn ended(&mut self, cx: &mut Context<'_, Self>) {
        // A session ends once.
        let (Connection::Up(_) | Connection::Down(_)) = &self.connection else { return };
        tracing::warn!(generation = self.generation, "the session is over");
        counter!(metric::SESSION_EXPIRED).increment(1);
        gauge!(metric::SESSION_CONNECTED).set(0.0);
        self.connection = Connection::Connecting { failures: 0 };
        cx.disarm(Key::Heartbeat);
        cx.tell(Tell::Forget);
        cx.tell(Tell::Connect);
        cx.tell(Tell::Status(Status::Connecting { error: None }));
        cx.tell(Tell::Event(SessionEvent::Expired));
    }

    /// Renews the last contact. While disconnected the host sends nothing, and the next heartbeat follows as usual.
    fn heartbeat(&mut self, cx: &mut Context<'_, Self>) {
        // The end of a session disarms its heartbeat.
        let (Connection::Up(live) | Connection::Down(live)) = &mut self.connection else { return };
        live.beat = cx.now;
        cx.tell(Tell::Heartbeat(self.generation));
    }

    fn answered(&mut self, cx: &mut Context<'_, Self>, round_trip: Option<Duration>) {
        // The session has ended since, and there is no other yet.
        let (Connection::Up(live) | Connection::Down(live)) = &self.connection else { return };
        if let Some(round_trip) = round_trip {
            histogram!(metric::ROUND_TRIP_SECONDS).record(round_trip);
        }
        let every = live.made.timeout / HEARTBEATS;
        let wait = every.saturating_sub(cx.now.since(live.beat));
        cx.after(Key::Heartbeat, wait, SessionMsg::Heartbeat);
    }
}
