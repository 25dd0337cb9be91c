//! The children of an incarnation. They are addressed by its *term*, and dropped with it.

use bellwether_actors::Mail;
use bellwether_actors::worker::executor_pool::{self, ExecutorPool, ExecutorPoolMsg};
use bellwether_actors::worker::inbox_watcher::{self, InboxWatcher, InboxWatcherMsg};
use bellwether_actors::worker::status_reporter::{self, StatusReporter, StatusReporterMsg};
use bellwether_actors::worker::wing::{WorkerWing, WorkerWingMsg};
use bellwether_core::name::WorkerId;

use super::runs::RunMsg;
use crate::host::Msg;
use crate::host::concern::{Hosted, Hosting};
use crate::host::context::{Context, Route};
use crate::zk::Zk;

/// A message to a child of an incarnation.
pub(crate) enum ChildMsg {
    Inbox(Mail<InboxWatcherMsg, inbox_watcher::Key>),
    Executor(Mail<ExecutorPoolMsg, executor_pool::Key>),
    Reporter(Mail<StatusReporterMsg, status_reporter::Key>),
}

pub(super) struct Children {
    pub(super) address: Address,
    pub(super) inbox: Hosted<InboxWatcher>,
    pub(super) executor: Hosted<ExecutorPool>,
    pub(super) reporter: Hosted<StatusReporter>,
}

/// The incarnation that a child belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Address {
    /// The life of the wing.
    pub(super) life: u64,
    pub(super) term: u64,
    pub(super) zk: Zk,
    pub(super) worker: WorkerId,
}

/// The life of the wing, and the term of an incarnation within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Incarnation {
    life: u64,
    term: u64,
}

impl Address {
    pub(super) fn incarnation(self) -> Incarnation {
        Incarnation { life: self.life, term: self.term }
    }

    /// Wraps a message to the runs of the wing.
    pub(super) fn run(self, msg: RunMsg) -> Msg {
        Msg::Run(self.life, msg)
    }

    pub(super) fn inbox(self, msg: InboxWatcherMsg) -> Msg {
        InboxWatcher::mail(self, msg.into())
    }

    pub(super) fn executor(self, msg: ExecutorPoolMsg) -> Msg {
        ExecutorPool::mail(self, msg.into())
    }

    pub(super) fn reporter(self, msg: StatusReporterMsg) -> Msg {
        StatusReporter::mail(self, msg.into())
    }

    fn wing(self, cx: &mut Context<'_>, msg: WorkerWingMsg) {
        cx.tell(Route::ChildToWorker, WorkerWing::mail(self.life, msg.into()));
    }
}

impl Hosting for InboxWatcher {
    type Address = Address;
    type Links = ();

    fn mail(address: Address, mail: Mail<InboxWatcherMsg, inbox_watcher::Key>) -> Msg {
        Msg::Child(address.incarnation(), ChildMsg::Inbox(mail))
    }

    fn tell((): &mut (), address: Address, _: Option<Zk>, cx: &mut Context<'_>, tell: inbox_watcher::Tell) {
        use inbox_watcher::Tell;
        match tell {
            Tell::Executor(event) => {
                cx.tell(Route::InboxToExecutor, address.executor(ExecutorPoolMsg::Tell(event)));
            }
            Tell::InboxGone => address.wing(cx, WorkerWingMsg::InboxGone(address.term)),
            Tell::TakenForHung => address.wing(cx, WorkerWingMsg::TakenForHung(address.term)),
        }
    }
}

impl Hosting for ExecutorPool {
    type Address = Address;
    type Links = ();

    fn mail(address: Address, mail: Mail<ExecutorPoolMsg, executor_pool::Key>) -> Msg {
        Msg::Child(address.incarnation(), ChildMsg::Executor(mail))
    }

    fn tell((): &mut (), address: Address, _: Option<Zk>, cx: &mut Context<'_>, tell: executor_pool::Tell) {
        use executor_pool::Tell;
        let reporter = |msg| (Route::ExecutorToReporter, address.reporter(msg));
        let inbox = |msg| (Route::ExecutorToInbox, address.inbox(msg));
        let (route, msg) = match tell {
            Tell::Started(begun) => reporter(StatusReporterMsg::Started(begun)),
            Tell::Report(finished) => reporter(StatusReporterMsg::Report(finished)),
            Tell::Beat(event) => reporter(StatusReporterMsg::Beat(event)),
            Tell::Segment(event) => reporter(StatusReporterMsg::Segment(event)),
            Tell::Closed(jobs) => inbox(InboxWatcherMsg::Closed(jobs)),
            Tell::Recheck(jobs) => inbox(InboxWatcherMsg::Recheck(jobs)),
            Tell::Idle => return address.wing(cx, WorkerWingMsg::Idle(address.term)),
            Tell::TakenForHung => return address.wing(cx, WorkerWingMsg::TakenForHung(address.term)),
            Tell::NotServed => return address.wing(cx, WorkerWingMsg::NotServed(address.term)),
            Tell::Usable(slots) => return address.wing(cx, WorkerWingMsg::Usable(address.term, slots)),
        };
        cx.tell(route, msg);
    }
}

impl Hosting for StatusReporter {
    type Address = Address;
    type Links = ();

    fn mail(address: Address, mail: Mail<StatusReporterMsg, status_reporter::Key>) -> Msg {
        Msg::Child(address.incarnation(), ChildMsg::Reporter(mail))
    }

    fn tell((): &mut (), address: Address, _: Option<Zk>, cx: &mut Context<'_>, tell: status_reporter::Tell) {
        use status_reporter::Tell;
        match tell {
            Tell::Executor(event) => {
                cx.tell(Route::ReporterToExecutor, address.executor(ExecutorPoolMsg::Tell(event)));
            }
            Tell::TakenForHung => address.wing(cx, WorkerWingMsg::TakenForHung(address.term)),
        }
    }
}
