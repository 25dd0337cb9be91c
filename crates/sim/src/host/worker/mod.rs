//! Hosts the worker wing of a process: the children of an incarnation, and the runs and slots of the wing, which
//! outlive an incarnation. A blocking handler continues after its wing has ended.

mod children;
mod port;
mod runs;
mod sub_jobs;

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_actors::Mail;
use bellwether_actors::worker::executor_pool::{self, ExecutorPoolMsg};
use bellwether_actors::worker::status_reporter::StatusReporterMsg;
use bellwether_actors::worker::takeover::Takeover;
use bellwether_actors::worker::wing::{Args, Key, Tell, WorkerWing, WorkerWingMsg};
use bellwether_core::change::Noted;
use bellwether_core::machine::worker::executor_pool::Event as ToExecutor;
use bellwether_core::machine::worker::wing::Drained;
use bellwether_core::name::{Kind, NodeId, Tag};
use bellwether_core::takeover::Owner;
use bellwether_core::time::WallMillis;
use bellwether_core::wire;
use bellwether_core::worker::{WorkerInfo, WorkerSettings};

use self::children::{Address, Children};
use super::Msg;
use super::concern::{Hosted, Hosting, Letter};
use super::context::{Context, Out, Route};
use crate::zk::Zk;

pub(crate) use self::children::{ChildMsg, Incarnation};
pub(crate) use self::runs::{RunMsg, Runs, kinds};

/// The slots and kinds that a worker offers.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) slots: u32,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) tags: Vec<Tag>,
}

/// Grace period of an operator's drain. The graceful stop of a process has its own.
const DRAIN_GRACE: Duration = Duration::from_secs(10);

/// The state that the wing's effects need.
pub(crate) struct Links {
    children: Option<Children>,
    runs: Runs,
    /// Whether the process drains its worker.
    pub(crate) draining: bool,
    /// Whether the wing has given up.
    pub(crate) failed: bool,
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
        former: vec![],
        owner: Some(OWNER),
        draining: false,
        settings: Noted::default(),
    }
}

/// All simulated workers serve the same remote process.
const OWNER: Owner = Owner([7; 16]);

pub(crate) fn start(
    cx: &mut Context<'_>,
    offer: Offer,
    takeover: Option<Takeover>,
    seed: u64,
    life: u64,
) -> Hosted<WorkerWing> {
    let runs = Runs::new(offer.slots, seed);
    let slots = runs.slots().clone();
    let args = Args {
        info: info(&offer, cx.node),
        drain_grace: DRAIN_GRACE,
        free_slots: Box::new(move || slots.free()),
        takeover,
    };
    let links = Links { children: None, runs, draining: false, failed: false };
    Hosted::supervise(cx, None, life, links, args)
}

impl Links {
    /// What the runs of the current incarnation are, as the process knows that runs them.
    pub(crate) fn held(&self) -> Option<Takeover> {
        let worker = self.children.as_ref()?.address.worker;
        let held = self.runs.held(worker);
        let slots = u32::try_from(held.len()).unwrap_or(u32::MAX);
        Some(Takeover { from: worker, owner: OWNER, held, slots, limits: BTreeMap::new() })
    }

    pub(crate) fn has_children(&self) -> bool {
        self.children.is_some()
    }

    pub(crate) fn child(&mut self, cx: &mut Context<'_>, of: Incarnation, msg: ChildMsg) {
        let Some(children) = self.children.as_mut().filter(|children| children.address.incarnation() == of)
        else {
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
        self.runs.carry_out(cx, children.address);
    }

    pub(crate) fn run(&mut self, cx: &mut Context<'_>, msg: RunMsg) {
        self.runs.handle(cx, msg);
        if let Some(children) = &mut self.children {
            self.runs.carry_out(cx, children.address);
        }
    }

    fn start_children(
        &mut self,
        cx: &mut Context<'_>,
        address: Address,
        former: Vec<bellwether_core::name::WorkerId>,
        usable: u32,
        (slots, settings): (u32, WorkerSettings),
    ) {
        let Address { zk, worker, .. } = address;
        let runs = self.runs.slots().port();
        let args = executor_pool::Args { runs, slots, usable, settings, limits: BTreeMap::new() };
        self.children = Some(Children {
            address,
            reporter: Hosted::start(cx, Some(zk), address, (worker, former)),
            executor: Hosted::start(cx, None, address, args),
            inbox: Hosted::start(cx, Some(zk), address, worker),
        });
    }

    /// Ends the wing. Returns its runs if handler code still runs.
    pub(crate) fn end(mut self, cx: &mut Context<'_>) -> Option<Runs> {
        self.stop_children(cx);
        Some(self.runs).filter(|runs| !runs.is_empty())
    }

    fn stop_children(&mut self, cx: &mut Context<'_>) {
        if self.children.take().is_some() {
            self.runs.abandon_all(cx);
        }
    }
}

impl Hosting for WorkerWing {
    type Address = u64;
    type Links = Links;

    fn mail(life: u64, mail: Mail<WorkerWingMsg, Key>) -> Msg {
        Msg::Worker(life, Letter::Mail(mail))
    }

    fn tell(links: &mut Links, life: u64, zk: Option<Zk>, cx: &mut Context<'_>, tell: Tell) {
        let address = links.children.as_ref().map(|children| children.address);
        match tell {
            Tell::Start { term, worker, former, usable, slots, settings } => {
                let zk = zk.expect("an incarnation has the session in which it is registered");
                let address = Address { life, term, zk, worker };
                links.start_children(cx, address, former, usable, (slots, settings));
            }
            Tell::Stop => links.stop_children(cx),
            Tell::Inbox(msg) => {
                if let Some(address) = address {
                    cx.tell(Route::WorkerToInbox, address.inbox(msg));
                }
            }
            Tell::Executor(event) => {
                if let Some(address) = address {
                    cx.tell(Route::WorkerToExecutor, address.executor(ExecutorPoolMsg::Tell(event)));
                }
            }
            Tell::Settings(slots, settings) => {
                if let Some(address) = address {
                    let msg = ExecutorPoolMsg::Settings(slots, settings);
                    cx.tell(Route::WorkerToExecutor, address.executor(msg));
                }
            }
            Tell::Reporter(event) => {
                if let Some(address) = address {
                    cx.tell(Route::WorkerToReporter, address.reporter(StatusReporterMsg::Tell(event)));
                }
            }
            // The handler of each moved attempt is started as any other, and continues it.
            Tell::TookOver(..) => {}
            Tell::Status(..) => {}
            Tell::Drained(Drained::Empty | Drained::Abandoned) => {
                if std::mem::take(&mut links.draining) {
                    // As in the node's graceful stop: first the worker, then the leadership.
                    cx.tell(Route::PartToNode, Msg::StepDown);
                } else {
                    cx.out.push(Out::Drained);
                }
            }
            Tell::Fail => links.failed = true,
        }
    }
}
