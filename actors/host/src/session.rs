//! The session actor: owns the ZooKeeper client.
//!
//! ```text
//!  Connecting ──session made, namespace open──▶ Connected(g) ◀──────same session────┐
//!      ▲  └─ unreachable: wait, try again           │ connection lost               │
//!      │                                            ▼                               │
//!      └───────────────session over────────── Disconnected(g) ──────────────────────┘
//! ```
//!
//! Every session is a new *generation*. Subscribers hear each transition, in order, as a message. A session
//! that is over never comes back: its ephemerals are gone or going, and a new generation starts from nothing.
//! Two transitions that the client reports as one (lost and regained between two looks) are told as two, so
//! that every reconnection is followed by the re-reading that it demands.
//!
//! A namespace that is refused (foreign, another layout, closed to this session), or a login, ends the actor with its error: trying again would not help.

use std::time::{Duration, Instant};

use bellwether_core::backoff::Backoff;
use bellwether_core::metric;
use bellwether_zk::{
    Access, ConnectError, ConnectString, NamespaceError, SessionState, Zk, connect_as, open_namespace,
};
use futures::FutureExt as _;
use metrics::{counter, gauge};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::margin;
use crate::spawn::{Started, actor, spawn};
use crate::task::{Owned, tell};

/// Waits between attempts to connect: short enough to be back soon after ZooKeeper is, long enough not to
/// storm an ensemble that is electing.
const RETRY: Backoff = Backoff { initial: Duration::from_millis(100), max: Duration::from_secs(5) };

/// Heartbeats per session timeout: the trusted deadline lags by one of them at most.
const HEARTBEATS: u32 = 5;

/// How long a stopping node waits for ZooKeeper to confirm the end of its session.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// Where to connect and how.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// The servers and the namespace.
    pub connect: ConnectString,
    /// Who every session is.
    pub access: Access,
    /// Asked of the server, which may grant less or more.
    pub session_timeout: Duration,
    /// Whether to make the namespace when it is absent.
    pub create_namespace: bool,
}

/// What happened to the session.
#[derive(Debug, Clone)]
pub enum SessionEvent {
    /// A new session serves, with its namespace open.
    Connected {
        /// The session.
        zk: Zk,
        /// Counts sessions of this actor from 1.
        generation: u64,
    },
    /// The connection is lost; the session may be believed to live until then.
    Disconnected {
        /// Last contact + session timeout − margin.
        trusted_until: Instant,
    },
    /// The same session serves again: make watches anew, then read everything again.
    Reconnected,
    /// The session is over.
    Expired,
}

/// What the session is now, for those who wait rather than listen.
#[derive(Debug, Clone)]
pub enum SessionStatus {
    /// No session yet, or none any more.
    Connecting {
        /// Why the last attempt failed.
        error: Option<String>,
    },
    /// A session serves.
    Connected(Zk),
    /// The connection is lost.
    Disconnected,
    /// The namespace was refused; the actor has ended.
    Refused(NamespaceError),
}

/// Gets session events; says `false` when it wants no more.
pub type Subscriber = Box<dyn Fn(SessionEvent) -> bool + Send>;

/// Messages to the session actor.
pub enum SessionMsg {
    /// Hear every event from now on, beginning with one that tells the present state.
    Subscribe(Subscriber),
    #[doc(hidden)]
    Made(Result<Zk, Failure>),
    #[doc(hidden)]
    State(u64, SessionState),
    #[doc(hidden)]
    Heartbeat(u64),
}

#[doc(hidden)]
#[derive(Debug)]
pub enum Failure {
    Transient(String),
    Refused(NamespaceError),
}

/// Talks to a session actor.
#[derive(Debug, Clone)]
pub struct Session {
    actor: ActorRef<SessionMsg>,
    status: watch::Receiver<SessionStatus>,
}

impl Session {
    /// Starts the actor under a supervisor, or by itself.
    ///
    /// # Errors
    /// Only when the actor system itself fails: connecting happens afterwards.
    pub async fn start(config: SessionConfig, supervisor: Option<ActorCell>) -> Result<Self, SpawnErr> {
        let (publish, status) = watch::channel(SessionStatus::Connecting { error: None });
        let actor = start(config, publish, supervisor).await?;
        Ok(Self { actor, status })
    }

    /// Hears every event from now on, beginning with one that tells the present state.
    pub fn subscribe<M: ractor::Message>(
        &self,
        to: ActorRef<M>,
        message: impl Fn(SessionEvent) -> M + Send + 'static,
    ) {
        tell(&self.actor, SessionMsg::Subscribe(Box::new(move |event| to.cast(message(event)).is_ok())));
    }

    /// Follows the status. Transitions that come close together are seen as the last of them.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<SessionStatus> {
        self.status.clone()
    }

    /// The actor.
    #[must_use]
    pub fn cell(&self) -> ActorCell {
        self.actor.get_cell()
    }
}

fn start(
    config: SessionConfig,
    publish: watch::Sender<SessionStatus>,
    supervisor: Option<ActorCell>,
) -> Started<SessionMsg> {
    spawn(SessionActor, (config, publish), supervisor).boxed()
}

