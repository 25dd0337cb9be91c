//! The session supervisor: creates ZooKeeper sessions, one after the other, and reports each change to its subscribers.
//!
//! ```text
//!  Connecting ──session created, namespace open─▶ Up(generation) ◀────same session─────┐
//!      ▲  └─ unreachable: wait, retry                │ connection lost                 │
//!      │                                             ▼                                 │
//!      └───────────────session ended────────── Down(generation) ───────────────────────┘
//! ```
//!
//! Every session is a new *generation*. Subscribers receive each transition, in order, as a message. A session that has
//! ended never comes back: the server deletes its ephemeral znodes, and a new generation starts without state. The
//! client library may report two transitions as one, when the connection is lost and regained before the supervisor
//! reads the state. The supervisor then sends two events, because subscribers must read everything again after every
//! reconnection.
//!
//! A refused namespace (foreign, another layout, no access) or a refused login ends the concern with that error,
//! because another attempt would not help.
//!
//! **Trust.** The session supervisor sends heartbeats; each is a `sync`, because only an answer that passed ZooKeeper's leader
//! proves that the session lives. A follower that is cut off from its leader answers reads for up to syncLimit × tick, while
//! the leader may expire the session. From which request the timeout counts, and the proof, are in
//! [`bellwether_core::contact`].
//!
//! **Shorter timeouts.** A session that moves to another server gets the timeout that this server grants, and the client
//! library does not report it. So the owner of a trusted session asks every server when it connects, and again after each
//! reconnection, because a server may have been down or restarted with another configuration. The shortest timeout counts
//! for the rest of the session, for the trust and for the heartbeats; a question without an answer changes nothing. Limit:
//! until the servers have answered, which takes half a second at most, the earlier timeout counts. A session that ends while
//! it is trusted is reported as an error.
//!
//! **Time.** The session supervisor reads ZooKeeper's clock when a session is created, when its connection is regained, and
//! every `CLOCK_EVERY`. [`Clock`] turns the readings of a session into the time of the process. While the
//! machine's clock and ZooKeeper's disagree, the node does not lead ([`SessionEvent::Clock`]). A lost reply gives no reading;
//! the next one follows.
//!
//! **Reports.** A process whose wall clock is wrong keeps a report about it in the namespace. The report is
//! compared with the clock after each reading.
//!
//! The host owns the client library, opens the namespace, and holds the subscribers. A lost reply needs no case here: a
//! heartbeat is answered or ends with its connection, and the next heartbeat follows in both cases.

mod report;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::marker::PhantomData;
use std::time::Duration;

use bellwether_core::backoff::Backoff;
use bellwether_core::chain::chain;
use bellwether_core::clock::{Clock, Reading};
use bellwether_core::clock_report::Process;
use bellwether_core::failover::Failover;
use bellwether_core::metric;
use bellwether_core::outcome::Outcome;
use bellwether_core::time::Millis;
use bellwether_core::txn::Op;
use metrics::{counter, gauge, histogram};

use self::report::Report;
use crate::gauge::GaugePart;
use crate::{Concern, Context};

/// The waits between attempts to connect: short enough to reconnect soon after ZooKeeper is back, long enough not to
/// overload an ensemble that elects its leader.
const RETRY: Backoff = Backoff { initial: Duration::from_millis(100), max: Duration::from_secs(5) };

/// Heartbeats per session timeout. The trust counts from a request that ZooKeeper's leader has heard of, which a later
/// heartbeat proves: three to four intervals before the last answered one (`bellwether_core::contact`). So at least half of
/// the timeout is trusted right after an answer, and about four tenths before the next one.
const HEARTBEATS: u32 = 10;

/// The wait between two readings of ZooKeeper's clock: a node that is wrong steps down within this time, and a reading is
/// one small write.
const CLOCK_EVERY: Duration = Duration::from_secs(30);

/// A change of the session, for the concerns that send requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEvent {
    /// A new session is connected and its namespace is open. The host switches the concern's requests to it.
    Connected {
        /// The session's id.
        session: i64,
        /// The timeout that the server granted.
        timeout: Duration,
        /// The times of the namespace.
        failover: Failover,
    },
    /// The connection is lost; the session may still be alive.
    Disconnected,
    /// The same session is connected again: set the watches again, then read everything again.
    Reconnected,
    /// The session has ended.
    Expired,
    /// Whether this machine's wall clock and ZooKeeper's agree. They do until an event reports the opposite.
    Clock {
        /// They agree.
        agrees: bool,
    },
}

