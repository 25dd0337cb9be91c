//! The election actor: owns the leadership machine.
//!
//! ```text
//!  session ──events──▶ election ──LeadershipEvent──▶ leader wing, public API
//!                       │    ▲
//!               requests│    │replies, with their ticket
//!                       ▼    │
//!                      ZooKeeper
//! ```
//!
//! Everything is decided in [`bellwether_core::machine::leadership`]. Here its requests are *made* in order, their
//! replies become messages, one timer wakes the machine, and what it says is told to subscribers.
//!
//! Who needs to know *now* whether this node may act asks [`Election::may_act`]: it compares a clock, so its answer is
//! right even when this actor, or the whole process, has been asleep. The permission is withdrawn when the
//! actor ends in any way, a panic included.

mod actor;
mod publish;
mod requests;

use bellwether_core::machine::campaign::{Strategy, Ticket};
use bellwether_core::machine::leadership::{Inactive, Policy, Reply, Term};
use bellwether_core::name::NodeId;
use bellwether_zk::Zk;
use futures::FutureExt as _;
use ractor::{ActorCell, ActorRef, SpawnErr};
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use crate::session::{Session, SessionEvent};
use crate::spawn::{Started, actor, spawn};
use crate::task::tell;

use actor::ElectionActor;
use publish::{Permit, Publisher};

/// How this node takes part.
#[derive(Debug, Clone)]
pub struct ElectionConfig {
    /// The node's name, for people.
    pub node: NodeId,
    /// How candidates are ordered.
    pub strategy: Strategy,
    /// Whether a leader that is cut off acts.
    pub policy: Policy,
    /// Random, made once per process: an actor that is started again finds the candidate of the one before it.
    pub identity: Uuid,
}

impl ElectionConfig {
    /// The defaults for a node: strategy `queue`, policy `AtMostOne`. Made once, and cloned for a restart.
    #[must_use]
    pub fn new(node: NodeId) -> Self {
        let identity = Uuid::from_u128(fastrand::u128(..));
        Self { node, strategy: Strategy::default(), policy: Policy::default(), identity }
    }
}

/// What became of this node's leadership.
#[derive(Debug, Clone)]
pub enum LeadershipEvent {
    /// It leads: a new term, or the present one again after a pause.
    Active {
        /// The session that holds the term.
        zk: Zk,
        /// The term.
        term: Term,
    },
    /// It led, and may lead on: the connection is lost.
    Paused {
        /// The term.
        term: Term,
    },
    /// It does not lead.
    Inactive(Inactive),
}

/// Gets leadership events; says `false` when it wants no more.
pub type Subscriber = Box<dyn Fn(LeadershipEvent) -> bool + Send>;

/// Messages to the election actor.
pub enum ElectionMsg {
    /// Hear every event from now on, beginning with the present one.
    Subscribe(Subscriber),
    /// Take part.
    Stand,
    /// Give leadership and candidacy up; answered when the candidate is gone from ZooKeeper.
    StepDown(oneshot::Sender<()>),
    /// A write of this epoch was rejected by its fence.
    FencedOut(i32),
    #[doc(hidden)]
    Session(SessionEvent),
    #[doc(hidden)]
    Reply(Ticket, Reply),
    #[doc(hidden)]
    Tick,
}

actor!(ElectionActor, "election", ElectionMsg {
    Subscribe,
    Stand,
    StepDown,
    FencedOut,
    Session => SessionEvent,
    Reply => Reply,
    Tick,
});

#[cfg(feature = "testing")]
pub(crate) fn roster() -> Vec<crate::testing::Entry> {
    vec![crate::testing::entry::<ElectionActor>()]
}

/// Talks to an election actor.
#[derive(Debug, Clone)]
pub struct Election {
    actor: ActorRef<ElectionMsg>,
    leadership: watch::Receiver<LeadershipEvent>,
    permit: Permit,
}

impl Election {
    /// Starts the actor under a supervisor, or by itself, and takes part with the session's first connection.
    ///
    /// # Errors
    /// Only when the actor system itself fails.
    pub async fn start(
        config: ElectionConfig,
        session: &Session,
        supervisor: Option<ActorCell>,
    ) -> Result<Self, SpawnErr> {
        let permit = Permit::default();
        let (publisher, leadership) = Publisher::new(permit.clone());
        let actor = start(config, publisher, supervisor).await?;
        session.subscribe(actor.clone(), ElectionMsg::Session);
        Ok(Self { actor, leadership, permit })
    }

    /// Hears every event from now on, beginning with the present one.
    pub fn subscribe<M: ractor::Message>(
        &self,
        to: ActorRef<M>,
        message: impl Fn(LeadershipEvent) -> M + Send + 'static,
    ) {
        tell(&self.actor, ElectionMsg::Subscribe(Box::new(move |event| to.cast(message(event)).is_ok())));
    }

    /// Follows the leadership. Changes that come close together are seen as the last of them.
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<LeadershipEvent> {
        self.leadership.clone()
    }

    /// Whether this node may act as the leader at this moment.
    #[must_use]
    pub fn may_act(&self) -> bool {
        self.permit.holds()
    }

    /// Takes part again after [`Election::step_down`].
    pub fn stand(&self) {
        tell(&self.actor, ElectionMsg::Stand);
    }

    /// Gives leadership and candidacy up, and stays out until [`Election::stand`]. Returns when the candidate's
    /// znode is deleted or its session is over; while cut off from ZooKeeper that takes until one of them is
    /// known, though the node stops acting at once.
    ///
    /// # Cancellation
    /// Dropping the future stops the waiting only.
    pub async fn step_down(&self) {
        let (done, left) = oneshot::channel();
        tell(&self.actor, ElectionMsg::StepDown(done));
        if left.await.is_err() {
            tracing::debug!("the election actor ended: its candidate ends with the session");
        }
    }

    /// Says that a write of this epoch was rejected by its fence.
    pub fn fenced_out(&self, epoch: i32) {
        tell(&self.actor, ElectionMsg::FencedOut(epoch));
    }

    /// The actor.
    #[must_use]
    pub fn cell(&self) -> ActorCell {
        self.actor.get_cell()
    }
}

fn start(
    config: ElectionConfig,
    publisher: Publisher,
    supervisor: Option<ActorCell>,
) -> Started<ElectionMsg> {
    spawn(ElectionActor, (config, publisher), supervisor).boxed()
}
