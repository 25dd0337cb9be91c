//! The leader wing: everything that only a leader does.
//!
//! ```text
//! leader ─┬─ job_watcher      what waits in /queue
//!         ├─ promoter         what waits in /delayed
//!         ├─ janitor          what nobody needs any more
//!         ├─ expirer          ends what may not start any more
//!         ├─ group_joiner     which groups have ended; their joins
//!         ├─ worker_registry  who lives; recovers the jobs of those who do not
//!         ├─ lease_watcher    who lives and gives no sign of it; takes the jobs of those
//!         └─ assigner         which job goes to whom
//! ```
//!
//! The wing exists in Active and Paused. In Paused it keeps what it knows and assigns nothing (nothing can be sent
//! while disconnected, and what recovery or promotion sends before the term is verified is fenced); when the same
//! term is Active again, every actor watches anew and lists again, and what it knew stays warm. With the end
//! of the term everything is dropped: what a leader knows belongs to its term.
//!
//! The actors of a term are one unit: when one dies, all are started again from what ZooKeeper says, within a
//! restart intensity, beyond which the wing fails to its own supervisor.

mod alarm;
mod janitor;
mod kinds;
mod lease_watcher;
mod schedule_keeper;
mod worker_registry;

use std::time::Duration;

use bellwether_actors::Concern;
use bellwether_actors::leader::FencedOut;
use bellwether_actors::leader::assigner::{self, Assigner, AssignerMsg};
use bellwether_actors::leader::expirer::{Expirer, ExpirerMsg};
use bellwether_actors::leader::group_joiner::{GroupJoiner, GroupJoinerMsg};
use bellwether_actors::leader::job_watcher::{self, JobWatcher, JobWatcherMsg};
use bellwether_actors::leader::promoter::{Promoter, PromoterMsg};
use bellwether_core::machine::assigner::Strategy;
use bellwether_core::metric;
use bellwether_zk::Zk;
use metrics::counter;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr, SupervisionEvent};

use crate::host::{self, Hosted, Hosting, Ref};
use crate::spawn::{actor, spawn};
use crate::supervise::{Intensity, stop_all};
use crate::task::tell;

use janitor::{Janitor, JanitorMsg};
use lease_watcher::{LeaseWatcher, LeaseWatcherMsg};
use schedule_keeper::{ScheduleKeeper, ScheduleKeeperMsg};
use worker_registry::{WorkerRegistry, WorkerRegistryMsg};

/// How often everything is listed again although nothing seems wrong: watches are hints, and a hint that was
/// lost, or a resume that was overtaken by the failure it answers, costs at most this long.
pub(crate) const SWEEP: Duration = bellwether_actors::leader::SWEEP;

/// One claim of leadership, as the wing needs it.
#[derive(Debug, Clone)]
pub struct Term {
    /// The session that holds it.
    pub zk: Zk,
    /// The epoch: fences every write.
    pub epoch: i32,
}

/// Messages to the leader wing.
pub enum LeaderMsg {
    /// This node leads: a new term, or the present one again after a pause.
    Active(Term),
    /// The connection is lost; the term may go on.
    Paused,
    /// This node leads no more.
    Inactive,
    #[doc(hidden)]
    FencedOut(i32),
}

/// What the wing needs to know.
pub struct LeaderConfig {
    /// How workers are chosen.
    pub strategy: Strategy,
    /// Called with the epoch when a write of this term was rejected because another leader has claimed.
    pub fenced_out: Box<dyn Fn(i32) + Send + Sync>,
}

/// Starts the wing under a supervisor.
///
/// # Errors
/// Only when the actor system itself fails.
pub async fn start(config: LeaderConfig, supervisor: ActorCell) -> Result<ActorRef<LeaderMsg>, SpawnErr> {
    spawn(LeaderWing, config, Some(supervisor)).await
}

struct LeaderWing;

actor!(LeaderWing, "leader", LeaderMsg { Active, Paused, Inactive, FencedOut }, supervises);

#[cfg(feature = "testing")]
pub(crate) fn roster() -> Vec<crate::testing::Entry> {
    use crate::testing::entry;
    vec![
        entry::<LeaderWing>(),
        entry::<Hosted<JobWatcher>>(),
        entry::<Hosted<Promoter>>(),
        entry::<Janitor>(),
        entry::<ScheduleKeeper>(),
        entry::<Hosted<GroupJoiner>>(),
        entry::<WorkerRegistry>(),
        entry::<LeaseWatcher>(),
        entry::<Hosted<Assigner>>(),
        entry::<Hosted<Expirer>>(),
    ]
}

