//! The session supervisor, hosted: its handle, the making of sessions, and its subscribers.
//!
//! The concern is [`bellwether_actors::session`]. The actor holds the ZooKeeper client: a [`Zk`] arrives with the message that
//! it was made. A session ends when its last handle is dropped. So the actor withdraws the published status, which holds a
//! handle, in every case: when it stops, fails, or is killed.

use std::time::{Duration, Instant};

use bellwether_actors::session::{
    self as concern, Args, Failure, Made, Opaque, SessionEvent as Event, SessionMsg, State, Status, Tell,
};
use bellwether_zk::{
    Access, ConnectError, ConnectString, NamespaceError, SessionState, Zk, connect_as, open_namespace,
};
use futures::FutureExt as _;
use ractor::{ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use tokio::sync::watch;

use crate::host::{self, Hosted, Hosting, Letter, Ref};
use crate::margin;
use crate::spawn::{Started, spawn};
use crate::task::{Owned, tell};

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

/// Talks to a session actor.
#[derive(Debug, Clone)]
pub struct Session {
    actor: Ref<Supervisor>,
    status: watch::Receiver<SessionStatus>,
}

impl Session {
    /// Starts the actor under a supervisor, or by itself.
    ///
    /// # Errors
    /// Only when the actor system itself fails: connecting happens afterwards.
    pub async fn start(config: SessionConfig, supervisor: Option<ActorCell>) -> Result<Self, SpawnErr> {
        let (publish, status) = watch::channel(SessionStatus::Connecting { error: None });
        let args = Args { to: config.connect.to_string() };
        let links = Links {
            config,
            publish,
            subscribers: Vec::new(),
            attempt: None,
            states: None,
            beat: None,
            margin: None,
        };
        let actor = start(host::Args { zk: None, links, args }, supervisor).await?;
        Ok(Self { actor, status })
    }

    /// Hears every event from now on, beginning with one that tells the present state.
    pub fn subscribe<M: ractor::Message>(
        &self,
        to: ActorRef<M>,
        message: impl Fn(SessionEvent) -> M + Send + 'static,
    ) {
        let subscriber: Subscriber = Box::new(move |event| to.cast(message(event)).is_ok());
        host::send(&self.actor, SessionMsg::Subscribe(subscriber));
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

/// The concern, with what this host passes through it.
type Supervisor = concern::Session<Passed>;

/// Names the types that pass through the concern.
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

/// What the effects need. The tasks end with the actor.
pub(crate) struct Links {
    config: SessionConfig,
    publish: watch::Sender<SessionStatus>,
    subscribers: Vec<Subscriber>,
    /// Makes a session.
    attempt: Option<Owned>,
    /// Follows the present session's states.
    states: Option<Owned>,
    /// The heartbeat that is under way.
    beat: Option<Owned>,
    /// Shows how close the session is to its end.
    margin: Option<Owned>,
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
                links.margin = Some(margin::show(zk));
                links.states = Some(follow(zk, generation, me));
            }
            (Tell::Event(event), Some(zk)) => {
                let event = of(event, zk);
                links.subscribers.retain(|subscriber| subscriber(event.clone()));
            }
            (Tell::Greet(subscriber, events), zk) => {
                // Without a session there is no event.
                let mut events = events.into_iter().filter_map(|event| Some(of(event, zk?)));
                if events.all(&subscriber) {
                    links.subscribers.push(subscriber);
                }
            }
            (Tell::Heartbeat(generation), Some(zk)) => links.beat = Some(beat(zk, generation, me)),
            (
                Tell::Status(Status::Connected) | Tell::Follow(_) | Tell::Event(_) | Tell::Heartbeat(_),
                None,
            ) => {
                debug_assert!(false, "the session supervisor was not switched to the session that was made");
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
            tracing::warn!("ZooKeeper did not confirm the end of the session: it will time out there");
        }
    }
}

impl Drop for Links {
    /// A published status would keep the session of a dead actor alive, and with it the session's ephemeral znodes.
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
        (self.states, self.beat, self.margin) = (None, None, None);
        margin::hide();
    }
}

/// An event as the subscribers of this host hear it.
fn of(event: Event, zk: &Zk) -> SessionEvent {
    match event {
        Event::Connected { .. } => SessionEvent::Connected { zk: zk.clone() },
        Event::Disconnected => SessionEvent::Disconnected { trusted_until: zk.trusted_until() },
        Event::Reconnected => SessionEvent::Reconnected,
        Event::Expired => SessionEvent::Expired,
    }
}

fn connect(config: &SessionConfig, me: &Ref<Supervisor>) -> Owned {
    let (config, me) = (config.clone(), me.clone());
    Owned::spawn(async move {
        let letter = match attempt(&config).await {
            Ok(zk) => {
                let made = Made { session: zk.session_id(), timeout: zk.session_timeout() };
                Letter::Session(zk, SessionMsg::Made(Ok(made)))
            }
            Err(failure) => Letter::Mail(SessionMsg::Made(Err(failure)).into()),
        };
        tell(&me, letter);
    })
}

async fn attempt(config: &SessionConfig) -> Result<Zk, Failure<NamespaceError>> {
    let zk = connect_as(&config.connect, &config.access, config.session_timeout).await.map_err(refused)?;
    match open_namespace(&zk, config.create_namespace).await {
        Ok(()) => Ok(zk),
        Err(error) if error.may_pass() => Err(Failure::Transient(error.to_string())),
        Err(error) => Err(Failure::Refused(error)),
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
        // What happened since the session was made and before it was followed.
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

fn beat(zk: &Zk, generation: u64, me: &Ref<Supervisor>) -> Owned {
    let (me, sent, answered) = (me.clone(), Instant::now(), zk.heartbeat());
    Owned::spawn(async move {
        let round_trip = answered.await.is_ok().then(|| sent.elapsed());
        host::send(&me, SessionMsg::Answered(generation, round_trip));
    })
}
