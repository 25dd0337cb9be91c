//! The host of the leader wing: starts, stops and connects the members of a term.
//!
//! The concerns are those of [`bellwether_actors::leader`].

mod links;

use std::sync::Arc;

use bellwether_actors::leader::assigner::{self, Assigner, AssignerMsg};
use bellwether_actors::leader::expirer::{Expirer, ExpirerMsg};
use bellwether_actors::leader::group_joiner::{GroupJoiner, GroupJoinerMsg};
use bellwether_actors::leader::janitor::{Janitor, JanitorMsg};
use bellwether_actors::leader::job_watcher::{JobWatcher, JobWatcherMsg};
use bellwether_actors::leader::lease_watcher::{LeaseWatcher, LeaseWatcherMsg};
use bellwether_actors::leader::promoter::{Promoter, PromoterMsg};
use bellwether_actors::leader::schedule_keeper::{ScheduleKeeper, ScheduleKeeperMsg};
use bellwether_actors::leader::wing::{LeaderWing, LeaderWingMsg, Tell};
use bellwether_actors::leader::worker_registry::{self, WorkerRegistry, WorkerRegistryMsg};
use bellwether_actors::{Concern, Context};
use bellwether_core::placement::OwnStrategies;
use bellwether_zk::Zk;
use ractor::{ActorCell, ActorProcessingErr, SpawnErr};

use crate::host::{self, Hosted, Hosting, Letter, Ref, send};
use crate::spawn::spawn;
use crate::supervise::stop_all;

use links::{AssignerLinks, Term, ToAssigner};

/// The configuration of the leader wing.
pub struct LeaderConfig {
    /// The own placement strategies of this process.
    pub strategies: OwnStrategies,
    /// Called with the epoch when the fence rejects a write of this term because another leader has claimed.
    pub fenced_out: Box<dyn Fn(i32) + Send + Sync>,
    /// Whether this node may act as the leader of this epoch now. While it may not, the members of the term send nothing.
    pub may_act: Arc<dyn Fn(i32) -> bool + Send + Sync>,
}

/// A handle of a leader wing. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Leader(Ref<LeaderWing>);

impl Leader {
    /// Starts the wing under a supervisor.
    ///
    /// # Errors
    /// Only a failure of the actor system.
    pub async fn start(config: LeaderConfig, supervisor: ActorCell) -> Result<Self, SpawnErr> {
        let links = Links { config, members: None };
        let args = host::Args { zk: None, links, args: (), may_send: host::always() };
        spawn(Hosted::new(), args, Some(supervisor)).await.map(Self)
    }

    /// Starts a new term, or resumes the current one after a pause. Returns `false` when the wing has ended.
    pub fn active(&self, zk: Zk, epoch: i32) -> bool {
        self.0.cast(Letter::Session(zk, LeaderWingMsg::Active(epoch))).is_ok()
    }

    /// Ends the term. Returns `false` when the wing has ended.
    pub fn inactive(&self) -> bool {
        self.0.cast(Letter::Mail(LeaderWingMsg::Inactive.into())).is_ok()
    }

    /// The actor.
    #[must_use]
    pub fn cell(&self) -> ActorCell {
        self.0.get_cell()
    }
}

#[cfg(feature = "testing")]
pub(crate) fn roster() -> Vec<crate::testing::Entry> {
    use crate::testing::entry;
    vec![
        entry::<Hosted<LeaderWing>>(),
        entry::<Hosted<JobWatcher>>(),
        entry::<Hosted<Promoter>>(),
        entry::<Hosted<Janitor>>(),
        entry::<Hosted<ScheduleKeeper>>(),
        entry::<Hosted<GroupJoiner>>(),
        entry::<Hosted<WorkerRegistry>>(),
        entry::<Hosted<LeaseWatcher>>(),
        entry::<Hosted<Assigner>>(),
        entry::<Hosted<Expirer>>(),
    ]
}

/// The wing's members, and the state that its effects need.
pub(crate) struct Links {
    config: LeaderConfig,
    members: Option<Members>,
}

struct Members {
    assigner: Ref<Assigner>,
    janitor: Ref<Janitor>,
    expirer: Ref<Expirer>,
    job_watcher: Ref<JobWatcher>,
    promoter: Ref<Promoter>,
    schedule_keeper: Ref<ScheduleKeeper>,
    group_joiner: Ref<GroupJoiner>,
    worker_registry: Ref<WorkerRegistry>,
    lease_watcher: Ref<LeaseWatcher>,
}

