//! The node: root of the supervision tree.
//!
//! ```text
//! node ─┬─ session      owns the ZooKeeper client
//!       ├─ election     who leads                      } candidate
//!       ├─ leader wing  lives while this node leads    }
//!       └─ worker wing  registers, runs, reports         worker
//! ```
//!
//! *Rest for one*: when a child dies, it and those that build on it are stopped, last first, and started again,
//! first first. Everything builds on the session, the leader wing on the election; the worker wing on neither, so
//! that no running job pays for a fault of leadership. Within a restart intensity; beyond it the node ends with the
//! error, and whoever runs the process decides. A namespace that is refused ends the node at once: starting
//! again would not change it.
//!
//! A graceful stop drains the worker, gives leadership up, and closes the session last, so that nothing waits
//! for a timeout.

use std::time::Duration;

use bellwether_core::machine::assigner::Strategy;
use bellwether_core::metric;
use bellwether_zk::NamespaceError;
use futures::FutureExt as _;
use metrics::counter;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, ActorStatus, SpawnErr, SupervisionEvent};
use tokio::sync::watch;

use crate::election::{Election, ElectionConfig, LeadershipEvent};
use crate::leader::{self, LeaderConfig, LeaderMsg, Term};
use crate::session::{Session, SessionConfig};
use crate::spawn::{Started, actor, spawn};
use crate::supervise::{Intensity, stop_all};
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
    actor: ActorRef<NodeMsg>,
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
        let actor = start(config, publish).await?;
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
        crate::supervise::stop(&self.actor.get_cell(), STOP_WITHIN).await;
        drained
    }
}

/// While cut off, only the session's end takes the candidate away.
const STEP_DOWN_WITHIN: Duration = Duration::from_secs(5);

/// Each of the four children has its own deadline below this.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// The root hears only of its children.
enum NodeMsg {}

fn start(config: NodeConfig, publish: watch::Sender<Parts>) -> Started<NodeMsg> {
    spawn(Root, (config, publish), None).boxed()
}

struct Root;

actor!(Root, "node", NodeMsg {}, supervises);

#[cfg(feature = "testing")]
pub(crate) fn roster() -> Vec<crate::testing::Entry> {
    vec![crate::testing::entry::<Root>()]
}

struct State {
    config: NodeConfig,
    publish: watch::Sender<Parts>,
    session: Option<Session>,
    election: Option<Election>,
    leader: Option<ActorRef<LeaderMsg>>,
    worker: Option<Worker>,
    restarts: Intensity,
    stopped: bool,
}

impl Drop for State {
    fn drop(&mut self) {
        if !self.stopped {
            let died = || NodeError::Actors("the node's root died".to_owned());
            self.publish.send_modify(|parts| {
                parts.error.get_or_insert_with(died);
            });
        }
    }
}

/// The children in the order in which they are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Session,
    Election,
    LeaderWing,
    WorkerWing,
}

impl Part {
    fn builds_on(self, other: Self) -> bool {
        self == other || other == Self::Session || (other, self) == (Self::Election, Self::LeaderWing)
    }
}

const PARTS: [Part; 4] = [Part::Session, Part::Election, Part::LeaderWing, Part::WorkerWing];

impl Actor for Root {
    type Msg = NodeMsg;
    type State = State;
    type Arguments = (NodeConfig, watch::Sender<Parts>);

    async fn pre_start(
        &self,
        myself: ActorRef<NodeMsg>,
        (config, publish): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let mut state = State {
            config,
            publish,
            session: None,
            election: None,
            leader: None,
            worker: None,
            restarts: Intensity::default(),
            stopped: false,
        };
        state.start_from(Part::Session, &myself.get_cell()).await?;
        Ok(state)
    }

    async fn handle(
        &self,
        _: ActorRef<NodeMsg>,
        message: NodeMsg,
        _: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {}
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<NodeMsg>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let (who, error) = match event {
            SupervisionEvent::ActorFailed(who, error) => (who, error),
            SupervisionEvent::ActorTerminated(who, _, reason) => (who, reason.unwrap_or_default().into()),
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => return Ok(()),
        };
        let Some(part) = state.part_of(&who) else { return Ok(()) };
        let end = match error.downcast_ref::<NamespaceError>() {
            Some(refused) => NodeError::Namespace(refused.clone()),
            None => {
                tracing::error!(?part, %error, "a part of the node died: starting it and what builds on it again");
                counter!(metric::ACTOR_RESTARTS).increment(1);
                match state.restart(part, &myself.get_cell()).await {
                    Ok(()) => return Ok(()),
                    Err(error) => NodeError::Actors(error.to_string()),
                }
            }
        };
        state.stop_from(Part::Session).await;
        state.publish.send_modify(|parts| parts.error = Some(end.clone()));
        Err(end.into())
    }

    async fn post_stop(&self, _: ActorRef<NodeMsg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        state.stop_from(Part::Session).await;
        state.stopped = true;
        Ok(())
    }
}

impl State {
    async fn restart(&mut self, part: Part, supervisor: &ActorCell) -> Result<(), ActorProcessingErr> {
        self.restarts.note("the node")?;
        self.stop_from(part).await;
        self.start_from(part, supervisor).await
    }

    async fn start_from(&mut self, first: Part, supervisor: &ActorCell) -> Result<(), ActorProcessingErr> {
        for part in PARTS.into_iter().filter(|part| part.builds_on(first)) {
            self.start(part, supervisor).await?;
        }
        let (session, election, worker) = (self.session.clone(), self.election.clone(), self.worker.clone());
        self.publish.send_replace(Parts { session, election, worker, error: None });
        Ok(())
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
                let wing = leader::start(config, supervisor.clone()).await?;
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

    async fn stop_from(&mut self, first: Part) {
        for part in PARTS.into_iter().rev().filter(|part| part.builds_on(first)) {
            let cell = self.cell(part);
            match part {
                Part::Session => self.session = None,
                Part::Election => self.election = None,
                Part::LeaderWing => self.leader = None,
                Part::WorkerWing => self.worker = None,
            }
            stop_all(cell).await;
        }
    }

    fn cell(&self, part: Part) -> Option<ActorCell> {
        match part {
            Part::Session => self.session.as_ref().map(Session::cell),
            Part::Election => self.election.as_ref().map(Election::cell),
            Part::LeaderWing => self.leader.as_ref().map(ActorRef::get_cell),
            Part::WorkerWing => self.worker.as_ref().map(Worker::cell),
        }
    }

    /// Which part an actor is; `None` for one that was stopped here.
    fn part_of(&self, who: &ActorCell) -> Option<Part> {
        PARTS.into_iter().find(|part| self.cell(*part).is_some_and(|cell| cell.get_id() == who.get_id()))
    }
}

/// Lets the leader wing live with the leadership.
fn follow(election: &Election, wing: ActorRef<LeaderMsg>) {
    election.subscribe(Box::new(move |event| {
        let msg = match event {
            LeadershipEvent::Active { zk, term } => LeaderMsg::Active(Term { zk, epoch: term.epoch() }),
            LeadershipEvent::Paused { .. } => LeaderMsg::Paused,
            LeadershipEvent::Inactive(_) => LeaderMsg::Inactive,
        };
        wing.cast(msg).is_ok()
    }));
}
