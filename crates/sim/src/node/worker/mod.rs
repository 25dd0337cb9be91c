//! The worker wing: feeds core's [`Incarnation`], as `actors/host/src/worker/wing.rs` does.
//!
//! The three children of an incarnation are addressed with its *term*; what is of an older one is dropped. Runs and slots
//! outlive an incarnation, and belong to the process.

mod port;
mod runs;
mod sub_jobs;

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_actors::Mail;
use bellwether_actors::worker::executor_pool::{self, ExecutorMsg, ExecutorPool};
use bellwether_actors::worker::inbox_watcher::{self, InboxMsg, InboxWatcher};
use bellwether_actors::worker::status_reporter::{self, ReporterMsg, StatusReporter};
use bellwether_core::machine::worker::executor::Event as ToExecutor;
use bellwether_core::machine::worker::incarnation::{Drained, Effect, Ephemeral, Event, Incarnation};
use bellwether_core::machine::worker::reporter::Event as ToReporter;
use bellwether_core::name::{Kind, NodeId, Tag, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::Op;
use bellwether_core::wire::{self, decode, encode};
use bellwether_core::worker::WorkerInfo;
use bellwether_core::{path, txn};
use uuid::Uuid;

use self::runs::Runs;
use super::Msg;
use super::context::{Context, Out, Route};
use super::election;
use super::host::{Hosted, Hosting};
use crate::zk::{ReadResult, SessionEvent, Zk, Znode};
use bellwether_actors::election::ElectionMsg;

pub(crate) use self::runs::{RunMsg, kinds};

/// What a worker offers.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) slots: u32,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) tags: Vec<Tag>,
}

pub(crate) enum WorkerMsg {
    Session(SessionEvent),
    /// Finish within the grace, hand back the rest, leave.
    Drain(Duration),
    Committed(u64, Outcome<()>),
    Read(u64, ReadResult<Option<Znode>>),
    Idle(u64),
    TakenForHung(u64),
    Usable(u64, u32),
    Said(u64, Outcome<()>),
    InboxGone(u64),
    /// The watch on the registration is set, or is not: the next look, or the next reconnection, makes good for it.
    Watching(u64),
    /// The registration may have changed.
    Look(u64),
    /// The time of the look with this number has come.
    LookAgain(u64, u64),
    Wake,
    ChildDied,
}

/// To a child of an incarnation.
pub(crate) enum ChildMsg {
    Inbox(Mail<InboxMsg, inbox_watcher::Key>),
    Executor(Mail<ExecutorMsg, executor_pool::Key>),
    Reporter(Mail<ReporterMsg, status_reporter::Key>),
}

pub(crate) struct Wing {
    offer: Offer,
    machine: Incarnation,
    zk: Option<Zk>,
    session: i64,
    term: u64,
    id: WorkerId,
    info: WorkerInfo,
    children: Option<Children>,
    runs: Runs,
    /// The process has told it to drain.
    draining: bool,
    /// Counts the looks that are to come: the last one counts.
    looks: u64,
}

struct Children {
    place: Place,
    inbox: Hosted<InboxWatcher>,
    executor: Hosted<ExecutorPool>,
    reporter: Hosted<StatusReporter>,
}

/// What a child knows of its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    term: u64,
    zk: Zk,
    worker: WorkerId,
}

impl Place {
    fn inbox(self, msg: InboxMsg) -> Msg {
        InboxWatcher::mail(self, msg.into())
    }

    fn executor(self, msg: ExecutorMsg) -> Msg {
        ExecutorPool::mail(self, msg.into())
    }

    fn reporter(self, msg: ReporterMsg) -> Msg {
        StatusReporter::mail(self, msg.into())
    }
}

impl Place {
    fn wing(self, cx: &mut Context<'_>, msg: WorkerMsg) {
        cx.tell(Route::ChildToWorker, Msg::Worker(msg));
    }
}

fn info(offer: &Offer, node: &NodeId, started_at: WallMillis) -> WorkerInfo {
    WorkerInfo {
        node: node.clone(),
        host: "simulated".to_owned(),
        kinds: offer.kinds.clone(),
        leases: BTreeMap::new(),
        slots: offer.slots,
        tags: offer.tags.clone(),
        codec: wire::SCHEMA,
        started_at,
        draining: false,
    }
}

/// Of an operator's drain. A process that is stopped has a grace of its own.
const DRAIN_GRACE: Duration = Duration::from_secs(10);

