//! The neighbours of the leader's concerns.

use std::sync::Arc;

use bellwether_actors::leader::FencedOut;
use bellwether_actors::leader::assigner::{self, Assigner, AssignerMsg};
use bellwether_actors::leader::expirer::{Expirer, ExpirerMsg};
use bellwether_actors::leader::group_joiner::GroupJoiner;
use bellwether_actors::leader::janitor::Janitor;
use bellwether_actors::leader::job_watcher::{self, JobWatcher};
use bellwether_actors::leader::lease_watcher::{self, LeaseWatcher};
use bellwether_actors::leader::promoter::Promoter;
use bellwether_actors::leader::schedule_keeper::ScheduleKeeper;
use bellwether_actors::leader::wing::{LeaderWing, LeaderWingMsg};
use bellwether_actors::leader::worker_registry::{self, WorkerRegistry};
use bellwether_zk::Zk;
use ractor::ActorProcessingErr;

use crate::host::{Hosting, Ref, send};

/// The term of a member.
#[derive(Clone)]
pub(crate) struct Term {
    pub(super) wing: Ref<LeaderWing>,
    pub(super) epoch: i32,
    pub(super) may_act: Arc<dyn Fn(i32) -> bool + Send + Sync>,
}

impl Term {
    /// Informs the wing that the fence rejected a write of the term.
    fn fenced_out(&self) {
        send(&self.wing, LeaderWingMsg::FencedOut(self.epoch));
    }

    /// Whether a member may send a request: a paused term begins no new write (S5).
    pub(super) fn may_send(&self) -> bool {
        (self.may_act)(self.epoch)
    }
}

/// The assigner's neighbours.
pub(crate) struct AssignerLinks {
    pub(super) expirer: Ref<Expirer>,
    pub(super) term: Term,
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
            assigner::Tell::Overdue(jobs) => send(&links.expirer, ExpirerMsg::Overdue(jobs)),
            assigner::Tell::FencedOut => links.term.fenced_out(),
        }
        Ok(())
    }
}

/// The neighbours of a member that sends events to the assigner.
#[derive(Clone)]
pub(crate) struct ToAssigner {
    pub(super) assigner: Ref<Assigner>,
    pub(super) term: Term,
}

impl Hosting for LeaseWatcher {
    type Links = ToAssigner;

    async fn tell(
        links: &mut ToAssigner,
        _: Option<&Zk>,
        _: &Ref<Self>,
        told: lease_watcher::Tell,
    ) -> Result<(), ActorProcessingErr> {
        match told {
            lease_watcher::Tell::Assigner(event) => send(&links.assigner, AssignerMsg::Event(event)),
            lease_watcher::Tell::FencedOut => links.term.fenced_out(),
        }
        Ok(())
    }
}

impl Hosting for WorkerRegistry {
    type Links = ToAssigner;

    async fn tell(
        links: &mut ToAssigner,
        _: Option<&Zk>,
        _: &Ref<Self>,
        told: worker_registry::Tell,
    ) -> Result<(), ActorProcessingErr> {
        match told {
            worker_registry::Tell::Assigner(event) => send(&links.assigner, AssignerMsg::Event(event)),
            worker_registry::Tell::FencedOut => links.term.fenced_out(),
        }
        Ok(())
    }
}

impl Hosting for JobWatcher {
    type Links = ToAssigner;

    async fn tell(
        links: &mut ToAssigner,
        _: Option<&Zk>,
        _: &Ref<Self>,
        job_watcher::Tell::Assigner(event): job_watcher::Tell,
    ) -> Result<(), ActorProcessingErr> {
        send(&links.assigner, AssignerMsg::Event(event));
        Ok(())
    }
}

/// Connects members whose only neighbour is the wing.
macro_rules! hosted {
    ($($concern:ty),*) => {
        $(impl Hosting for $concern {
            type Links = Term;

            async fn tell(
                term: &mut Term,
                _: Option<&Zk>,
                _: &Ref<Self>,
                FencedOut: FencedOut,
            ) -> Result<(), ActorProcessingErr> {
                term.fenced_out();
                Ok(())
            }
        })*
    };
}

hosted!(Expirer, GroupJoiner, Janitor, Promoter, ScheduleKeeper);
