//! The host of the session supervisor: its handle, the creation of sessions, and its subscribers.
//!
//! The concern is [`bellwether_actors::session`]. The actor holds the ZooKeeper client: a new [`Zk`] arrives with the
//! message that announces it. A session ends when its last handle is dropped. The published status contains a handle,
//! so the actor withdraws the status in every case: when it stops, fails, or is killed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bellwether_actors::session::{
    self as concern, Args, Failure, Made, Opaque, SessionEvent as Event, SessionMsg, State, Status, Tell,
};
use bellwether_core::chain::chain;
use bellwether_core::clock::{Clock, Reading};
use bellwether_core::clock_report::Process;
use bellwether_core::failover::Failover;
use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::time::{Millis, WallMillis};
use bellwether_zk::{
    Access, ConnectError, ConnectString, NamespaceError, SessionState, Zk, connect_as, connect_trusted,
    open_namespace, settle_strategy, shortest_timeout,
};
use futures::FutureExt as _;
use ractor::{ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use tokio::sync::watch;

use crate::clock;
use crate::host::{self, Hosted, Hosting, Letter, Ref};
use crate::session_margin::SessionMargin;
use crate::spawn::{Started, spawn};
use crate::task::{Owned, report, tell};

/// How long a stopping node waits for ZooKeeper to confirm the end of its session.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

const CONNECTION_LOST: &str = "the connection was lost before ZooKeeper's clock was read";

/// The configuration of the connection to ZooKeeper.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Whose sessions they are, for the log: a node, or a client.
    pub owner: String,
    /// The servers and the namespace.
    pub connect: ConnectString,
    /// The login of every session.
    pub access: Access,
    /// The requested session timeout. The server may grant a shorter or longer one.
    pub session_timeout: Duration,
    /// Whether the owner acts only while the session is trusted. Then every server is asked for the timeout that it grants,
    /// again after each reconnection.
    pub is_trusted: bool,
    /// The election strategy of a candidate. A namespace whose candidates use another one is refused.
    pub election: Option<Strategy>,
    /// Whether to create the namespace if it does not exist.
    pub create_namespace: bool,
    /// The process as it reports a wrong wall clock; `None` if it does not read ZooKeeper's clock. An election without jobs
    /// decides nothing by wall-clock time.
    pub reads_clock: Option<Process>,
}

/// A change of the session.
#[derive(Debug, Clone)]
pub enum SessionEvent {
    /// A new session is connected and its namespace is open.
    Connected {
        /// The session.
        zk: Zk,
        /// The times of the namespace.
        failover: Failover,
    },
    /// The connection is lost.
    Disconnected {
        /// The time until which the session can be trusted: last contact + session timeout − margin.
        trusted_until: Millis,
    },
    /// The same session is connected again: set the watches again, then read everything again.
    Reconnected,
    /// The session has ended.
    Expired,
    /// Whether this machine's wall clock and ZooKeeper's agree.
    Clock {
        /// They agree.
        agrees: bool,
    },
}

/// The current state of the session, for tasks that wait for a state instead of receiving events.
#[derive(Debug, Clone)]
pub enum SessionStatus {
    /// There is no session.
    Connecting {
        /// Why the last attempt failed.
        error: Option<String>,
    },
    /// The session is connected.
    Connected(Zk),
    /// The connection is lost.
    Disconnected,
    /// The namespace was refused; the actor has ended.
    Refused(NamespaceError),
}

/// Receives session events. Returns `false` to unsubscribe.
pub type Subscriber = Box<dyn Fn(SessionEvent) -> bool + Send>;

/// A handle of a session actor.
#[derive(Debug, Clone)]
pub struct Session {
    actor: Ref<Supervisor>,
    status: watch::Receiver<SessionStatus>,
    time: Arc<Mutex<Clock>>,
}

