//! The host of the node: the root of the supervision tree, and its handle.
//!
//! The concern is [`bellwether_actors::node`]. A graceful stop drains the worker, gives up leadership, and closes the
//! session last, so no other node waits for a timeout.

use std::sync::Arc;
use std::time::Duration;

use bellwether_actors::Context;
use bellwether_actors::node::{self as concern, Ended, Part, Tell};
use bellwether_core::machine::election::leadership::LeadershipState;
use bellwether_core::placement::OwnStrategies;
use bellwether_core::remedy::ErrorClass;
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

/// The configuration of a node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// The connection to ZooKeeper.
    pub session: SessionConfig,
    /// The role candidate; `None` for a node that is never the leader.
    pub candidate: Option<CandidateConfig>,
    /// The role worker; `None` for a node that runs no jobs.
    pub worker: Option<WorkerConfig>,
}

/// The configuration of a candidate.
#[derive(Debug, Clone)]
pub struct CandidateConfig {
    /// The node's part in the election.
    pub election: ElectionConfig,
    /// The own placement strategies of this process.
    pub strategies: OwnStrategies,
}

/// Why a node ended unexpectedly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The namespace cannot be used.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The node's actors died too often, or could not be started.
    #[error("the node's actors keep failing: {0}")]
    Actors(String),
}

impl NodeError {
    /// Returns the class of the error. The node has ended: start another one.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Namespace(error) => error.class(),
            Self::Actors(_) => ErrorClass::Failed,
        }
    }
}

bellwether_core::impl_remedy!(NodeError);

/// A running node. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Node {
    actor: Ref<concern::Node>,
    parts: watch::Receiver<Parts>,
}

/// The handles of the node's current parts. A restarted part has a new handle.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// The session; `None` while it is restarted.
    pub session: Option<Session>,
    /// The election; `None` for a node that is no candidate.
    pub election: Option<Election>,
    /// The worker; `None` for a node that is no worker.
    pub worker: Option<Worker>,
    /// Set when the node has ended unexpectedly.
    pub error: Option<NodeError>,
}

impl Node {
    /// Starts the supervision tree. The node connects, campaigns and registers afterwards, and again after every loss.
    ///
    /// # Errors
    /// An invalid configuration, or a failure of the actor system.
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

    /// Waits until the node has ended.
    ///
    /// # Errors
    /// The reason if the node ended unexpectedly.
    pub async fn ended(&self) -> Result<(), NodeError> {
        let mut parts = self.parts();
        // The root publishes the last change when its state is dropped.
        while parts.changed().await.is_ok() {}
        parts.borrow().error.clone().map_or(Ok(()), Err)
    }

    /// Whether the node has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.actor.get_status() == ActorStatus::Stopped
    }

    /// Kills the node's actors without a graceful stop, to simulate a fault. Does not wait for their end.
    #[cfg(feature = "testing")]
    pub fn kill(&self) {
        self.actor.kill();
    }

    /// Stops the node without a drain and without giving up leadership first. The registration of its worker is deleted,
    /// so the leader closes the open attempts as lost.
    pub async fn abort(&self) {
        supervise::stop(&self.actor.get_cell(), STOP_WITHIN).await;
    }

    /// Stops the node gracefully: takes no new jobs, finishes running jobs within `grace`, hands back the rest, gives
    /// up leadership, closes the session and ends. Returns `None` for a node that is no worker.
    ///
    /// # Cancellation
    /// Dropping the future leaves the stop incomplete. Call it again.
    pub async fn stop(&self, grace: Duration) -> Option<Drained> {
        let parts = self.parts.borrow().clone();
        let drained = match &parts.worker {
            Some(worker) => Some(worker.drain(grace).await),
            None => None,
        };
        if let Some(election) = &parts.election
            && tokio::time::timeout(STEP_DOWN_WITHIN, election.step_down()).await.is_err()
        {
            tracing::warn!("the node could not give up leadership in time: it ends with the session");
        }
        supervise::stop(&self.actor.get_cell(), STOP_WITHIN).await;
        drained
    }
}

/// The limit for giving up leadership. Without a connection, only the end of the session removes the candidate.
const STEP_DOWN_WITHIN: Duration = Duration::from_secs(5);

/// The limit for stopping the tree. Each of the four children has its own, shorter deadline.
const STOP_WITHIN: Duration = Duration::from_secs(30);

fn start(links: Links) -> Started<Letter<concern::Node>> {
    spawn(Hosted::new(), host::Args { zk: None, links, args: (), may_send: host::always() }, None).boxed()
}

#[cfg(feature = "testing")]
pub(crate) fn roster() -> Vec<crate::testing::Entry> {
    vec![crate::testing::entry::<Hosted<concern::Node>>()]
}

/// The running parts, and the configuration to start them.
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
                let permit = election.clone();
                let may_act = Arc::new(move |epoch| permit.may_act_in(epoch));
                let config = LeaderConfig { strategies: candidate.strategies.clone(), fenced_out, may_act };
                let wing = Leader::start(config, supervisor.clone()).await?;
                follow(&election, wing.clone());
                self.leader = Some(wing);
            }
            (Part::WorkerWing, Some(session), NodeConfig { worker: Some(worker), .. }) => {
                self.worker = Some(Worker::start(worker.clone(), session, Some(supervisor.clone())).await?);
            }
            // This node does not have the role.
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

    /// Finds the part of an actor; `None` for an actor that this node stopped itself.
    fn part_of(&self, who: &ActorCell) -> Option<Part> {
        Part::ALL.into_iter().find(|part| self.cell(*part).is_some_and(|cell| cell.get_id() == who.get_id()))
    }
}

/// Subscribes the leader wing to the leadership.
fn follow(election: &Election, wing: Leader) {
    election.subscribe(Box::new(move |state| match state {
        LeadershipState::Active(ActiveTerm { zk, term }) => wing.active(zk, term.epoch()),
        // The permission to act has ended with the pause, and the members send nothing without it.
        LeadershipState::Paused { .. } => true,
        LeadershipState::Inactive(_) => wing.inactive(),
    }));
}