kinds!(SessionEvent { Connected, Disconnected, Reconnected, Expired, Clock });

/// Types of a host that the concern passes on without reading them.
pub trait Opaque: Send + 'static {
    /// Receives session events.
    type Subscriber: Send + 'static;
    /// The reason why a namespace or a login is refused.
    type Refusal: Error + Send + 'static;
}

/// A new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// The session's id.
    pub session: i64,
    /// The timeout that the server granted.
    pub timeout: Duration,
    /// The times of the namespace.
    pub failover: Failover,
    /// A reading of ZooKeeper's clock; `None` without the permission to write.
    pub clock: Option<Reading>,
}

impl Made {
    /// The event that announces it.
    #[must_use]
    pub fn connected(self) -> SessionEvent {
        let Self { session, timeout, failover, clock: _ } = self;
        SessionEvent::Connected { session, timeout, failover }
    }
}

/// Why an attempt to create a session failed.
#[derive(Debug)]
pub enum Failure<R> {
    /// Another attempt may help.
    Transient(String),
    /// Another attempt would not help.
    Refused(R),
}

/// A session's state, as the client library reports it. Of several quick changes only the last state is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The server accepts requests.
    Connected,
    /// The connection is lost; the session may still be alive.
    Disconnected,
    /// The session has expired, or was closed or refused.
    Ended,
}

/// Messages to the session supervisor.
pub enum SessionMsg<O: Opaque> {
    /// Adds a subscriber. It receives the events that lead to the current state, and then every new event.
    Subscribe(O::Subscriber),
    /// An attempt has ended. The host switches the concern to the new session, if there is one.
    Made(Result<Made, Failure<O::Refusal>>),
    /// The wait before the next attempt is over.
    Retry,
    /// The state of the session of this generation has changed.
    State(u64, State),
    /// The next heartbeat is due.
    Heartbeat,
    /// A heartbeat of this generation has ended, with its round trip if it was answered.
    Answered(u64, Option<Duration>),
    /// The next reading of ZooKeeper's clock is due.
    ReadClock,
    /// A reading of ZooKeeper's clock in the session of this generation has ended; `None` without a usable answer.
    Clock(u64, Option<Reading>),
    /// A report about the wall clock was written in the session of this generation: the seconds by which it is ahead, or
    /// `None` for its withdrawal.
    Reported(u64, Option<i64>, Outcome<()>),
    /// The servers were asked in the session of this generation: the shortest timeout that one of them grants; `None`
    /// without an answer.
    Granted(u64, Option<Duration>),
}

kinds!(SessionMsg<O> {
    Subscribe, Made, Retry, State, Heartbeat, Answered, ReadClock, Clock, Reported, Granted
} for O: Opaque);

/// The current state, for tasks that wait for a state instead of receiving events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// There is no session.
    Connecting {
        /// Why the last attempt failed.
        error: Option<String>,
    },
    /// The session is connected.
    Connected,
    /// The connection is lost.
    Disconnected,
}

/// Requests of the session supervisor to its host.
pub enum Tell<O: Opaque> {
    /// Create a session and open its namespace. [`SessionMsg::Made`] follows.
    Connect,
    /// Report the states of the new session, which has this generation, and record its margin. First report a state
    /// that the session reached since it was created.
    Follow(u64),
    /// Stop reporting states and recording the margin: the session has ended.
    Forget,
    /// Publish the status.
    Status(Status),
    /// Send this event to every subscriber.
    Event(SessionEvent),
    /// Send these events, and then every later event, to a new subscriber.
    Greet(O::Subscriber, Vec<SessionEvent>),
    /// Send a heartbeat in the session of this generation. [`SessionMsg::Answered`] follows.
    Heartbeat(u64),
    /// Read ZooKeeper's clock in the session of this generation. [`SessionMsg::Clock`] follows.
    ReadClock(u64),
    /// Use this clock in the contexts of all concerns.
    Clock(Clock),
    /// Ask every server for the session timeout that it grants. [`SessionMsg::Granted`] follows.
    AskTimeouts(u64),
    /// Trust the session for this timeout, which is shorter than before.
    Shorten(Duration),
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
    /// The wait between two readings of ZooKeeper's clock.
    Clock,
}

