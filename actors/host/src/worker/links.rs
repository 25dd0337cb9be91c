//! The neighbours of a worker's concerns.

use std::sync::{Arc, OnceLock};

use bellwether_actors::worker::executor_pool::{self, ExecutorPool, ExecutorPoolMsg};
use bellwether_actors::worker::inbox_watcher::{self, InboxWatcher, InboxWatcherMsg};
use bellwether_actors::worker::status_reporter::{self, StatusReporter, StatusReporterMsg};
use bellwether_actors::worker::wing::{WorkerWing, WorkerWingMsg};
use bellwether_zk::Zk;
use ractor::ActorProcessingErr;

use crate::host::{Hosting, Ref, send};

/// A neighbour that is started later.
pub(super) type Later<C> = Arc<OnceLock<Ref<C>>>;

fn send_later<C: Hosting>(to: &Later<C>, msg: C::Msg) {
    // A neighbour that is not started yet has no state to update.
    if let Some(to) = to.get() {
        send(to, msg);
    }
}

/// The inbox watcher's neighbours.
pub(crate) struct InboxLinks {
    pub(super) term: u64,
    pub(super) executor: Ref<ExecutorPool>,
    pub(super) wing: Ref<WorkerWing>,
}

impl Hosting for InboxWatcher {
    type Links = InboxLinks;

    async fn tell(
        links: &mut InboxLinks,
        _: Option<&Zk>,
        _: &Ref<Self>,
        told: inbox_watcher::Tell,
    ) -> Result<(), ActorProcessingErr> {
        use inbox_watcher::Tell;
        match told {
            Tell::Executor(event) => send(&links.executor, ExecutorPoolMsg::Tell(event)),
            Tell::InboxGone => send(&links.wing, WorkerWingMsg::InboxGone(links.term)),
            Tell::TakenForHung => send(&links.wing, WorkerWingMsg::TakenForHung(links.term)),
        }
        Ok(())
    }
}

/// The executor pool's neighbours.
pub(crate) struct ExecutorLinks {
    pub(super) term: u64,
    pub(super) inbox: Later<InboxWatcher>,
    pub(super) reporter: Ref<StatusReporter>,
    pub(super) wing: Ref<WorkerWing>,
}

impl Hosting for ExecutorPool {
    type Links = ExecutorLinks;

    async fn tell(
        links: &mut ExecutorLinks,
        _: Option<&Zk>,
        _: &Ref<Self>,
        told: executor_pool::Tell,
    ) -> Result<(), ActorProcessingErr> {
        use executor_pool::Tell;
        match told {
            Tell::Started(begun) => send(&links.reporter, StatusReporterMsg::Started(begun)),
            Tell::Report(finished) => send(&links.reporter, StatusReporterMsg::Report(finished)),
            Tell::Beat(event) => send(&links.reporter, StatusReporterMsg::Beat(event)),
            Tell::Segment(event) => send(&links.reporter, StatusReporterMsg::Segment(event)),
            Tell::Closed(jobs) => send_later(&links.inbox, InboxWatcherMsg::Closed(jobs)),
            Tell::Recheck(jobs) => send_later(&links.inbox, InboxWatcherMsg::Recheck(jobs)),
            Tell::Idle => send(&links.wing, WorkerWingMsg::Idle(links.term)),
            Tell::TakenForHung => send(&links.wing, WorkerWingMsg::TakenForHung(links.term)),
            Tell::NotServed => send(&links.wing, WorkerWingMsg::NotServed(links.term)),
            Tell::Usable(slots) => send(&links.wing, WorkerWingMsg::Usable(links.term, slots)),
        }
        Ok(())
    }
}

/// The status reporter's neighbours.
pub(crate) struct ReporterLinks {
    pub(super) term: u64,
    pub(super) executor: Later<ExecutorPool>,
    pub(super) wing: Ref<WorkerWing>,
}

impl Hosting for StatusReporter {
    type Links = ReporterLinks;

    async fn tell(
        links: &mut ReporterLinks,
        _: Option<&Zk>,
        _: &Ref<Self>,
        told: status_reporter::Tell,
    ) -> Result<(), ActorProcessingErr> {
        use status_reporter::Tell;
        match told {
            Tell::Executor(event) => send_later(&links.executor, ExecutorPoolMsg::Tell(event)),
            Tell::TakenForHung => send(&links.wing, WorkerWingMsg::TakenForHung(links.term)),
        }
        Ok(())
    }
}