impl Session {
    /// Starts the actor, under a supervisor if one is given. It connects afterwards.
    ///
    /// # Errors
    /// Only a failure of the actor system.
    pub async fn start(config: SessionConfig, supervisor: Option<ActorCell>) -> Result<Self, SpawnErr> {
        let (publish, status) = watch::channel(SessionStatus::Connecting { error: None });
        let args = Args {
            owner: config.owner.clone(),
            to: config.connect.to_string(),
            reads_clock: config.reads_clock.clone(),
            is_trusted: config.is_trusted,
        };
        let time = Arc::new(Mutex::default());
        let links = Links {
            config,
            publish,
            clock: Arc::clone(&time),
            subscribers: Vec::new(),
            attempt: None,
            states: None,
            beat: None,
            asked: None,
            margin: None,
            shown: SessionMargin::new(),
        };
        let actor = start(host::Args { zk: None, links, args, may_send: host::always() }, supervisor).await?;
        Ok(Self { actor, status, time })
    }

    /// Subscribes an actor to the events, starting with those that lead to the current state.
    pub fn subscribe<M: ractor::Message>(
        &self,
        to: ActorRef<M>,
        message: impl Fn(SessionEvent) -> M + Send + 'static,
    ) {
        let subscriber: Subscriber = Box::new(move |event| to.cast(message(event)).is_ok());
        host::send(&self.actor, SessionMsg::Subscribe(subscriber));
    }

    /// Follows the status. Of several quick changes a receiver may see only the last.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<SessionStatus> {
        self.status.clone()
    }

    /// Returns the wall-clock time: ZooKeeper's, as far as it was read, also while there is no session.
    #[must_use]
    pub fn wall(&self) -> WallMillis {
        let time = self.time.lock().unwrap_or_else(PoisonError::into_inner);
        time.wall(clock::now(), clock::local())
    }

    /// The actor.
    #[must_use]
    pub fn cell(&self) -> ActorCell {
        self.actor.get_cell()
    }
}

/// The concern with the types of this host.
type Supervisor = concern::Session<Passed>;

/// Names this host's types that the concern passes on.
pub(crate) enum Passed {}

impl Opaque for Passed {
    type Subscriber = Subscriber;
    type Refusal = NamespaceError;
}

fn start(args: host::Args<Supervisor>, supervisor: Option<ActorCell>) -> Started<Letter<Supervisor>> {
    spawn(Hosted::new(), args, supervisor).boxed()
}

#[cfg(feature = "testing")]
pub(crate) fn roster() -> Vec<crate::testing::Entry> {
    vec![crate::testing::entry::<Hosted<Supervisor>>()]
}

/// The state that the effects need. The tasks end with the actor.
pub(crate) struct Links {
    config: SessionConfig,
    publish: watch::Sender<SessionStatus>,
    /// The time, for the holders of a [`Session`].
    clock: Arc<Mutex<Clock>>,
    subscribers: Vec<Subscriber>,
    /// The task that creates a session.
    attempt: Option<Owned>,
    /// The task that reports the current session's states.
    states: Option<Owned>,
    /// The task of the heartbeat in flight.
    beat: Option<Owned>,
    /// The task that asks the servers for their session timeouts.
    asked: Option<Owned>,
    /// The task that records the session margin.
    margin: Option<Owned>,
    shown: SessionMargin,
}

impl Hosting for Supervisor {
    type Links = Links;