/// The arguments of the session supervisor.
#[derive(Debug, Clone)]
pub struct Args {
    /// Whose session it is, for the log: a node, or a client. A process may have several.
    pub owner: String,
    /// The servers and the namespace, for the log.
    pub to: String,
    /// The process as it reports a wrong wall clock; `None` if it does not read ZooKeeper's clock, because it neither decides
    /// nor writes anything by wall-clock time.
    pub reads_clock: Option<Process>,
    /// Whether the process acts only while its session is trusted.
    pub is_trusted: bool,
}

/// Supervises the sessions of a process.
pub struct Session<O> {
    owner: String,
    to: String,
    is_trusted: bool,
    clock: Clock,
    /// `None` if the process does not read ZooKeeper's clock.
    report: Option<Report>,
    /// The number of sessions so far.
    generation: u64,
    connection: Connection,
    connected: GaugePart,
    opaque: PhantomData<fn() -> O>,
}

/// The connection of the process to ZooKeeper.
enum Connection {
    /// An attempt to connect, or the wait before it, is in progress.
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
    /// The time at which the last heartbeat was sent.
    beat: Millis,
}

impl<O: Opaque> Concern for Session<O> {
    const NAME: &'static str = "session";
    type Msg = SessionMsg<O>;
    type Args = Args;
    type Key = Key;
    type Tell = Tell<O>;

    fn start(cx: &mut Context<'_, Self>, Args { owner, to, reads_clock, is_trusted }: Args) -> Self {
        cx.tell(Tell::Connect);
        let connection = Connection::Connecting { failures: 0 };
        let connected = GaugePart::of_minimum(metric::SESSION_CONNECTED);
        Self {
            owner,
            to,
            is_trusted,
            clock: Clock::default(),
            report: reads_clock.map(Report::new),
            generation: 0,
            connection,
            connected,
            opaque: PhantomData,
        }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: SessionMsg<O>) {
        match msg {
            SessionMsg::Subscribe(subscriber) => cx.tell(Tell::Greet(subscriber, self.greeting())),
            SessionMsg::Made(Ok(made)) => self.made(cx, made),
            SessionMsg::Made(Err(Failure::Transient(error))) => self.failed(cx, error),
            SessionMsg::Made(Err(Failure::Refused(error))) => {
                tracing::error!(owner = self.owner, error = %chain(&error), "the session cannot use the namespace");
                cx.tell(Tell::Refuse(error));
            }
            SessionMsg::Retry => cx.tell(Tell::Connect),
            SessionMsg::State(generation, now) if generation == self.generation => self.changed(cx, now),
            SessionMsg::Heartbeat => self.heartbeat(cx),
            SessionMsg::Answered(generation, round_trip) if generation == self.generation => {
                self.answered(cx, round_trip);
            }
            SessionMsg::ReadClock => self.read_clock(cx),
            SessionMsg::Clock(generation, reading) if generation == self.generation => {
                self.clock_answered(cx, reading);
            }
            SessionMsg::Reported(generation, ahead, outcome) if generation == self.generation => {
                self.reported(cx, ahead, outcome);
            }
            SessionMsg::Granted(generation, Some(timeout)) if generation == self.generation => {
                self.granted(cx, timeout);
            }
            // From a session that has ended, or without an answer.
            SessionMsg::State(..)
            | SessionMsg::Answered(..)
            | SessionMsg::Clock(..)
            | SessionMsg::Reported(..)
            | SessionMsg::Granted(..) => {}
        }
    }
}

impl<O: Opaque> Session<O> {
    /// The events that lead to the current state.
    fn greeting(&self) -> Vec<SessionEvent> {
        let (live, lost) = match &self.connection {
            Connection::Connecting { .. } => return Vec::new(),
            Connection::Up(live) => (live, None),
            Connection::Down(live) => (live, Some(SessionEvent::Disconnected)),
        };
        let agrees = self.clock.agrees();
        let clock = (!agrees).then_some(SessionEvent::Clock { agrees });
        clock.into_iter().chain([live.made.connected()]).chain(lost).collect()
    }