impl Members {
    /// Lists the members in the order in which they are stopped: a member that sends to another one is stopped before
    /// it.
    fn cells(&self) -> [ActorCell; 9] {
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

    fn resume(&self) {
        send(&self.worker_registry, WorkerRegistryMsg::Resume);
        send(&self.assigner, AssignerMsg::Resume);
        send(&self.lease_watcher, LeaseWatcherMsg::Resume);
        send(&self.expirer, ExpirerMsg::Resume);
        send(&self.promoter, PromoterMsg::Resume);
        send(&self.janitor, JanitorMsg::Resume);
        send(&self.schedule_keeper, ScheduleKeeperMsg::Resume);
        send(&self.group_joiner, GroupJoinerMsg::Resume);
        send(&self.job_watcher, JobWatcherMsg::Resume);
    }
}

impl Hosting for LeaderWing {
    type Links = Links;
    const SUPERVISES: bool = true;

    async fn tell(
        links: &mut Links,
        zk: Option<&Zk>,
        me: &Ref<Self>,
        tell: Tell,
    ) -> Result<(), ActorProcessingErr> {
        match tell {
            Tell::Start(epoch) => {
                let zk = zk.expect("a term has the session in which its epoch was claimed");
                links.members = Some(start(me, zk, epoch, &links.config).await?);
            }
            Tell::Stop => links.stop_members().await,
            Tell::Resume => {
                if let Some(members) = &links.members {
                    members.resume();
                }
            }
            Tell::FencedOut(epoch) => (links.config.fenced_out)(epoch),
            Tell::Fail(why) => return Err(why.into()),
        }
        Ok(())
    }

    fn ended(
        &mut self,
        cx: &mut Context<'_, Self>,
        links: &Links,
        who: &ActorCell,
        how: Result<String, ActorProcessingErr>,
    ) {
        let ours = |members: &Members| members.cells().iter().any(|cell| cell.get_id() == who.get_id());
        if links.members.as_ref().is_some_and(ours) {
            self.member_ended(cx, &how.unwrap_or_else(|error| error.to_string()));
        }
    }

    async fn stop(links: &mut Links, _: &mut Option<Zk>) {
        links.stop_members().await;
    }
}

impl Links {
    async fn stop_members(&mut self) {
        if let Some(members) = self.members.take() {
            stop_all(members.cells()).await;
            // Only the leader reports these gauges.
            assigner::clear_gauges();
            worker_registry::clear_gauges();
        }
    }
}

async fn start(
    wing: &Ref<LeaderWing>,
    zk: &Zk,
    epoch: i32,
    config: &LeaderConfig,
) -> Result<Members, SpawnErr> {
    let term = Term { wing: wing.clone(), epoch, may_act: Arc::clone(&config.may_act) };
    let expirer = member::<Expirer>(&term, zk, term.clone(), epoch).await?;
    let links = AssignerLinks { expirer: expirer.clone(), term: term.clone() };
    let assigner = member::<Assigner>(&term, zk, links, (epoch, config.strategies.clone())).await?;
    let to_assigner = ToAssigner { assigner: assigner.clone(), term: term.clone() };
    let worker_registry = member::<WorkerRegistry>(&term, zk, to_assigner.clone(), epoch).await?;
    let lease_watcher = member::<LeaseWatcher>(&term, zk, to_assigner.clone(), epoch).await?;
    let promoter = member::<Promoter>(&term, zk, term.clone(), epoch).await?;
    let schedule_keeper = member::<ScheduleKeeper>(&term, zk, term.clone(), epoch).await?;
    let janitor = member::<Janitor>(&term, zk, term.clone(), epoch).await?;
    let group_joiner = member::<GroupJoiner>(&term, zk, term.clone(), epoch).await?;
    let job_watcher = member::<JobWatcher>(&term, zk, to_assigner, ()).await?;
    Ok(Members {
        assigner,
        janitor,
        expirer,
        job_watcher,
        promoter,
        schedule_keeper,
        group_joiner,
        worker_registry,
        lease_watcher,
    })
}

/// Starts a member. Only this function does, so each member sends requests only while its term may act.
async fn member<C: Hosting>(
    term: &Term,
    zk: &Zk,
    links: C::Links,
    args: <C as Concern>::Args,
) -> Result<Ref<C>, SpawnErr> {
    let permit = term.clone();
    let may_send = Box::new(move || permit.may_send());
    let args = host::Args { zk: Some(zk.clone()), links, args, may_send };
    spawn(Hosted::<C>::new(), args, Some(term.wing.get_cell())).await
}
