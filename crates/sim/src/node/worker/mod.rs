//! The worker wing's place in a process: the children of an incarnation, and the runs and slots of the process, which outlive
//! an incarnation.

mod children;
mod port;
mod runs;
mod sub_jobs;

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_actors::Mail;
use bellwether_actors::election::ElectionMsg;
use bellwether_actors::worker::executor_pool::{self, ExecutorPoolMsg};
use bellwether_actors::worker::status_reporter::StatusReporterMsg;
use bellwether_actors::worker::wing::{Args, Key, Tell, WorkerWing, WorkerWingMsg};
use bellwether_core::machine::worker::executor_pool::Event as ToExecutor;
use bellwether_core::machine::worker::wing::Drained;
use bellwether_core::name::{Kind, NodeId, Tag};
use bellwether_core::time::WallMillis;
use bellwether_core::wire;
use bellwether_core::worker::WorkerInfo;

use self::children::{Children, Place};
use self::runs::Runs;
use super::context::{Context, Out, Route};
use super::host::{Hosted, Hosting, Letter};
use super::{Msg, election};
use crate::zk::Zk;

pub(crate) use self::children::ChildMsg;
pub(crate) use self::runs::{RunMsg, kinds};

/// What a worker offers.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) slots: u32,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) tags: Vec<Tag>,
}

/// The grace of an operator's drain. A process that is stopped has a grace of its own.
const DRAIN_GRACE: Duration = Duration::from_secs(10);

/// A message to the wing.
pub(crate) fn to(msg: WorkerWingMsg) -> Msg {
    Msg::Worker(Letter::Mail(msg.into()))
}

/// What the wing's effects need.
pub(crate) struct Links {
    offer: Offer,
    children: Option<Children>,
    runs: Runs,
    /// The process has told it to drain.
    draining: bool,
}

fn info(offer: &Offer, node: &NodeId) -> WorkerInfo {
    WorkerInfo {
        node: node.clone(),
        host: "simulated".to_owned(),
        kinds: offer.kinds.clone(),
        leases: BTreeMap::new(),
        slots: offer.slots,
        tags: offer.tags.clone(),
        codec: wire::SCHEMA,
        started_at: WallMillis(0),
        draining: false,
    }
}

pub(crate) fn start(cx: &mut Context<'_>, offer: Offer, seed: u64) -> Hosted<WorkerWing> {
    let runs = Runs::new(offer.slots, seed);
    let slots = runs.slots().clone();
    let args = Args {
        info: info(&offer, cx.node),
        drain_grace: DRAIN_GRACE,
        free_slots: Box::new(move || slots.free()),
    };
    let links = Links { offer, children: None, runs, draining: false };
    Hosted::supervise(cx, None, (), links, args)
}

impl Links {
    /// The process tells the worker to drain.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    pub(crate) fn has_children(&self) -> bool {
        self.children.is_some()
    }

    pub(crate) fn child(&mut self, cx: &mut Context<'_>, term: u64, msg: ChildMsg) {
        let Some(children) = self.children.as_mut().filter(|children| children.place.term == term) else {
            return;
        };
        match msg {
            ChildMsg::Inbox(mail) => children.inbox.handle(cx, mail),
            ChildMsg::Executor(mail) => {
                let drains = matches!(mail.msg, ExecutorPoolMsg::Tell(ToExecutor::Drain(_)));
                children.executor.handle(cx, mail);
                if drains {
                    self.runs.drain();
                }
            }
            ChildMsg::Reporter(mail) => children.reporter.handle(cx, mail),
        }
        self.runs.carry_out(cx, children.place);
    }

    pub(crate) fn run(&mut self, cx: &mut Context<'_>, msg: RunMsg) {
        self.runs.handle(cx, msg);
        if let Some(children) = &mut self.children {
            self.runs.carry_out(cx, children.place);
        }
    }

    fn start_children(&mut self, cx: &mut Context<'_>, place: Place, usable: u32) {
        let Place { zk, worker, .. } = place;
        let runs = self.runs.slots().port();
        let args = executor_pool::Args { runs, slots: self.offer.slots, usable };
        self.children = Some(Children {
            place,
            reporter: Hosted::start(cx, Some(zk), place, worker),
            executor: Hosted::start(cx, None, place, args),
            inbox: Hosted::start(cx, Some(zk), place, worker),
        });
    }

    pub(crate) fn stop_children(&mut self, cx: &mut Context<'_>) {
        if self.children.take().is_some() {
            self.runs.abandon_all(cx);
        }
    }
}

impl Hosting for WorkerWing {
    type Place = ();
    type Links = Links;

    fn mail((): (), mail: Mail<WorkerWingMsg, Key>) -> Msg {
        Msg::Worker(Letter::Mail(mail))
    }

    fn tell(links: &mut Links, (): (), zk: Option<Zk>, cx: &mut Context<'_>, tell: Tell) {
        let place = links.children.as_ref().map(|children| children.place);
        match tell {
            Tell::Start { term, worker, usable } => {
                let zk = zk.expect("an incarnation has registered in its session");
                links.start_children(cx, Place { term, zk, worker }, usable);
            }
            Tell::Stop => links.stop_children(cx),
            Tell::Inbox(msg) => {
                if let Some(place) = place {
                    cx.tell(Route::WorkerToInbox, place.inbox(msg));
                }
            }
            Tell::Executor(event) => {
                if let Some(place) = place {
                    cx.tell(Route::WorkerToExecutor, place.executor(ExecutorPoolMsg::Tell(event)));
                }
            }
            Tell::Reporter(event) => {
                if let Some(place) = place {
                    cx.tell(Route::WorkerToReporter, place.reporter(StatusReporterMsg::Tell(event)));
                }
            }
            Tell::Status(..) => {}
            Tell::Drained(Drained::Empty | Drained::Abandoned) => {
                if std::mem::take(&mut links.draining) {
                    // As the node's graceful stop: the worker first, then leadership.
                    cx.tell(Route::SessionToElection, election::to(ElectionMsg::StepDown(0)));
                } else {
                    cx.out.push(Out::Drained);
                }
            }
            Tell::Fail => cx.out.push(Out::Fail),
        }
    }
}