struct State {
    config: LeaderConfig,
    term: Option<(Term, Members)>,
    restarts: Intensity,
}

struct Members {
    assigner: Ref<Assigner>,
    janitor: ActorRef<JanitorMsg>,
    expirer: Ref<Expirer>,
    job_watcher: Ref<JobWatcher>,
    promoter: Ref<Promoter>,
    schedule_keeper: ActorRef<ScheduleKeeperMsg>,
    group_joiner: Ref<GroupJoiner>,
    worker_registry: ActorRef<WorkerRegistryMsg>,
    lease_watcher: ActorRef<LeaseWatcherMsg>,
}

impl Members {
    fn cells(&self) -> [ActorCell; 9] {
        // In the order in which they stop: whoever feeds goes before whom it feeds.
        [
            self.janitor.get_cell(),
            self.job_watcher.get_cell(),
            self.promoter.get_cell(),
            self.schedule_keeper.get_cell(),
            self.group_joiner.get_cell(),
            self.worker_registry.get_cell(),
            self.lease_watcher.get_cell(),
            self.assigner.get_cell(),
            self.expirer.get_cell(),
        ]
    }
}

impl Actor for LeaderWing {
    type Msg = LeaderMsg;
    type State = State;
    type Arguments = LeaderConfig;

    async fn pre_start(
        &self,
        _: ActorRef<LeaderMsg>,
        config: LeaderConfig,
    ) -> Result<State, ActorProcessingErr> {
        Ok(State { config, term: None, restarts: Intensity::default() })
    }

    async fn handle(
        &self,
        myself: ActorRef<LeaderMsg>,
        message: LeaderMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match (message, &state.term) {
            (LeaderMsg::Active(term), Some((present, members))) if present.epoch == term.epoch => {
                tracing::info!(epoch = term.epoch, "leading on, with what was known");
                members.resume();
            }
            (LeaderMsg::Active(term), _) => {
                state.end_term().await;
                tracing::info!(epoch = term.epoch, "leading");
                let members = state.start_members(&myself, &term).await?;
                state.term = Some((term, members));
            }
            (LeaderMsg::Paused, Some((_, members))) => host::send(&members.assigner, AssignerMsg::Pause),
            (LeaderMsg::Inactive, _) => state.end_term().await,
            (LeaderMsg::FencedOut(epoch), Some((term, _))) if term.epoch == epoch => {
                tracing::warn!(epoch, "another leader has claimed: this term is over");
                counter!(metric::FENCED).increment(1);
                state.end_term().await;
                (state.config.fenced_out)(epoch);
            }
            // Of a term that is over already.
            (LeaderMsg::FencedOut(_) | LeaderMsg::Paused, _) => {}
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<LeaderMsg>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let Some((term, members)) = &state.term else { return Ok(()) };
        let ended = match &event {
            SupervisionEvent::ActorFailed(who, error) => Some((who, error.to_string())),
            SupervisionEvent::ActorTerminated(who, _, reason) => Some((who, format!("stopped: {reason:?}"))),
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => None,
        };
        let Some((who, error)) = ended else { return Ok(()) };
        if !members.cells().iter().any(|cell| cell.get_id() == who.get_id()) {
            // One that was stopped here, or of an earlier term.
            return Ok(());
        }
        tracing::error!(actor = ?who.get_id(), error, "an actor of the leader wing died: starting the wing's actors again");
        counter!(metric::ACTOR_RESTARTS).increment(1);
        state.restarts.note("leader wing")?;
        let term = term.clone();
        state.end_term().await;
        let members = state.start_members(&myself, &term).await?;
        state.term = Some((term, members));
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<LeaderMsg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        state.end_term().await;
        Ok(())
    }
}

impl State {
    async fn end_term(&mut self) {
        if let Some((term, members)) = self.term.take() {
            tracing::info!(epoch = term.epoch, "leading no more");
            stop_all(members.cells()).await;
            assigner::clear_gauges();
            worker_registry::clear_gauges();
        }
    }