struct SessionActor;

actor!(SessionActor, "session", SessionMsg { Subscribe, Made, State, Heartbeat });

#[cfg(feature = "testing")]
pub(crate) fn roster() -> Vec<crate::testing::Entry> {
    vec![crate::testing::entry::<SessionActor>()]
}

struct State {
    config: SessionConfig,
    publish: watch::Sender<SessionStatus>,
    subscribers: Vec<Subscriber>,
    generation: u64,
    link: Link,
    /// The heartbeat that is under way, and the wait for the next.
    beat: Option<Owned>,
    /// Shows how close the session is to its end.
    margin: Option<Owned>,
}

enum Link {
    /// An attempt, or the wait before it, is under way.
    Connecting {
        failures: u32,
        _attempt: Owned,
    },
    Up {
        zk: Zk,
        _states: Owned,
    },
    Down {
        zk: Zk,
        _states: Owned,
    },
    /// Stopping.
    Closed,
}

impl Actor for SessionActor {
    type Msg = SessionMsg;
    type State = State;
    type Arguments = (SessionConfig, watch::Sender<SessionStatus>);

    async fn pre_start(
        &self,
        myself: ActorRef<SessionMsg>,
        (config, publish): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        gauge!(metric::SESSION_CONNECTED).set(0.0);
        let link = connecting(&config, myself, 0);
        Ok(State { config, publish, subscribers: Vec::new(), generation: 0, link, beat: None, margin: None })
    }

    async fn handle(
        &self,
        myself: ActorRef<SessionMsg>,
        message: SessionMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SessionMsg::Subscribe(subscriber) => state.subscribe(subscriber),
            SessionMsg::Made(Ok(zk)) => state.made(&myself, zk),
            SessionMsg::Made(Err(Failure::Transient(error))) => state.failed(myself, error),
            SessionMsg::Made(Err(Failure::Refused(error))) => {
                tracing::error!(%error, "the namespace cannot be used");
                state.publish.send_replace(SessionStatus::Refused(error.clone()));
                return Err(error.into());
            }
            SessionMsg::State(generation, now) if generation == state.generation => {
                state.changed(myself, now);
            }
            // Of a session that is over already.
            SessionMsg::State(..) => {}
            SessionMsg::Heartbeat(generation) => state.heartbeat(&myself, generation),
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<SessionMsg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        let link = std::mem::replace(&mut state.link, Link::Closed);
        state.withdraw();
        if let Link::Up { zk, _states } = link {
            let mut states = zk.states();
            drop(zk);
            if tokio::time::timeout(CLOSE_WITHIN, states.ended()).await.is_err() {
                tracing::warn!("ZooKeeper did not confirm the end of the session: it will time out there");
            }
        }
        Ok(())
    }
}

impl Drop for State {
    /// However the actor ends: who still follows the status would keep the session alive, with ephemerals that nobody
    /// stands for.
    fn drop(&mut self) {
        self.withdraw();
    }
}

impl State {
    fn withdraw(&self) {
        self.publish.send_if_modified(|status| match status {
            SessionStatus::Connected(_) | SessionStatus::Disconnected => {
                *status = SessionStatus::Connecting { error: None };
                true
            }
            SessionStatus::Connecting { .. } | SessionStatus::Refused(_) => false,
        });
    }

    fn subscribe(&mut self, subscriber: Subscriber) {
        let generation = self.generation;
        let wanted = match &self.link {
            Link::Connecting { .. } | Link::Closed => true,
            Link::Up { zk, .. } => subscriber(SessionEvent::Connected { zk: zk.clone(), generation }),
            Link::Down { zk, .. } => {
                let trusted_until = zk.trusted_until();
                subscriber(SessionEvent::Connected { zk: zk.clone(), generation })
                    && subscriber(SessionEvent::Disconnected { trusted_until })
            }
        };
        if wanted {
            self.subscribers.push(subscriber);
        }
    }

    fn emit(&mut self, event: &SessionEvent) {
        self.subscribers.retain(|subscriber| subscriber(event.clone()));
    }

    fn made(&mut self, myself: &ActorRef<SessionMsg>, zk: Zk) {
        self.generation += 1;
        let generation = self.generation;
        tracing::info!(session = ?zk, generation, timeout = ?zk.session_timeout(), "connected to ZooKeeper");
        counter!(metric::SESSION_GENERATIONS).increment(1);
        gauge!(metric::SESSION_CONNECTED).set(1.0);
        self.margin = Some(margin::show(&zk));
        let states = follow(&zk, generation, myself.clone());
        self.link = Link::Up { zk: zk.clone(), _states: states };
        self.publish.send_replace(SessionStatus::Connected(zk.clone()));
        self.emit(&SessionEvent::Connected { zk, generation });
        self.heartbeat(myself, generation);
    }