    fn made(&mut self, cx: &mut Context<'_, Self>, made: Made) {
        self.generation += 1;
        let (generation, Made { session, timeout, clock, .. }) = (self.generation, made);
        tracing::info!(owner = self.owner, session = %format_args!("{session:#x}"), generation, ?timeout, "the session connected to ZooKeeper");
        counter!(metric::SESSIONS_CREATED).increment(1);
        self.connected.set(1.0);
        cx.tell(Tell::Follow(generation));
        self.connection = Connection::Up(Live { made, beat: cx.now });
        // A virtual machine that was paused as a whole has lost its session, and its two clocks agree on a time in the past.
        let before = std::mem::take(&mut self.clock).agrees();
        self.report.iter_mut().for_each(Report::renew);
        // First, so that no candidate stands, and no client reads the time, before the clocks are compared.
        self.measured(cx, before, clock);
        cx.tell(Tell::Status(Status::Connected));
        if !before && !self.clock.agrees() {
            // A part that has subscribed since the last session has not heard of it.
            cx.tell(Tell::Event(SessionEvent::Clock { agrees: false }));
        }
        cx.tell(Tell::Event(made.connected()));
        self.heartbeat(cx);
    }

    fn failed(&mut self, cx: &mut Context<'_, Self>, error: String) {
        // Only one attempt is in progress at a time, so this answer belongs to it.
        let Connection::Connecting { failures } = &mut self.connection else { return };
        *failures += 1;
        let wait = RETRY.delay(*failures, cx.rng.u64(..));
        tracing::warn!(owner = self.owner, %error, to = self.to, "no ZooKeeper server granted a session: the session supervisor retries");
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
        tracing::warn!(owner = self.owner, ?trusted, "the session lost its connection to ZooKeeper");
        self.connected.set(0.0);
        cx.tell(Tell::Status(Status::Disconnected));
        cx.tell(Tell::Event(SessionEvent::Disconnected));
    }

    fn regained(&mut self, cx: &mut Context<'_, Self>) {
        let Connection::Down(live) = self.connection else { return };
        self.connection = Connection::Up(live);
        tracing::info!(owner = self.owner, "the session regained its connection to ZooKeeper");
        self.connected.set(1.0);
        counter!(metric::SESSION_RECONNECTS).increment(1);
        cx.tell(Tell::Status(Status::Connected));
        cx.tell(Tell::Event(SessionEvent::Reconnected));
        // ZooKeeper may have another leader, with another clock.
        self.read_clock(cx);
        if self.is_trusted {
            cx.tell(Tell::AskTimeouts(self.generation));
        }
    }

    /// A server grants this timeout.
    fn granted(&mut self, cx: &mut Context<'_, Self>, timeout: Duration) {
        // The session has ended, and there is no new one yet.
        let (Connection::Up(live) | Connection::Down(live)) = &mut self.connection else { return };
        let before = live.made.timeout;
        if timeout >= before {
            return;
        }
        live.made.timeout = timeout;
        tracing::warn!(
            owner = self.owner,
            ?before,
            now = ?timeout,
            "a ZooKeeper server grants a shorter session timeout than before (maxSessionTimeout): the session is trusted \
             for a shorter time"
        );
        cx.tell(Tell::Shorten(timeout));
        // The next one is due after a tenth of the earlier timeout, which may be too late.
        self.heartbeat(cx);
    }

    fn ended(&mut self, cx: &mut Context<'_, Self>) {
        // A session ends once.
        let (Connection::Up(_) | Connection::Down(_)) = &self.connection else { return };
        tracing::warn!(owner = self.owner, generation = self.generation, "the ZooKeeper session has ended");
        counter!(metric::SESSIONS_EXPIRED).increment(1);
        if let Some(left) = cx.trust.map(|trust| trust.until.since(cx.now)).filter(|left| !left.is_zero()) {
            tracing::error!(
                owner = self.owner,
                ?left,
                "the ZooKeeper session ended while it was trusted: another client closed it, or a server grants a \
                 shorter session timeout than the others (maxSessionTimeout)"
            );
            counter!(metric::SESSIONS_EXPIRED_EARLY).increment(1);
        }
        self.connected.set(0.0);
        self.connection = Connection::Connecting { failures: 0 };
        cx.disarm(Key::Heartbeat);
        cx.disarm(Key::Clock);
        cx.tell(Tell::Forget);
        cx.tell(Tell::Connect);
        cx.tell(Tell::Status(Status::Connecting { error: None }));
        cx.tell(Tell::Event(SessionEvent::Expired));
    }

