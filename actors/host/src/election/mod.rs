//! The host of the election: its handle, and the publication of its state.
//!
//! The concern is [`bellwether_actors::election`]. [`Election::may_act`] compares a deadline with the clock, so its
//! answer is right even when the actor or the whole process was suspended. The permission is withdrawn when the actor
//! ends for any reason, including a panic.

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

/// The configuration of this node's part in the election.
#[derive(Debug, Clone)]
pub struct ElectionConfig {
    /// The node's name, shown to operators.
    pub node: NodeId,
    /// The order of the candidates.
    pub strategy: Strategy,
    /// Whether a leader without a connection may act.
    pub policy: Policy,
    /// A random id, created once per process. With it a restarted actor finds the candidate of the actor before it.
    pub identity: Uuid,
}

impl ElectionConfig {
    /// Creates a configuration with the defaults: strategy `queue`, policy `AtMostOne`. Create it once and clone it for
    /// each restart, because it contains the identity.
    #[must_use]
    pub fn new(node: NodeId) -> Self {
        let identity = Uuid::from_u128(fastrand::u128(..));
        Self { node, strategy: Strategy::default(), policy: Policy::default(), identity }
    }
}

/// An active term and its session. A paused term contains no session handle, because a session ends when its last
/// handle is dropped.
#[derive(Debug, Clone)]
pub struct ActiveTerm {
    /// The session that holds the term.
    pub zk: Zk,
    /// The term.
    pub term: Term,
}

/// Receives each state of the leadership. Returns `false` to unsubscribe.
pub type Subscriber = Box<dyn Fn(LeadershipState<ActiveTerm>) -> bool + Send>;

#[cfg(feature = "testing")]
pub(crate) fn roster() -> Vec<crate::testing::Entry> {
    vec![crate::testing::entry::<Hosted<concern::Election>>()]
}

/// A handle of an election actor.
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
    /// Starts the actor, under a supervisor if one is given. It takes part as soon as the session is connected.
    ///
    /// # Errors
    /// Only a failure of the actor system.
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
            may_send: host::always(),
        };
        let actor = start(args, supervisor).await?;
        session.subscribe(actor.clone(), |event| host::session(event, ElectionMsg::Session));
        Ok(Self { actor, leadership, permit, publisher, leavers, callers: Arc::default() })
    }

    /// Subscribes to the states, starting with the current one.
    pub fn subscribe(&self, subscriber: Subscriber) {
        self.publisher.subscribe(subscriber);
    }

    /// Follows the leadership. Of several quick changes a receiver may see only the last.
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<LeadershipState<ActiveTerm>> {
        self.leadership.clone()
    }

    /// Whether this node may act as the leader now.
    #[must_use]
    pub fn may_act(&self) -> bool {
        self.permit.holds()
    }

    /// Whether this node may act as the leader of this epoch now. A member of an earlier term, which has not been stopped
    /// yet, may not.
    #[must_use]
    pub fn may_act_in(&self, epoch: i32) -> bool {
        let leads = matches!(&*self.leadership.borrow(), LeadershipState::Active(active) if active.term.epoch() == epoch);
        leads && self.may_act()
    }

    /// Takes part again after [`Election::step_down`].
    pub fn stand(&self) {
        host::send(&self.actor, ElectionMsg::Stand);
    }

    /// Gives up leadership and candidacy, and does not take part until [`Election::stand`]. Returns when the
    /// candidate's znode is deleted or its session has ended. While ZooKeeper is unreachable, the call waits until one
    /// of the two is known, but the node stops acting immediately.
    ///
    /// # Cancellation
    /// Dropping the future stops only the wait.
    pub async fn step_down(&self) {
        let (done, left) = oneshot::channel();
        let caller = self.callers.fetch_add(1, Ordering::Relaxed);
        self.leavers.wait(caller, done);
        host::send(&self.actor, ElectionMsg::StepDown(caller));
        if left.await.is_err() {
            tracing::debug!("the election actor has ended: its candidate ends with the session");
        }
    }

    /// Reports that the fence rejected a write of this epoch.
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

/// The state that the election's effects need.
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
