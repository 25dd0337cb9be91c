//! Connects the leader's concerns to their neighbours.

use bellwether_actors::Mail;
use bellwether_actors::leader::FencedOut;
use bellwether_actors::leader::assigner::{self, Assigner, AssignerMsg};
use bellwether_actors::leader::expirer::{self, Expirer, ExpirerMsg};
use bellwether_actors::leader::group_joiner::{self, GroupJoiner};
use bellwether_actors::leader::janitor::{self, Janitor};
use bellwether_actors::leader::job_watcher::{self, JobWatcher};
use bellwether_actors::leader::lease_watcher::{self, LeaseWatcher};
use bellwether_actors::leader::promoter::{self, Promoter};
use bellwether_actors::leader::schedule_keeper::{self, ScheduleKeeper};
use bellwether_actors::leader::wing::{LeaderWing, LeaderWingMsg};
use bellwether_actors::leader::worker_registry::{self, WorkerRegistry};

use super::{Address, MemberMsg};
use crate::host::Msg;
use crate::host::concern::Hosting;
use crate::host::context::{Context, Route};
use crate::zk::Zk;

impl Address {
    fn fenced_out(self, cx: &mut Context<'_>) {
        let msg = LeaderWing::mail(self.unit.life, LeaderWingMsg::FencedOut(self.epoch).into());
        cx.tell(Route::MemberToWing, msg);
    }

    fn assigner(self, cx: &mut Context<'_>, route: Route, event: bellwether_core::machine::assigner::Event) {
        cx.tell(route, Assigner::mail(self, AssignerMsg::Event(event).into()));
    }
}

/// Implements [`Hosting`] for members: their messages and their messages to neighbours.
macro_rules! hosted {
    ($($concern:ident($module:ident, $tell:ty), |$address:ident, $cx:ident, $told:pat_param| $carry_out:block)*) => {
        $(impl Hosting for $concern {
            type Address = Address;
            type Links = ();

            fn epoch(address: Address) -> Option<i32> {
                Some(address.epoch)
            }

            fn mail(address: Address, mail: Mail<Self::Msg, $module::Key>) -> Msg {
                Msg::Member(address.unit, MemberMsg::$concern(mail))
            }

            fn tell((): &mut (), $address: Address, _: Option<Zk>, $cx: &mut Context<'_>, $told: $tell) $carry_out
        })*
    };
}

hosted! {
    Assigner(assigner, assigner::Tell), |address, cx, told| {
        match told {
            assigner::Tell::Overdue(jobs) => {
                cx.tell(Route::AssignerToExpirer, Expirer::mail(address, ExpirerMsg::Overdue(jobs).into()));
            }
            assigner::Tell::FencedOut => address.fenced_out(cx),
        }
    }
    JobWatcher(job_watcher, job_watcher::Tell), |address, cx, job_watcher::Tell::Assigner(event)| {
        address.assigner(cx, Route::JobWatcherToAssigner, event);
    }
    LeaseWatcher(lease_watcher, lease_watcher::Tell), |address, cx, told| {
        match told {
            lease_watcher::Tell::Assigner(event) => address.assigner(cx, Route::LeasesToAssigner, event),
            lease_watcher::Tell::FencedOut => address.fenced_out(cx),
        }
    }
    WorkerRegistry(worker_registry, worker_registry::Tell), |address, cx, told| {
        match told {
            worker_registry::Tell::Assigner(event) => address.assigner(cx, Route::RegistryToAssigner, event),
            worker_registry::Tell::FencedOut => address.fenced_out(cx),
        }
    }
    Expirer(expirer, FencedOut), |address, cx, FencedOut| { address.fenced_out(cx) }
    GroupJoiner(group_joiner, FencedOut), |address, cx, FencedOut| { address.fenced_out(cx) }
    Janitor(janitor, FencedOut), |address, cx, FencedOut| { address.fenced_out(cx) }
    Promoter(promoter, FencedOut), |address, cx, FencedOut| { address.fenced_out(cx) }
    ScheduleKeeper(schedule_keeper, FencedOut), |address, cx, FencedOut| { address.fenced_out(cx) }
}
