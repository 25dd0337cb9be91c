//! The node, hosted: the root of the supervision tree, and the handle on it.
//!
//! The concern is [`bellwether_actors::node`]. A graceful stop drains the worker, gives leadership up, and closes the
//! session last, so that nothing waits for a timeout.

use std::time::Duration;

use bellwether_actors::Context;
use bellwether_actors::node::{self as concern, Ended, Part, Tell};
use bellwether_core::machine::assigner::Strategy;
use bellwether_core::machine::election::leadership::LeadershipState;
use bellwether_zk::{NamespaceError, Zk};
use futures::FutureExt as _;
use ractor::{ActorCell, ActorProcessingErr, ActorStatus, SpawnErr};
use tokio::sync::watch;

use crate::election::{ActiveTerm, Election, ElectionConfig};
use crate::host::{self, Hosted, Hosting, Letter, Ref};
use crate::leader::{Leader, LeaderConfig};
use crate::session::{Session, SessionConfig};
use crate::spawn::{Started, spawn};
use crate::supervise;
use crate::worker::{Drained, Worker, WorkerConfig};

/// What a node is.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Where ZooKeeper is.
    pub session: SessionConfig,
    /// Its part in leadership, if it takes any.
    pub candidate: Option<CandidateConfig>,
    /// Its part in the work, if it takes any.
    pub worker: Option<WorkerConfig>,
}

/// A node that may lead.
#[derive(Debug, Clone)]
pub struct CandidateConfig {
    /// How it campaigns.
    pub election: ElectionConfig,
    /// How it chooses workers when it leads.
    pub strategy: Strategy,
}

/// Why a node ended without being asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// Its namespace cannot be used.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Its actors keep dying, or could not be started.
    #[error("the node's actors keep dying: {0}")]
    Actors(String),
}

/// A running node. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Node {
    actor: Ref<concern::Node>,
    parts: watch::Receiver<Parts>,
}

/// The node's parts, as they are now: a part that was started again is another.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// The session; `None` while it is started again.
    pub session: Option<Session>,
    /// The election.
    pub election: Option<Election>,
    /// The worker.
    pub worker: Option<Worker>,
    /// Set when the node has ended by itself.
    pub error: Option<NodeError>,
}

impl Node {
    /// Starts the tree. Connecting, campaigning and registering happen afterwards, and again after every loss.
    ///
    /// # Errors
    /// A configuration beyond its bounds, or a failure of the actor system.
    pub async fn start(config: NodeConfig) -> Result<Self, SpawnErr> {
        let (publish, parts) = watch::channel(Parts::default());
        let (session, election, leader, worker) = (None, None, None, None);
        let links = Links { config, publish, session, election, leader, worker, stopped: false };
        let actor = start(links).await?;
        Ok(Self { actor, parts })
    }

    /// Follows the parts.
    #[must_use]
    pub fn parts(&self) -> watch::Receiver<Parts> {
        self.parts.clone()
    }

    /// Waits until the node has ended, and says why if it was not asked to.
    ///
    /// # Errors
    /// What it ended of.
    pub async fn ended(&self) -> Result<(), NodeError> {
        let mut parts = self.parts();
        // The root's state says its last word when it is dropped.
        while parts.changed().await.is_ok() {}
        parts.borrow().error.clone().map_or(Ok(()), Err)
    }

    /// Whether it has.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.actor.get_status() == ActorStatus::Stopped
    }

    /// Ends it as nothing but a fault would: its actors are killed where they are. Does not wait for it.
    #[cfg(feature = "testing")]
    pub fn kill(&self) {
        self.actor.kill();
    }

    /// Takes nothing new, finishes what runs within `grace`, hands back the rest, gives leadership up, closes
    /// the session and ends. `None` for a node that was no worker.
    ///
    /// # Cancellation
    /// Dropping the future leaves the node somewhere between: call it again.
    pub async fn stop(&self, grace: Duration) -> Option<Drained> {
        let parts = self.parts.borrow().clone();
        let drained = match &parts.worker {
            Some(worker) => Some(worker.drain(grace).await),
            None => None,
        };
        if let Some(election) = &parts.election
            && tokio::time::timeout(STEP_DOWN_WITHIN, election.step_down()).await.is_err()
        {
            tracing::warn!("leadership was not given up in time: it ends with the session");
        }
        supervise::stop(&self.actor.get_cell(), STOP_WITHIN).await;
        drained
    }
}

/// While cut off, only the session's end takes the candidate away.
const STEP_DOWN_WITHIN: Duration = Duration::from_secs(5);

/// Each of the four children has its own deadline below this.
const STOP_WITHIN: Duration = Duration::from_secs(30);

fn start(links: Links) -> Started<Letter<concern::Node>> {
    spawn(Hosted::new(), host::Args { zk: None, links, args: () }, None).boxed()
}

#[cfg(feature = "testing")]
pub(crate) fn roster() -> Vec<crate::testing::Entry> {
    vec![crate::testing::entry::<Hosted<concern::Node>>()]
}

/// The parts that run, and what starts them.
pub(crate) struct Links {
    config: NodeConfig,
    publish: watch::Sender<Parts>,
    session: Option<Session>,
    election: Option<Election>,
    leader: Option<Leader>,
    worker: Option<Worker>,
    stopped: bool,
}