    /// Sends a heartbeat, a `sync`, which advances the trust. While disconnected the host sends no request, and the next
    /// heartbeat follows as usual.
    fn heartbeat(&mut self, cx: &mut Context<'_, Self>) {
        // Without a session there is no heartbeat: the end of a session disarms the timer.
        let (Connection::Up(live) | Connection::Down(live)) = &mut self.connection else { return };
        live.beat = cx.now;
        cx.tell(Tell::Heartbeat(self.generation));
    }

    fn answered(&mut self, cx: &mut Context<'_, Self>, round_trip: Option<Duration>) {
        // The session has ended, and there is no new one yet.
        let (Connection::Up(live) | Connection::Down(live)) = &self.connection else { return };
        if let Some(round_trip) = round_trip {
            histogram!(metric::ZOOKEEPER_HEARTBEAT_DURATION_SECONDS).record(round_trip);
        }
        let every = live.made.timeout / HEARTBEATS;
        let wait = every.saturating_sub(cx.now.since(live.beat));
        cx.after(Key::Heartbeat, wait, SessionMsg::Heartbeat);
    }

    fn read_clock(&self, cx: &mut Context<'_, Self>) {
        if self.report.is_some() {
            cx.tell(Tell::ReadClock(self.generation));
        }
    }

    fn clock_answered(&mut self, cx: &mut Context<'_, Self>, reading: Option<Reading>) {
        // The session has ended, and there is no new one yet.
        let (Connection::Up(_) | Connection::Down(_)) = &self.connection else { return };
        self.measured(cx, self.clock.agrees(), reading);
    }

    fn compare_report(&mut self, cx: &mut Context<'_, Self>) {
        // The clock is read only in a session.
        let (Connection::Up(live) | Connection::Down(live)) = &self.connection else { return };
        let ahead = self.clock.ahead();
        let write = self.report.as_mut().and_then(|report| report.compare(live.made.session, ahead));
        self.write_report(cx, write);
    }

    fn reported(&mut self, cx: &mut Context<'_, Self>, ahead: Option<i64>, outcome: Outcome<()>) {
        // The session has ended, and its report with it.
        let (Connection::Up(live) | Connection::Down(live)) = &self.connection else { return };
        let session = live.made.session;
        let write = self.report.as_mut().and_then(|report| report.written(session, ahead, outcome));
        self.write_report(cx, write);
    }

    fn write_report(&self, cx: &mut Context<'_, Self>, write: Option<(Option<i64>, Op)>) {
        if let Some((ahead, op)) = write {
            let generation = self.generation;
            cx.commit(vec![op], move |_, outcome| Some(SessionMsg::Reported(generation, ahead, outcome)));
        }
    }

    /// `before` says whether the clocks agreed before.
    fn measured(&mut self, cx: &mut Context<'_, Self>, before: bool, reading: Option<Reading>) {
        if let Some(reading) = reading {
            self.clock.read(reading, cx.now, cx.local);
        }
        cx.tell(Tell::Clock(self.clock));
        #[expect(clippy::cast_precision_loss, reason = "a metric")]
        let ahead = self.clock.ahead() as f64 / 1_000.0;
        gauge!(metric::CLOCK_OFFSET_SECONDS).set(ahead);
        self.compare_report(cx);
        let agrees = self.clock.agrees();
        if agrees != before {
            if agrees {
                tracing::info!(owner = self.owner, "the clocks of this machine and of ZooKeeper agree again");
            } else {
                tracing::error!(
                    owner = self.owner,
                    offset_seconds = ahead,
                    "the clock of this machine differs from ZooKeeper's: a node does not lead with such a difference; \
                     check the time synchronisation (NTP) of this machine and of the ZooKeeper servers"
                );
            }
            cx.tell(Tell::Event(SessionEvent::Clock { agrees }));
        }
        if self.report.is_some() {
            cx.sweep(Key::Clock, CLOCK_EVERY, SessionMsg::ReadClock);
        }
    }
}