/// As the actor's: how long a lost hint can delay an operator's drain.
const LOOK: Duration = Duration::from_secs(30);

impl Wing {
    pub(crate) fn new(offer: Offer, node: &NodeId, seed: u64) -> Self {
        Self {
            machine: Incarnation::new(DRAIN_GRACE),
            zk: None,
            session: 0,
            term: 0,
            id: WorkerId::new(Uuid::nil()),
            info: info(&offer, node, WallMillis(0)),
            children: None,
            runs: Runs::new(offer.slots, seed),
            draining: false,
            looks: 0,
            offer,
        }
    }

    pub(crate) fn handle(&mut self, cx: &mut Context<'_>, msg: WorkerMsg) {
        let event = match msg {
            WorkerMsg::Session(SessionEvent::Connected(zk)) => {
                self.zk = Some(zk);
                self.session = cx.view.session;
                Event::Connected
            }
            WorkerMsg::Session(SessionEvent::Disconnected) => Event::Disconnected,
            WorkerMsg::Session(SessionEvent::Reconnected) => Event::Reconnected,
            WorkerMsg::Session(SessionEvent::Expired) => {
                self.zk = None;
                self.term += 1;
                Event::Expired
            }
            WorkerMsg::Drain(grace) => {
                self.draining = true;
                Event::Drain(grace)
            }
            WorkerMsg::Committed(term, outcome) if term == self.term => Event::Committed(outcome),
            WorkerMsg::Read(term, node) if term == self.term => Event::Read(self.ephemeral(node)),
            WorkerMsg::Idle(term) if term == self.term => Event::Idle,
            WorkerMsg::TakenForHung(term) if term == self.term => Event::Anew,
            WorkerMsg::Usable(term, slots) if term == self.term => {
                self.info.slots = slots;
                Event::Anew
            }
            WorkerMsg::Said(term, outcome) if term == self.term => Event::Said(outcome),
            WorkerMsg::InboxGone(term) if term == self.term => Event::InboxGone,
            // What changed before it was there.
            WorkerMsg::Watching(term) if term == self.term => Event::Look,
            WorkerMsg::Look(term) if term == self.term => {
                self.look_later(cx);
                Event::Look
            }
            WorkerMsg::LookAgain(term, number) if term == self.term && number == self.looks => {
                self.look_later(cx);
                Event::Look
            }
            // Of an incarnation that is over, or a look that another one came before.
            WorkerMsg::Committed(..)
            | WorkerMsg::Read(..)
            | WorkerMsg::Idle(_)
            | WorkerMsg::TakenForHung(_)
            | WorkerMsg::Usable(..)
            | WorkerMsg::Said(..)
            | WorkerMsg::InboxGone(_)
            | WorkerMsg::Watching(..)
            | WorkerMsg::Look(_)
            | WorkerMsg::LookAgain(..) => return,
            WorkerMsg::Wake => Event::Wake,
            WorkerMsg::ChildDied if self.children.is_none() => return,
            WorkerMsg::ChildDied => Event::ChildDied,
        };
        let mut effects = Vec::new();
        self.machine.handle(cx.now(), event, &mut effects);
        for effect in effects {
            self.carry_out(cx, effect);
        }
    }

    pub(crate) fn child(&mut self, cx: &mut Context<'_>, term: u64, msg: ChildMsg) {
        let Some(children) = self.children.as_mut().filter(|children| children.place.term == term) else {
            return;
        };
        match msg {
            ChildMsg::Inbox(msg) => children.inbox.handle(cx, msg),
            ChildMsg::Executor(mail) => {
                let drains = matches!(mail.msg, ExecutorMsg::Tell(ToExecutor::Drain(_)));
                children.executor.handle(cx, mail);
                if drains {
                    self.runs.drain();
                }
            }
            ChildMsg::Reporter(msg) => children.reporter.handle(cx, msg),
        }
        self.runs.carry_out(cx, children.place);
    }

    pub(crate) fn run(&mut self, cx: &mut Context<'_>, msg: RunMsg) {
        self.runs.handle(cx, msg);
        if let Some(children) = &mut self.children {
            self.runs.carry_out(cx, children.place);
        }
    }

