//! Hosts the leader wing of a process: the members of a term.
//!
//! The members that were started together form a *unit*. A message to an earlier unit is dropped.

mod links;

use bellwether_actors::Mail;
use bellwether_actors::election::ElectionMsg;
use bellwether_actors::leader::assigner::{self, Assigner, AssignerMsg};
use bellwether_actors::leader::expirer::{self, Expirer, ExpirerMsg};
use bellwether_actors::leader::group_joiner::{self, GroupJoiner, GroupJoinerMsg};
use bellwether_actors::leader::janitor::{self, Janitor, JanitorMsg};
use bellwether_actors::leader::job_watcher::{self, JobWatcher, JobWatcherMsg};
use bellwether_actors::leader::lease_watcher::{self, LeaseWatcher, LeaseWatcherMsg};
use bellwether_actors::leader::promoter::{self, Promoter, PromoterMsg};
use bellwether_actors::leader::schedule_keeper::{self, ScheduleKeeper, ScheduleKeeperMsg};
use bellwether_actors::leader::wing::{Key, LeaderWing, LeaderWingMsg, Tell};
use bellwether_actors::leader::worker_registry::{self, WorkerRegistry, WorkerRegistryMsg};
use bellwether_core::placement::OwnStrategies;

use super::concern::{Hosted, Hosting, Letter};
use super::context::{Context, Route};
use super::{Msg, election};
use crate::zk::Zk;

/// A message to a member of a unit.
pub(crate) enum MemberMsg {
    Assigner(Mail<AssignerMsg, assigner::Key>),
    Expirer(Mail<ExpirerMsg, expirer::Key>),
    GroupJoiner(Mail<GroupJoinerMsg, group_joiner::Key>),
    Janitor(Mail<JanitorMsg, janitor::Key>),
    JobWatcher(Mail<JobWatcherMsg, job_watcher::Key>),
    LeaseWatcher(Mail<LeaseWatcherMsg, lease_watcher::Key>),
    Promoter(Mail<PromoterMsg, promoter::Key>),
    ScheduleKeeper(Mail<ScheduleKeeperMsg, schedule_keeper::Key>),
    WorkerRegistry(Mail<WorkerRegistryMsg, worker_registry::Key>),
}

/// The unit that a member belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Address {
    epoch: i32,
    unit: Unit,
}

/// The life of the wing, and a number within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    life: u64,
    number: u64,
}

struct Members {
    address: Address,
    assigner: Hosted<Assigner>,
    expirer: Hosted<Expirer>,
    group_joiner: Hosted<GroupJoiner>,
    janitor: Hosted<Janitor>,
    job_watcher: Hosted<JobWatcher>,
    lease_watcher: Hosted<LeaseWatcher>,
    promoter: Hosted<Promoter>,
    schedule_keeper: Hosted<ScheduleKeeper>,
    worker_registry: Hosted<WorkerRegistry>,
}

/// The wing's members, and the state that its effects need.
pub(crate) struct Links {
    strategies: OwnStrategies,
    members: Option<Members>,
    units: u64,
    /// The life of the election that the wing was started with.
    election: u64,
    /// The reason why the wing has given up.
    pub(crate) failed: Option<String>,
}

pub(crate) fn start(cx: &mut Context<'_>, strategies: OwnStrategies, life: u64) -> Hosted<LeaderWing> {
    let links = Links { strategies, members: None, units: 0, election: cx.lives.election, failed: None };
    Hosted::supervise(cx, None, life, links, ())
}

impl Links {
    pub(crate) fn has_members(&self) -> bool {
        self.members.is_some()
    }

    pub(crate) fn member(&mut self, cx: &mut Context<'_>, unit: Unit, msg: MemberMsg) {
        let Some(members) = self.members.as_mut().filter(|members| members.address.unit == unit) else {
            return;
        };
        match msg {
            MemberMsg::Assigner(mail) => members.assigner.handle(cx, mail),
            MemberMsg::Expirer(mail) => members.expirer.handle(cx, mail),
            MemberMsg::GroupJoiner(mail) => members.group_joiner.handle(cx, mail),
            MemberMsg::Janitor(mail) => members.janitor.handle(cx, mail),
            MemberMsg::JobWatcher(mail) => members.job_watcher.handle(cx, mail),
            MemberMsg::LeaseWatcher(mail) => members.lease_watcher.handle(cx, mail),
            MemberMsg::Promoter(mail) => members.promoter.handle(cx, mail),
            MemberMsg::ScheduleKeeper(mail) => members.schedule_keeper.handle(cx, mail),
            MemberMsg::WorkerRegistry(mail) => members.worker_registry.handle(cx, mail),
        }
    }

    fn start(&mut self, cx: &mut Context<'_>, life: u64, zk: Zk, epoch: i32) {
        self.units += 1;
        let unit = Unit { life, number: self.units };
        let (address, zk) = (Address { epoch, unit }, Some(zk));
        self.members = Some(Members {
            address,
            expirer: Hosted::start(cx, zk, address, epoch),
            assigner: Hosted::start(cx, zk, address, (epoch, self.strategies.clone())),
            worker_registry: Hosted::start(cx, zk, address, epoch),
            lease_watcher: Hosted::start(cx, zk, address, epoch),
            promoter: Hosted::start(cx, zk, address, epoch),
            schedule_keeper: Hosted::start(cx, zk, address, epoch),
            janitor: Hosted::start(cx, zk, address, epoch),
            group_joiner: Hosted::start(cx, zk, address, epoch),
            job_watcher: Hosted::start(cx, zk, address, ()),
        });
    }
}

impl Address {
    fn resume(self, cx: &mut Context<'_>) {
        let route = Route::WingToMembers;
        cx.tell(route, WorkerRegistry::mail(self, WorkerRegistryMsg::Resume.into()));
        cx.tell(route, Assigner::mail(self, AssignerMsg::Resume.into()));
        cx.tell(route, LeaseWatcher::mail(self, LeaseWatcherMsg::Resume.into()));
        cx.tell(route, Expirer::mail(self, ExpirerMsg::Resume.into()));
        cx.tell(route, Promoter::mail(self, PromoterMsg::Resume.into()));
        cx.tell(route, Janitor::mail(self, JanitorMsg::Resume.into()));
        cx.tell(route, ScheduleKeeper::mail(self, ScheduleKeeperMsg::Resume.into()));
        cx.tell(route, GroupJoiner::mail(self, GroupJoinerMsg::Resume.into()));
        cx.tell(route, JobWatcher::mail(self, JobWatcherMsg::Resume.into()));
    }
}

impl Hosting for LeaderWing {
    type Address = u64;
    type Links = Links;

    fn mail(life: u64, mail: Mail<LeaderWingMsg, Key>) -> Msg {
        Msg::Leader(life, Letter::Mail(mail))
    }

    fn tell(links: &mut Links, life: u64, zk: Option<Zk>, cx: &mut Context<'_>, tell: Tell) {
        let address = links.members.as_ref().map(|members| members.address);
        match tell {
            Tell::Start(epoch) => {
                let zk = zk.expect("a term has the session in which its epoch was claimed");
                links.start(cx, life, zk, epoch);
            }
            Tell::Stop => links.members = None,
            Tell::Resume => {
                if let Some(address) = address {
                    address.resume(cx);
                }
            }
            Tell::FencedOut(epoch) => {
                let msg = election::to(links.election, ElectionMsg::FencedOut(epoch));
                cx.tell(Route::LeaderToElection, msg);
            }
            Tell::Fail(why) => links.failed = Some(why.to_string()),
        }
    }
}