impl Drop for Links {
    fn drop(&mut self) {
        if !self.stopped {
            let died = || NodeError::Actors("the node's root died".to_owned());
            self.publish.send_modify(|parts| {
                parts.error.get_or_insert_with(died);
            });
        }
    }
}

impl Hosting for concern::Node {
    type Links = Links;
    const SUPERVISES: bool = true;

    async fn tell(
        links: &mut Links,
        _: Option<&Zk>,
        me: &Ref<Self>,
        tell: Tell,
    ) -> Result<(), ActorProcessingErr> {
        let end = match tell {
            Tell::Start(part) => match links.start(part, &me.get_cell()).await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    links.stop_all().await;
                    NodeError::Actors(error.to_string())
                }
            },
            Tell::Stop(part) => {
                links.stop(part).await;
                return Ok(());
            }
            Tell::Started => {
                links.publish();
                return Ok(());
            }
            Tell::Fail(Ended::Died(error)) => NodeError::Actors(error),
            Tell::Fail(Ended::Refused(_)) => match links.publish.borrow().error.clone() {
                Some(refused) => refused,
                None => NodeError::Actors("the namespace was refused".to_owned()),
            },
        };
        links.publish.send_modify(|parts| parts.error = Some(end.clone()));
        Err(end.into())
    }

    fn ended(
        &mut self,
        cx: &mut Context<'_, Self>,
        links: &Links,
        who: &ActorCell,
        how: Result<String, ActorProcessingErr>,
    ) {
        let Some(part) = links.part_of(who) else { return };
        let ended = match how {
            Ok(reason) => Ended::Died(reason),
            Err(error) => match error.downcast_ref::<NamespaceError>() {
                Some(refused) => {
                    let refused = NodeError::Namespace(refused.clone());
                    let text = refused.to_string();
                    links.publish.send_modify(|parts| parts.error = Some(refused));
                    Ended::Refused(text)
                }
                None => Ended::Died(error.to_string()),
            },
        };
        self.part_ended(cx, part, ended);
    }

    async fn stop(links: &mut Links, _: &mut Option<Zk>) {
        links.stop_all().await;
        links.stopped = true;
    }
}

impl Links {
    fn publish(&self) {
        let (session, election, worker) = (self.session.clone(), self.election.clone(), self.worker.clone());
        self.publish.send_replace(Parts { session, election, worker, error: None });
    }

    async fn start(&mut self, part: Part, supervisor: &ActorCell) -> Result<(), ActorProcessingErr> {
        match (part, &self.session, &self.config) {
            (Part::Session, _, config) => {
                self.session = Some(Session::start(config.session.clone(), Some(supervisor.clone())).await?);
            }
            (Part::Election, Some(session), NodeConfig { candidate: Some(candidate), .. }) => {
                let config = candidate.election.clone();
                self.election = Some(Election::start(config, session, Some(supervisor.clone())).await?);
            }
            (Part::LeaderWing, Some(_), NodeConfig { candidate: Some(candidate), .. }) => {
                let Some(election) = self.election.clone() else { return Ok(()) };
                let fence = election.clone();
                let fenced_out = Box::new(move |epoch| fence.fenced_out(epoch));
                let config = LeaderConfig { strategy: candidate.strategy, fenced_out };
                let wing = Leader::start(config, supervisor.clone()).await?;
                follow(&election, wing.clone());
                self.leader = Some(wing);
            }
            (Part::WorkerWing, Some(session), NodeConfig { worker: Some(worker), .. }) => {
                self.worker = Some(Worker::start(worker.clone(), session, Some(supervisor.clone())).await?);
            }
            // Not a role of this node.
            (Part::Election | Part::LeaderWing | Part::WorkerWing, _, _) => {}
        }
        Ok(())
    }

    async fn stop(&mut self, part: Part) {
        let cell = self.cell(part);
        match part {
            Part::Session => self.session = None,
            Part::Election => self.election = None,
            Part::LeaderWing => self.leader = None,
            Part::WorkerWing => self.worker = None,
        }
        supervise::stop_all(cell).await;
    }

    async fn stop_all(&mut self) {
        for part in Part::ALL.into_iter().rev() {
            self.stop(part).await;
        }
    }

    fn cell(&self, part: Part) -> Option<ActorCell> {
        match part {
            Part::Session => self.session.as_ref().map(Session::cell),
            Part::Election => self.election.as_ref().map(Election::cell),
            Part::LeaderWing => self.leader.as_ref().map(Leader::cell),
            Part::WorkerWing => self.worker.as_ref().map(Worker::cell),
        }
    }

    /// Which part an actor is; `None` for one that was stopped here.
    fn part_of(&self, who: &ActorCell) -> Option<Part> {
        Part::ALL.into_iter().find(|part| self.cell(*part).is_some_and(|cell| cell.get_id() == who.get_id()))
    }
}

/// Lets the leader wing follow the leadership.
fn follow(election: &Election, wing: Leader) {
    election.subscribe(Box::new(move |state| match state {
        LeadershipState::Active(ActiveTerm { zk, term }) => wing.active(zk, term.epoch()),
        LeadershipState::Paused { .. } => wing.paused(),
        LeadershipState::Inactive(_) => wing.inactive(),
    }));
}
