//! The election, hosted: its handle, and the telling of its state.
//!
//! The concern is [`bellwether_actors::election`]. [`Election::may_act`] compares a clock, so its answer is right even when
//! the actor, or the whole process, was suspended. The permission is withdrawn when the actor ends in any way, a panic
//! included.

mod publish;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bellwether_actors::election::{self as concern, ElectionMsg, Tell};
use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::machine::election::leadership::{Config, LeadershipState, Policy, Term};
use bellwether_core::name::NodeId;
use bellwether_zk::Zk;
use futures::FutureExt as _;
use ractor::{ActorCell, ActorProcessingErr, SpawnErr};
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use crate::host::{self, Hosted, Hosting, Letter, Ref};
use crate::session::Session;
use crate::spawn::{Started, spawn};

use publish::{Permit, Publisher, Publishing, StepDownCallers};

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

/// An active term with the session that holds it. A paused one holds none: a session ends with its last handle.
#[derive(Debug, Clone)]
pub struct ActiveTerm {
    /// The session that holds the term.
    pub zk: Zk,
    /// The term.
    pub term: Term,
}

/// Gets each state of the leadership; says `false` when it wants no more.
pub type Subscriber = Box<dyn Fn(LeadershipState<ActiveTerm>) -> bool + Send>;

#[cfg(feature = "testing")]
pub(crate) fn roster() -> Vec<crate::testing::Entry> {
    vec![crate::testing::entry::<Hosted<concern::Election>>()]
}

/// Talks to an election actor.
#[derive(Debug, Clone)]
pub struct Election {
    actor: Ref<concern::Election>,
    leadership: watch::Receiver<LeadershipState<ActiveTerm>>,
    permit: Permit,
    publisher: Publisher,
    leavers: StepDownCallers,
    callers: Arc<AtomicU64>,
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
        let (publisher, leadership) = Publisher::new();
        let leavers = StepDownCallers::default();
        let publishing = Publishing::new(publisher.clone(), permit.clone());
        let ElectionConfig { node, strategy, policy, identity } = config;
        let seed = Uuid::from_u128(fastrand::u128(..));
        let args = host::Args {
            zk: None,
            links: Links { publishing, leavers: leavers.clone() },
            args: Config { node, strategy, policy, identity, seed },
        };
        let actor = start(args, supervisor).await?;
        session.subscribe(actor.clone(), |event| host::session(event, ElectionMsg::Session));
        Ok(Self { actor, leadership, permit, publisher, leavers, callers: Arc::default() })
    }

    /// Hears every state from now on, beginning with the present one.
    pub fn subscribe(&self, subscriber: Subscriber) {
        self.publisher.subscribe(subscriber);
    }

    /// Follows the leadership. Changes that come close together are seen as the last of them.
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<LeadershipState<ActiveTerm>> {
        self.leadership.clone()
    }

    /// Whether this node may act as the leader at this moment.
    #[must_use]
    pub fn may_act(&self) -> bool {
        self.permit.holds()
    }

    /// Takes part again after [`Election::step_down`].
    pub fn stand(&self) {
        host::send(&self.actor, ElectionMsg::Stand);
    }

    /// Gives leadership and candidacy up, and stays out until [`Election::stand`]. Returns when the candidate's
    /// znode is deleted or its session is over; while cut off from ZooKeeper that takes until one of them is
    /// known, though the node stops acting at once.
    ///
    /// # Cancellation
    /// Dropping the future stops the waiting only.
    pub async fn step_down(&self) {
        let (done, left) = oneshot::channel();
        let caller = self.callers.fetch_add(1, Ordering::Relaxed);
        self.leavers.wait(caller, done);
        host::send(&self.actor, ElectionMsg::StepDown(caller));
        if left.await.is_err() {
            tracing::debug!("the election actor ended: its candidate ends with the session");
        }
    }

    /// Says that a write of this epoch was rejected by its fence.
    pub fn fenced_out(&self, epoch: i32) {
        host::send(&self.actor, ElectionMsg::FencedOut(epoch));
    }

    /// The actor.
    #[must_use]
    pub fn cell(&self) -> ActorCell {
        self.actor.get_cell()
    }
}

fn start(
    args: host::Args<concern::Election>,
    supervisor: Option<ActorCell>,
) -> Started<Letter<concern::Election>> {
    spawn(Hosted::new(), args, supervisor).boxed()
}

/// What the election's effects need.
pub(crate) struct Links {
    publishing: Publishing,
    leavers: StepDownCallers,
}

impl Hosting for concern::Election {
    type Links = Links;

    async fn tell(
        links: &mut Links,
        zk: Option<&Zk>,
        _: &Ref<Self>,
        tell: Tell,
    ) -> Result<(), ActorProcessingErr> {
        match tell {
            Tell::Standing { may_act_until, .. } => links.publishing.permit(may_act_until),
            Tell::State(LeadershipState::Active(term)) => match zk {
                Some(zk) => {
                    links.publishing.tell(&LeadershipState::Active(ActiveTerm { zk: zk.clone(), term }))
                }
                None => debug_assert!(false, "{term:?} without a session"),
            },
            Tell::State(LeadershipState::Paused { term, until }) => {
                links.publishing.tell(&LeadershipState::Paused { term, until });
            }
            Tell::State(LeadershipState::Inactive(inactive)) => {
                links.publishing.tell(&LeadershipState::Inactive(inactive));
            }
            Tell::Left(caller) => links.leavers.answer(caller),
        }
        Ok(())
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.leavers.clear();
    }
}