    async fn tell(
        links: &mut Links,
        zk: Option<&Zk>,
        me: &Ref<Self>,
        tell: Tell<Passed>,
    ) -> Result<(), ActorProcessingErr> {
        match (tell, zk) {
            (Tell::Connect, _) => links.attempt = Some(connect(&links.config, me)),
            (Tell::Status(Status::Connecting { error }), _) => {
                links.publish.send_replace(SessionStatus::Connecting { error });
            }
            (Tell::Status(Status::Disconnected), _) => {
                links.publish.send_replace(SessionStatus::Disconnected);
            }
            (Tell::Forget, _) => links.forget(),
            (Tell::Refuse(error), _) => {
                links.publish.send_replace(SessionStatus::Refused(error.clone()));
                return Err(error.into());
            }
            (Tell::Status(Status::Connected), Some(zk)) => {
                links.publish.send_replace(SessionStatus::Connected(zk.clone()));
            }
            (Tell::Follow(generation), Some(zk)) => {
                links.margin = Some(links.shown.show(zk));
                links.states = Some(follow(zk, generation, me));
            }
            (Tell::Event(event), Some(zk)) => {
                let event = of(event, zk);
                links.subscribers.retain(|subscriber| subscriber(event.clone()));
            }
            (Tell::Greet(subscriber, events), zk) => {
                // Without a session there are no events.
                let mut events = events.into_iter().filter_map(|event| Some(of(event, zk?)));
                if events.all(&subscriber) {
                    links.subscribers.push(subscriber);
                }
            }
            (Tell::Heartbeat(generation), Some(zk)) => links.beat = Some(beat(zk, generation, me)),
            (Tell::ReadClock(generation), Some(zk)) => {
                let reading = read_clock(zk).map(Result::ok);
                let me = me.clone();
                let read = move |reading: Option<_>| {
                    host::send(&me, SessionMsg::Clock(generation, reading.flatten()));
                };
                report(reading, Box::new(read));
            }
            (Tell::Clock(clock), Some(zk)) => {
                zk.set_clock(clock);
                *links.clock.lock().unwrap_or_else(PoisonError::into_inner) = clock;
            }
            (Tell::AskTimeouts(generation), _) => {
                links.asked = Some(ask_timeouts(&links.config, generation, me));
            }
            (Tell::Shorten(timeout), Some(zk)) => {
                zk.shorten(timeout);
                links.margin = Some(links.shown.show(zk));
            }
            (
                Tell::Status(Status::Connected)
                | Tell::Follow(_)
                | Tell::Event(_)
                | Tell::Heartbeat(_)
                | Tell::ReadClock(_)
                | Tell::Clock(_)
                | Tell::Shorten(_),
                None,
            ) => {
                debug_assert!(false, "the session supervisor was not switched to the new session");
            }
        }
        Ok(())
    }

    async fn stop(links: &mut Links, zk: &mut Option<Zk>) {
        let is_up = matches!(*links.publish.borrow(), SessionStatus::Connected(_));
        links.withdraw();
        let Some(zk) = zk.take().filter(|_| is_up) else { return };
        let mut states = zk.states();
        drop(zk);
        if tokio::time::timeout(CLOSE_WITHIN, states.ended()).await.is_err() {
            tracing::warn!(
                "ZooKeeper did not confirm the end of the session: the session expires on the server"
            );
        }
    }
}

impl Drop for Links {
    /// Withdraws the status. A published status would keep the session of a dead actor and its ephemeral znodes alive.
    fn drop(&mut self) {
        self.withdraw();
    }
}

impl Links {
    fn withdraw(&self) {
        self.publish.send_if_modified(|status| match status {
            SessionStatus::Connected(_) | SessionStatus::Disconnected => {
                *status = SessionStatus::Connecting { error: None };
                true
            }
            SessionStatus::Connecting { .. } | SessionStatus::Refused(_) => false,
        });
    }

    fn forget(&mut self) {
        (self.states, self.beat, self.asked, self.margin) = (None, None, None, None);
        self.shown.hide();
    }
}

/// Converts an event to the type of this host's subscribers.
fn of(event: Event, zk: &Zk) -> SessionEvent {
    match event {
        Event::Connected { failover, .. } => SessionEvent::Connected { zk: zk.clone(), failover },
        Event::Disconnected => SessionEvent::Disconnected { trusted_until: zk.trusted_until() },
        Event::Reconnected => SessionEvent::Reconnected,
        Event::Expired => SessionEvent::Expired,
        Event::Clock { agrees } => SessionEvent::Clock { agrees },
    }
}