    async fn start_members(&self, myself: &ActorRef<LeaderMsg>, term: &Term) -> Result<Members, SpawnErr> {
        let cell = myself.get_cell();
        let fenced = Fenced { wing: myself.clone(), epoch: term.epoch };
        let expirer = member::<Expirer>(&cell, term, &fenced).await?;
        let links = AssignerLinks { expirer: expirer.clone(), fenced: fenced.clone() };
        let args = (term.epoch, self.config.strategy);
        let args = host::Args { zk: Some(term.zk.clone()), links, args };
        let assigner = spawn(Hosted::<Assigner>::new(), args, Some(cell.clone())).await?;
        let args = (term.clone(), assigner.clone(), fenced.clone());
        let worker_registry = spawn(WorkerRegistry, args, Some(cell.clone())).await?;
        let args = (term.clone(), assigner.clone(), fenced.clone());
        let lease_watcher = spawn(LeaseWatcher, args, Some(cell.clone())).await?;
        let promoter = member::<Promoter>(&cell, term, &fenced).await?;
        let args = (term.clone(), fenced.clone());
        let schedule_keeper = spawn(ScheduleKeeper, args, Some(cell.clone())).await?;
        let janitor = spawn(Janitor, (term.clone(), fenced.clone()), Some(cell.clone())).await?;
        let group_joiner = member::<GroupJoiner>(&cell, term, &fenced).await?;
        let links = JobWatcherLinks { assigner: assigner.clone() };
        let args = host::Args { zk: Some(term.zk.clone()), links, args: () };
        let job_watcher = spawn(Hosted::<JobWatcher>::new(), args, Some(cell)).await?;
        Ok(Members {
            assigner,
            expirer,
            janitor,
            job_watcher,
            promoter,
            schedule_keeper,
            group_joiner,
            worker_registry,
            lease_watcher,
        })
    }
}

impl Members {
    fn resume(&self) {
        tell(&self.worker_registry, WorkerRegistryMsg::Resume);
        host::send(&self.assigner, AssignerMsg::Resume);
        tell(&self.lease_watcher, LeaseWatcherMsg::Resume);
        host::send(&self.expirer, ExpirerMsg::Resume);
        host::send(&self.promoter, PromoterMsg::Resume);
        tell(&self.janitor, JanitorMsg::Resume);
        tell(&self.schedule_keeper, ScheduleKeeperMsg::Resume);
        host::send(&self.group_joiner, GroupJoinerMsg::Resume);
        host::send(&self.job_watcher, JobWatcherMsg::Resume);
    }
}

/// Tells the wing that a write of its term was fenced.
#[derive(Clone)]
pub(crate) struct Fenced {
    wing: ActorRef<LeaderMsg>,
    epoch: i32,
}

impl Fenced {
    fn tell(&self) {
        tell(&self.wing, LeaderMsg::FencedOut(self.epoch));
    }
}

/// The assigner's neighbours.
pub(crate) struct AssignerLinks {
    expirer: Ref<Expirer>,
    fenced: Fenced,
}

impl Hosting for Assigner {
    type Links = AssignerLinks;

    async fn tell(
        links: &mut AssignerLinks,
        _: Option<&Zk>,
        _: &Ref<Self>,
        told: assigner::Tell,
    ) -> Result<(), ActorProcessingErr> {
        match told {
            assigner::Tell::Overdue(jobs) => host::send(&links.expirer, ExpirerMsg::Overdue(jobs)),
            assigner::Tell::FencedOut => links.fenced.tell(),
        }
        Ok(())
    }
}

/// The job watcher's neighbours.
pub(crate) struct JobWatcherLinks {
    assigner: Ref<Assigner>,
}

impl Hosting for JobWatcher {
    type Links = JobWatcherLinks;

    async fn tell(
        links: &mut JobWatcherLinks,
        _: Option<&Zk>,
        _: &Ref<Self>,
        job_watcher::Tell::Assigner(event): job_watcher::Tell,
    ) -> Result<(), ActorProcessingErr> {
        host::send(&links.assigner, AssignerMsg::Event(event));
        Ok(())
    }
}

/// Starts a member that has no neighbour but the wing.
async fn member<C>(wing: &ActorCell, term: &Term, fenced: &Fenced) -> Result<Ref<C>, SpawnErr>
where
    C: Hosting<Links = Fenced> + Concern<Args = i32>,
{
    let args = host::Args { zk: Some(term.zk.clone()), links: fenced.clone(), args: term.epoch };
    spawn(Hosted::<C>::new(), args, Some(wing.clone())).await
}

/// Connects members whose only neighbour is the wing.
macro_rules! hosted {
    ($($concern:ty),*) => {
        $(impl Hosting for $concern {
            type Links = Fenced;

            async fn tell(
                fenced: &mut Fenced,
                _: Option<&Zk>,
                _: &Ref<Self>,
                FencedOut: FencedOut,
            ) -> Result<(), ActorProcessingErr> {
                fenced.tell();
                Ok(())
            }
        })*
    };
}

hosted!(Expirer, GroupJoiner, Promoter);
