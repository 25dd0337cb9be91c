//! The leader wing and its members, as `actors/host/src/leader` has them.
//!
//! Members belong to a *unit*: those of a term, started together. What is addressed to an earlier unit is dropped.

mod janitor;
mod leases;
mod registry;
mod schedules;

use std::time::Duration;

use bellwether_actors::Mail;
use bellwether_actors::leader::FencedOut;
use bellwether_actors::leader::assigner::{self, Assigner};
use bellwether_actors::leader::expirer::{self, Expirer, ExpirerMsg};
use bellwether_actors::leader::group_joiner::{self, GroupJoiner, GroupJoinerMsg};
use bellwether_actors::leader::job_watcher::{self, JobWatcher, JobWatcherMsg};
use bellwether_actors::leader::promoter::{self, Promoter, PromoterMsg};
use bellwether_core::machine::assigner::Strategy;

use self::janitor::Janitor;
use self::leases::LeaseWatcher;
use self::registry::Registry;
use self::schedules::Schedules;
use super::Msg;
use super::context::{Context, Route};
use super::election;
use super::host::{Hosted, Hosting};
use crate::zk::Zk;
use bellwether_actors::election::ElectionMsg;

pub(crate) use bellwether_actors::leader::assigner::AssignerMsg;

pub(crate) use self::janitor::JanitorMsg;
pub(crate) use self::leases::LeasesMsg;
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
    Assigner(Mail<AssignerMsg, assigner::Key>),
    Expirer(Mail<ExpirerMsg, expirer::Key>),
    GroupJoiner(Mail<GroupJoinerMsg, group_joiner::Key>),
    Janitor(JanitorMsg),
    JobWatcher(Mail<JobWatcherMsg, job_watcher::Key>),
    Leases(LeasesMsg),
    Promoter(Mail<PromoterMsg, promoter::Key>),
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
    assigner: Hosted<Assigner>,
    expirer: Hosted<Expirer>,
    group_joiner: Hosted<GroupJoiner>,
    janitor: Janitor,
    job_watcher: Hosted<JobWatcher>,
    leases: LeaseWatcher,
    promoter: Hosted<Promoter>,
    registry: Registry,
    schedules: Schedules,
}

/// What a member knows of its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    term: Term,
    unit: u64,
}

impl Place {
    fn assigner(self, msg: AssignerMsg) -> Msg {
        Assigner::mail(self, msg.into())
    }

    fn expirer(self, msg: ExpirerMsg) -> Msg {
        Expirer::mail(self, msg.into())
    }

    fn group_joiner(self, msg: GroupJoinerMsg) -> Msg {
        GroupJoiner::mail(self, msg.into())
    }

    fn janitor(self, msg: JanitorMsg) -> Msg {
        Msg::Member(self.unit, MemberMsg::Janitor(msg))
    }

    fn job_watcher(self, msg: JobWatcherMsg) -> Msg {
        JobWatcher::mail(self, msg.into())
    }

    fn leases(self, msg: LeasesMsg) -> Msg {
        Msg::Member(self.unit, MemberMsg::Leases(msg))
    }

    fn promoter(self, msg: PromoterMsg) -> Msg {
        Promoter::mail(self, msg.into())
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
                cx.tell(Route::LeaderToElection, election::to(ElectionMsg::FencedOut(epoch)));
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
            expirer: Hosted::start(cx, Some(term.zk), place, term.epoch),
            assigner: Hosted::start(cx, Some(term.zk), place, (term.epoch, self.strategy)),
            registry: Registry::start(cx, place),
            leases: LeaseWatcher::start(cx, place),
            promoter: Hosted::start(cx, Some(term.zk), place, term.epoch),
            schedules: Schedules::start(cx, place),
            group_joiner: Hosted::start(cx, Some(term.zk), place, term.epoch),
            janitor: Janitor::start(cx, place),
            job_watcher: Hosted::start(cx, Some(term.zk), place, ()),
        });
    }

    pub(crate) fn member(&mut self, cx: &mut Context<'_>, unit: u64, msg: MemberMsg) {
        let Some(members) = self.members.as_mut().filter(|members| members.unit == unit) else { return };
        match msg {
            MemberMsg::Assigner(msg) => members.assigner.handle(cx, msg),
            MemberMsg::Expirer(msg) => members.expirer.handle(cx, msg),
            MemberMsg::GroupJoiner(msg) => members.group_joiner.handle(cx, msg),
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
        cx.tell(Route::WingToMembers, place.group_joiner(GroupJoinerMsg::Resume));
        cx.tell(Route::WingToMembers, place.janitor(JanitorMsg::Resume));
        cx.tell(Route::WingToMembers, place.job_watcher(JobWatcherMsg::Resume));
    }
}

impl Hosting for Assigner {
    type Place = Place;
    type Links = ();

    fn mail(place: Place, mail: Mail<AssignerMsg, assigner::Key>) -> Msg {
        Msg::Member(place.unit, MemberMsg::Assigner(mail))
    }

    fn tell((): &mut (), place: Place, _: Option<Zk>, cx: &mut Context<'_>, told: assigner::Tell) {
        match told {
            assigner::Tell::Overdue(jobs) => {
                cx.tell(Route::AssignerToExpirer, place.expirer(ExpirerMsg::Overdue(jobs)));
            }
            assigner::Tell::FencedOut => place.fenced_out(cx),
        }
    }
}

impl Hosting for JobWatcher {
    type Place = Place;
    type Links = ();

    fn mail(place: Place, mail: Mail<JobWatcherMsg, job_watcher::Key>) -> Msg {
        Msg::Member(place.unit, MemberMsg::JobWatcher(mail))
    }

    fn tell(
        (): &mut (),
        place: Place,
        _: Option<Zk>,
        cx: &mut Context<'_>,
        job_watcher::Tell::Assigner(event): job_watcher::Tell,
    ) {
        cx.tell(Route::JobWatcherToAssigner, place.assigner(AssignerMsg::Event(event)));
    }
}

/// Connects members whose only neighbour is the wing.
macro_rules! hosted {
    ($($concern:ident($key:ty)),*) => {
        $(impl Hosting for $concern {
            type Place = Place;
            type Links = ();

            fn mail(place: Place, mail: Mail<Self::Msg, $key>) -> Msg {
                Msg::Member(place.unit, MemberMsg::$concern(mail))
            }

            fn tell((): &mut (), place: Place, _: Option<Zk>, cx: &mut Context<'_>, FencedOut: FencedOut) {
                place.fenced_out(cx);
            }
        })*
    };
}

hosted!(Expirer(expirer::Key), GroupJoiner(group_joiner::Key), Promoter(promoter::Key));