    fn carry_out(&mut self, cx: &mut Context<'_>, effect: Effect) {
        match effect {
            Effect::Renew => {
                self.term += 1;
                self.id = WorkerId::new(Uuid::from_u128(cx.rng.u128(..)));
                self.info = info(&self.offer, cx.node, cx.wall());
                // What still runs of an incarnation before takes a slot of this one.
                self.info.slots = self.runs.slots().free();
            }
            Effect::Register => self.commit(cx, &txn::register(self.id, &self.info)),
            Effect::MakeParents => {
                let Some(zk) = self.zk else { return };
                for parent in txn::register_parents() {
                    cx.commit(zk, &[parent], |_| Msg::Nothing);
                }
            }
            Effect::Read => {
                let (Some(zk), term) = (self.zk, self.term) else { return };
                cx.get(zk, path::worker(self.id), move |node| Msg::Worker(WorkerMsg::Read(term, node)));
            }
            Effect::Start => {
                self.start_children(cx);
                self.watch(cx);
            }
            Effect::Stop => self.stop_children(cx),
            Effect::Hold => self.each_child(cx, InboxMsg::Hold, ToExecutor::Hold, ToReporter::Hold),
            Effect::Resume => {
                self.each_child(cx, InboxMsg::Resume, ToExecutor::Resume, ToReporter::Resume);
                self.watch(cx);
            }
            Effect::MarkDraining(version) => {
                self.commit(cx, &txn::mark_draining(self.id, &self.info, version));
            }
            Effect::Say(version) => {
                let (Some(zk), term) = (self.zk, self.term) else { return };
                let op = Op::Set { path: path::worker(self.id), data: encode(&self.info), version };
                cx.commit(zk, &[op], move |outcome| Msg::Worker(WorkerMsg::Said(term, outcome)));
            }
            Effect::Drain(until) => {
                if let Some(children) = &self.children {
                    let msg = children.place.executor(ExecutorMsg::Tell(ToExecutor::Drain(until)));
                    cx.tell(Route::WorkerToExecutor, msg);
                }
            }
            Effect::Relist => {
                if let Some(children) = &self.children {
                    cx.tell(Route::WorkerToInbox, children.place.inbox(InboxMsg::Relist));
                }
            }
            Effect::Retire => self.commit(cx, &txn::retire(self.id)),
            Effect::Leave => {
                // A new term: the answer to a write that is still on its way is not the answer to this one.
                self.term += 1;
                self.commit(cx, &[Op::Delete { path: path::worker(self.id), version: None }]);
            }
            Effect::Restarted => {}
            Effect::Drained(Drained::Empty | Drained::Abandoned) => {
                if std::mem::take(&mut self.draining) {
                    // As the node's graceful stop: the worker first, then leadership.
                    cx.tell(Route::SessionToElection, election::to(ElectionMsg::StepDown(0)));
                } else {
                    cx.out.push(Out::Drained);
                }
            }
            Effect::Fail => cx.out.push(Out::Fail),
            Effect::WakeAt(at) => cx.at(at, Msg::Worker(WorkerMsg::Wake)),
        }
    }

    /// Sends a write now. Without a session there is nobody to send it to, and the machine hears of the next.
    fn commit(&self, cx: &mut Context<'_>, ops: &[Op]) {
        let (Some(zk), term) = (self.zk, self.term) else { return };
        cx.commit(zk, ops, move |outcome| Msg::Worker(WorkerMsg::Committed(term, outcome)));
    }

    /// Asks for a watch on the registration, in which an operator may tell the worker to drain.
    fn watch(&mut self, cx: &mut Context<'_>) {
        let (Some(zk), term) = (self.zk, self.term) else { return };
        cx.watch(
            zk,
            &path::worker(self.id),
            move |_| Msg::Worker(WorkerMsg::Watching(term)),
            move |_| Msg::Worker(WorkerMsg::Look(term)),
        );
        self.look_later(cx);
    }

    fn look_later(&mut self, cx: &mut Context<'_>) {
        self.looks += 1;
        cx.after(LOOK, Msg::Worker(WorkerMsg::LookAgain(self.term, self.looks)));
    }

    fn ephemeral(&self, node: ReadResult<Option<Znode>>) -> Option<Ephemeral> {
        self.zk?;
        match node.ok()? {
            None => Some(Ephemeral::Absent),
            Some(node) if node.owner != self.session => Some(Ephemeral::Foreign),
            Some(node) => {
                let draining = decode::<WorkerInfo>(&node.data).is_ok_and(|info| info.draining);
                Some(Ephemeral::Ours { version: node.version, draining })
            }
        }
    }

