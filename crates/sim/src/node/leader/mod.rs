//! The leader wing and its members, as `actors/src/leader` has them.
//!
//! Members belong to a *unit*: those of a term, started together. What is addressed to an earlier unit is dropped.

mod assigner;
mod expirer;
mod groups;
mod janitor;
mod job_watcher;
mod leases;
mod promoter;
mod registry;
mod schedules;

use std::time::Duration;

use bellwether_core::machine::assigner::Strategy;

use self::assigner::Assigner;
use self::expirer::Expirer;
use self::groups::Groups;
use self::janitor::Janitor;
use self::job_watcher::JobWatcher;
use self::leases::LeaseWatcher;
use self::promoter::Promoter;
use self::registry::Registry;
use self::schedules::Schedules;
use super::Msg;
use super::context::{Context, Route};
use super::election::ElectionMsg;
use crate::zk::Zk;

pub(crate) use self::assigner::AssignerMsg;
pub(crate) use self::expirer::ExpirerMsg;
pub(crate) use self::groups::GroupsMsg;
pub(crate) use self::janitor::JanitorMsg;
pub(crate) use self::job_watcher::JobWatcherMsg;
pub(crate) use self::leases::LeasesMsg;
pub(crate) use self::promoter::PromoterMsg;
pub(crate) use self::registry::RegistryMsg;
pub(crate) use self::schedules::SchedulesMsg;

/// As the actors': how often everything is listed again although nothing seems wrong.
const SWEEP: Duration = Duration::from_secs(15);

/// One claim of leadership.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term {
    pub(crate) zk: Zk,
    pub(crate) epoch: i32,
}

pub(crate) enum LeaderMsg {
    Active(Term),
    Paused,
    Inactive,
    FencedOut(i32),
    /// A member died: all are started again in the same term.
    MemberDied,
}

/// To a member of a unit.
pub(crate) enum MemberMsg {
    Assigner(AssignerMsg),
    Expirer(ExpirerMsg),
    Groups(GroupsMsg),
    Janitor(JanitorMsg),
    JobWatcher(JobWatcherMsg),
    Leases(LeasesMsg),
    Promoter(PromoterMsg),
    Registry(RegistryMsg),
    Schedules(SchedulesMsg),
}

pub(crate) struct Wing {
    strategy: Strategy,
    members: Option<Members>,
    units: u64,
}

struct Members {
    term: Term,
    unit: u64,
    assigner: Assigner,
    expirer: Expirer,
    groups: Groups,
    janitor: Janitor,
    job_watcher: JobWatcher,
    leases: LeaseWatcher,
    promoter: Promoter,
    registry: Registry,
    schedules: Schedules,
}

/// What a member knows of its place.
#[derive(Debug, Clone, Copy)]
struct Place {
    term: Term,
    unit: u64,
}

impl Place {
    fn assigner(self, msg: AssignerMsg) -> Msg {
        Msg::Member(self.unit, MemberMsg::Assigner(msg))
    }

    fn expirer(self, msg: ExpirerMsg) -> Msg {
        Msg::Member(self.unit, MemberMsg::Expirer(msg))
    }

    fn groups(self, msg: GroupsMsg) -> Msg {
        Msg::Member(self.unit, MemberMsg::Groups(msg))
    }

    fn janitor(self, msg: JanitorMsg) -> Msg {
        Msg::Member(self.unit, MemberMsg::Janitor(msg))
    }

    fn job_watcher(self, msg: JobWatcherMsg) -> Msg {
        Msg::Member(self.unit, MemberMsg::JobWatcher(msg))
    }

    fn leases(self, msg: LeasesMsg) -> Msg {
        Msg::Member(self.unit, MemberMsg::Leases(msg))
    }

    fn promoter(self, msg: PromoterMsg) -> Msg {
        Msg::Member(self.unit, MemberMsg::Promoter(msg))
    }

    fn registry(self, msg: RegistryMsg) -> Msg {
        Msg::Member(self.unit, MemberMsg::Registry(msg))
    }

    fn schedules(self, msg: SchedulesMsg) -> Msg {
        Msg::Member(self.unit, MemberMsg::Schedules(msg))
    }