    fn failed(&mut self, myself: ActorRef<SessionMsg>, error: String) {
        let Link::Connecting { failures, .. } = self.link else {
            return;
        };
        tracing::warn!(%error, to = %self.config.connect, "no session yet, trying again");
        self.publish.send_replace(SessionStatus::Connecting { error: Some(error) });
        self.link = connecting(&self.config, myself, failures + 1);
    }

    fn changed(&mut self, myself: ActorRef<SessionMsg>, now: SessionState) {
        match now {
            SessionState::Connected => {
                self.lost();
                self.regained();
            }
            SessionState::Disconnected => self.lost(),
            SessionState::Ended => {
                tracing::warn!(generation = self.generation, "the session is over");
                counter!(metric::SESSION_EXPIRED).increment(1);
                gauge!(metric::SESSION_CONNECTED).set(0.0);
                self.margin = None;
                gauge!(metric::SESSION_MARGIN).set(0.0);
                self.link = connecting(&self.config, myself, 0);
                self.publish.send_replace(SessionStatus::Connecting { error: None });
                self.emit(&SessionEvent::Expired);
            }
        }
    }

    fn lost(&mut self) {
        if !matches!(self.link, Link::Up { .. }) {
            return;
        }
        self.step(|zk, _states| Link::Down { zk, _states });
        let Link::Down { zk, .. } = &self.link else { return };
        let trusted_until = zk.trusted_until();
        tracing::warn!(trusted = ?trusted_until.saturating_duration_since(Instant::now()), "connection to ZooKeeper lost");
        gauge!(metric::SESSION_CONNECTED).set(0.0);
        self.publish.send_replace(SessionStatus::Disconnected);
        self.emit(&SessionEvent::Disconnected { trusted_until });
    }

    fn regained(&mut self) {
        self.step(|zk, _states| Link::Up { zk, _states });
        let Link::Up { zk, .. } = &self.link else { return };
        tracing::info!("connection to ZooKeeper regained, same session");
        gauge!(metric::SESSION_CONNECTED).set(1.0);
        counter!(metric::SESSION_RECONNECTS).increment(1);
        self.publish.send_replace(SessionStatus::Connected(zk.clone()));
        self.emit(&SessionEvent::Reconnected);
    }

    /// Moves an established link into another state; one that is still connecting stays.
    fn step(&mut self, to: impl FnOnce(Zk, Owned) -> Link) {
        let none = Link::Connecting { failures: 0, _attempt: Owned::spawn(async {}) };
        self.link = match std::mem::replace(&mut self.link, none) {
            Link::Up { zk, _states } | Link::Down { zk, _states } => to(zk, _states),
            other @ (Link::Connecting { .. } | Link::Closed) => other,
        };
    }

    /// Keeps the last contact fresh, and asks for the next heartbeat. While disconnected it only asks.
    fn heartbeat(&mut self, myself: &ActorRef<SessionMsg>, generation: u64) {
        let (Link::Up { zk, .. } | Link::Down { zk, .. }) = &self.link else {
            return;
        };
        if generation != self.generation {
            return;
        }
        let every = zk.session_timeout() / HEARTBEATS;
        let beat = zk.heartbeat();
        let to = myself.clone();
        self.beat = Some(Owned::spawn(async move {
            let sent = Instant::now();
            if beat.await.is_ok() {
                metrics::histogram!(metric::ROUND_TRIP_SECONDS).record(sent.elapsed());
            }
            sleep(every.saturating_sub(sent.elapsed())).await;
            tell(&to, SessionMsg::Heartbeat(generation));
        }));
    }
}

fn connecting(config: &SessionConfig, myself: ActorRef<SessionMsg>, failures: u32) -> Link {
    let config = config.clone();
    let wait = if failures == 0 { Duration::ZERO } else { RETRY.delay(failures, fastrand::u64(..)) };
    let _attempt = Owned::spawn(async move {
        sleep(wait).await;
        tell(&myself, SessionMsg::Made(attempt(&config).await));
    });
    Link::Connecting { failures, _attempt }
}

async fn attempt(config: &SessionConfig) -> Result<Zk, Failure> {
    let zk = connect_as(&config.connect, &config.access, config.session_timeout).await.map_err(refused)?;
    match open_namespace(&zk, config.create_namespace).await {
        Ok(()) => Ok(zk),
        Err(error) if error.may_pass() => Err(Failure::Transient(error.to_string())),
        Err(error) => Err(Failure::Refused(error)),
    }
}

fn refused(error: ConnectError) -> Failure {
    match error {
        ConnectError::Unreachable { .. } => Failure::Transient(error.to_string()),
        // The same login would be refused again.
        ConnectError::LoginRefused { who } => Failure::Refused(NamespaceError::LoginRefused { who }),
    }
}

fn follow(zk: &Zk, generation: u64, myself: ActorRef<SessionMsg>) -> Owned {
    let mut states = zk.states();
    let missed = zk.state();
    Owned::spawn(async move {
        // What happened since the session was made and before it was followed.
        if missed != SessionState::Connected {
            tell(&myself, SessionMsg::State(generation, missed));
        }
        loop {
            let state = states.changed().await;
            tell(&myself, SessionMsg::State(generation, state));
        }
    })
}