    fn start_children(&mut self, cx: &mut Context<'_>) {
        let Some(zk) = self.zk else { return };
        let place = Place { term: self.term, zk, worker: self.id };
        self.children = Some(Children {
            place,
            reporter: Hosted::start(cx, Some(zk), place, self.id),
            executor: Hosted::start(
                cx,
                None,
                place,
                executor_pool::Args {
                    runs: self.runs.slots().port(),
                    slots: self.offer.slots,
                    usable: self.info.slots,
                },
            ),
            inbox: Hosted::start(cx, Some(zk), place, self.id),
        });
    }

    fn stop_children(&mut self, cx: &mut Context<'_>) {
        // No look comes any more; a hint of the watch finds nobody who listens.
        self.looks += 1;
        if self.children.take().is_some() {
            self.runs.abandon_all(cx);
        }
    }

    /// The reporter first, so that what is unknown is read back before anything new is written.
    fn each_child(&self, cx: &mut Context<'_>, inbox: InboxMsg, executor: ToExecutor, reporter: ToReporter) {
        if let Some(Children { place, .. }) = &self.children {
            cx.tell(Route::WorkerToReporter, place.reporter(ReporterMsg::Tell(reporter)));
            cx.tell(Route::WorkerToExecutor, place.executor(ExecutorMsg::Tell(executor)));
            cx.tell(Route::WorkerToInbox, place.inbox(inbox));
        }
    }
}

impl Hosting for InboxWatcher {
    type Place = Place;

    fn mail(place: Place, mail: Mail<InboxMsg, inbox_watcher::Key>) -> Msg {
        Msg::Child(place.term, ChildMsg::Inbox(mail))
    }

    fn tell(place: Place, _: Option<Zk>, cx: &mut Context<'_>, tell: inbox_watcher::Tell) {
        use inbox_watcher::Tell;
        match tell {
            Tell::Executor(event) => {
                cx.tell(Route::InboxToExecutor, place.executor(ExecutorMsg::Tell(event)));
            }
            Tell::InboxGone => place.wing(cx, WorkerMsg::InboxGone(place.term)),
            Tell::TakenForHung => place.wing(cx, WorkerMsg::TakenForHung(place.term)),
        }
    }
}

impl Hosting for ExecutorPool {
    type Place = Place;

    fn mail(place: Place, mail: Mail<ExecutorMsg, executor_pool::Key>) -> Msg {
        Msg::Child(place.term, ChildMsg::Executor(mail))
    }

    fn tell(place: Place, _: Option<Zk>, cx: &mut Context<'_>, tell: executor_pool::Tell) {
        use executor_pool::Tell;
        let reporter = |msg| (Route::ExecutorToReporter, place.reporter(msg));
        let inbox = |msg| (Route::ExecutorToInbox, place.inbox(msg));
        let (route, msg) = match tell {
            Tell::Begun(begun) => reporter(ReporterMsg::Begun(begun)),
            Tell::Report(finished) => reporter(ReporterMsg::Report(finished)),
            Tell::Beat(event) => reporter(ReporterMsg::Beat(event)),
            Tell::Closed(jobs) => inbox(InboxMsg::Closed(jobs)),
            Tell::Recheck(jobs) => inbox(InboxMsg::Recheck(jobs)),
            Tell::Idle => return place.wing(cx, WorkerMsg::Idle(place.term)),
            Tell::TakenForHung => return place.wing(cx, WorkerMsg::TakenForHung(place.term)),
            Tell::Usable(slots) => return place.wing(cx, WorkerMsg::Usable(place.term, slots)),
        };
        cx.tell(route, msg);
    }
}

impl Hosting for StatusReporter {
    type Place = Place;

    fn mail(place: Place, mail: Mail<ReporterMsg, status_reporter::Key>) -> Msg {
        Msg::Child(place.term, ChildMsg::Reporter(mail))
    }

    fn tell(place: Place, _: Option<Zk>, cx: &mut Context<'_>, tell: status_reporter::Tell) {
        use status_reporter::Tell;
        match tell {
            Tell::Executor(event) => {
                cx.tell(Route::ReporterToExecutor, place.executor(ExecutorMsg::Tell(event)));
            }
            Tell::TakenForHung => place.wing(cx, WorkerMsg::TakenForHung(place.term)),
        }
    }
}