fn connect(config: &SessionConfig, me: &Ref<Supervisor>) -> Owned {
    let (config, me) = (config.clone(), me.clone());
    Owned::spawn(async move {
        let letter = match attempt(&config).await {
            Ok((zk, failover, clock)) => {
                let (session, timeout) = (zk.session_id(), zk.session_timeout());
                let made = Made { session, timeout, failover, clock };
                Letter::Session(zk, SessionMsg::Made(Ok(made)))
            }
            Err(failure) => Letter::Mail(SessionMsg::Made(Err(failure)).into()),
        };
        tell(&me, letter);
    })
}

async fn attempt(config: &SessionConfig) -> Result<(Zk, Failover, Option<Reading>), Failure<NamespaceError>> {
    let SessionConfig { connect, access, session_timeout, .. } = config;
    let zk = match config.is_trusted {
        true => connect_trusted(connect, access, *session_timeout).await,
        false => connect_as(connect, access, *session_timeout).await,
    };
    let zk = zk.map_err(refused)?;
    let opened: Result<_, NamespaceError> = async {
        let failover = open_namespace(&zk, config.create_namespace).await?;
        if let Some(strategy) = config.election {
            settle_strategy(&zk, strategy).await?;
        }
        Ok(failover)
    }
    .await;
    match opened {
        Ok(failover) if config.reads_clock.is_some() => {
            let clock = read_clock(&zk).await.map_err(|()| Failure::Transient(CONNECTION_LOST.to_owned()))?;
            Ok((zk, failover, clock))
        }
        Ok(failover) => Ok((zk, failover, None)),
        Err(error) if error.may_pass() => Err(Failure::Transient(chain(&error))),
        Err(error) => Err(Failure::Refused(error)),
    }
}

/// Reads ZooKeeper's clock. `None` if ZooKeeper refuses the write; an error without an answer.
fn read_clock(zk: &Zk) -> impl Future<Output = Result<Option<Reading>, ()>> + Send + use<> {
    let (sent, written) = (clock::now(), zk.read_clock());
    async move {
        match written.await {
            Outcome::Applied(server) => Ok(Some(Reading { sent, server })),
            Outcome::Rejected(Rejection { reason: Reason::NotSent, .. }) | Outcome::Unknown => Err(()),
            Outcome::Rejected(_) => Ok(None),
        }
    }
}

fn refused(error: ConnectError) -> Failure<NamespaceError> {
    match error {
        ConnectError::Unreachable { .. } => Failure::Transient(error.to_string()),
        // The same login would be refused again.
        ConnectError::LoginRefused { who } => Failure::Refused(NamespaceError::LoginRefused { who }),
    }
}

fn follow(zk: &Zk, generation: u64, me: &Ref<Supervisor>) -> Owned {
    let me = me.clone();
    let mut states = zk.states();
    let missed = zk.state();
    let report = move |state| host::send(&me, SessionMsg::State(generation, seen(state)));
    Owned::spawn(async move {
        // Report a change that happened before this task started.
        if missed != SessionState::Connected {
            report(missed);
        }
        loop {
            report(states.changed().await);
        }
    })
}

const fn seen(state: SessionState) -> State {
    match state {
        SessionState::Connected => State::Connected,
        SessionState::Disconnected => State::Disconnected,
        SessionState::Ended => State::Ended,
    }
}

fn ask_timeouts(config: &SessionConfig, generation: u64, me: &Ref<Supervisor>) -> Owned {
    let (config, me) = (config.clone(), me.clone());
    Owned::spawn(async move {
        let SessionConfig { connect, access, session_timeout, .. } = config;
        let shortest = shortest_timeout(&connect, &access, session_timeout).await;
        host::send(&me, SessionMsg::Granted(generation, shortest));
    })
}

fn beat(zk: &Zk, generation: u64, me: &Ref<Supervisor>) -> Owned {
    let (me, sent, answered) = (me.clone(), Instant::now(), zk.heartbeat());
    Owned::spawn(async move {
        let round_trip = answered.await.is_ok().then(|| sent.elapsed());
        host::send(&me, SessionMsg::Answered(generation, round_trip));
    })
}