    fn fenced_out(self, cx: &mut Context<'_>) {
        cx.tell(Route::MemberToWing, Msg::Leader(LeaderMsg::FencedOut(self.term.epoch)));
    }
}

impl Wing {
    pub(crate) fn new(strategy: Strategy) -> Self {
        Self { strategy, members: None, units: 0 }
    }

    pub(crate) fn handle(&mut self, cx: &mut Context<'_>, msg: LeaderMsg) {
        match (msg, &self.members) {
            (LeaderMsg::Active(term), Some(members)) if members.term.epoch == term.epoch => {
                members.resume(cx)
            }
            (LeaderMsg::Active(term), _) => self.start(cx, term),
            (LeaderMsg::Paused, Some(members)) => {
                cx.tell(Route::WingToMembers, members.place().assigner(AssignerMsg::Pause));
            }
            (LeaderMsg::Inactive, _) => self.members = None,
            (LeaderMsg::FencedOut(epoch), Some(members)) if members.term.epoch == epoch => {
                self.members = None;
                cx.tell(Route::LeaderToElection, Msg::Election(ElectionMsg::FencedOut(epoch)));
            }
            (LeaderMsg::MemberDied, Some(members)) => {
                let term = members.term;
                self.start(cx, term);
            }
            // Of a term that is over already.
            (LeaderMsg::FencedOut(_) | LeaderMsg::Paused | LeaderMsg::MemberDied, _) => {}
        }
    }

    fn start(&mut self, cx: &mut Context<'_>, term: Term) {
        self.units += 1;
        let unit = self.units;
        let place = Place { term, unit };
        self.members = Some(Members {
            term,
            unit,
            expirer: Expirer::start(cx, place),
            assigner: Assigner::start(cx, place, self.strategy),
            registry: Registry::start(cx, place),
            leases: LeaseWatcher::start(cx, place),
            promoter: Promoter::start(cx, place),
            schedules: Schedules::start(cx, place),
            groups: Groups::start(cx, place),
            janitor: Janitor::start(cx, place),
            job_watcher: JobWatcher::start(cx, place),
        });
    }

    pub(crate) fn member(&mut self, cx: &mut Context<'_>, unit: u64, msg: MemberMsg) {
        let Some(members) = self.members.as_mut().filter(|members| members.unit == unit) else { return };
        match msg {
            MemberMsg::Assigner(msg) => members.assigner.handle(cx, msg),
            MemberMsg::Expirer(msg) => members.expirer.handle(cx, msg),
            MemberMsg::Groups(msg) => members.groups.handle(cx, msg),
            MemberMsg::Janitor(msg) => members.janitor.handle(cx, msg),
            MemberMsg::JobWatcher(msg) => members.job_watcher.handle(cx, msg),
            MemberMsg::Leases(msg) => members.leases.handle(cx, msg),
            MemberMsg::Promoter(msg) => members.promoter.handle(cx, msg),
            MemberMsg::Registry(msg) => members.registry.handle(cx, msg),
            MemberMsg::Schedules(msg) => members.schedules.handle(cx, msg),
        }
    }
}

impl Members {
    fn place(&self) -> Place {
        Place { term: self.term, unit: self.unit }
    }

    fn resume(&self, cx: &mut Context<'_>) {
        let place = self.place();
        cx.tell(Route::WingToMembers, place.registry(RegistryMsg::Resume));
        cx.tell(Route::WingToMembers, place.assigner(AssignerMsg::Resume));
        cx.tell(Route::WingToMembers, place.expirer(ExpirerMsg::Resume));
        cx.tell(Route::WingToMembers, place.leases(LeasesMsg::Resume));
        cx.tell(Route::WingToMembers, place.promoter(PromoterMsg::Resume));
        cx.tell(Route::WingToMembers, place.schedules(SchedulesMsg::Resume));
        cx.tell(Route::WingToMembers, place.groups(GroupsMsg::Resume));
        cx.tell(Route::WingToMembers, place.janitor(JanitorMsg::Resume));
        cx.tell(Route::WingToMembers, place.job_watcher(JobWatcherMsg::Resume));
    }
}
