//! The wing's actor.
//!
//! However it ends, its ephemeral goes with it: the session belongs to another actor and lives on, and a leader
//! would believe in an incarnation that nobody is.

use std::sync::Arc;
use std::time::Duration;

use bellwether_actors::Concern;
use bellwether_actors::worker::executor_pool::{self, ExecutorMsg, ExecutorPool};
use bellwether_actors::worker::inbox_watcher::{InboxMsg, InboxWatcher};
use bellwether_actors::worker::pulse::{Notify, Word};
use bellwether_actors::worker::status_reporter::{ReporterMsg, StatusReporter};
use bellwether_core::machine::worker::executor::Event as ToExecutor;
use bellwether_core::machine::worker::incarnation::{
    Drained, Effect, Ephemeral, Event, Incarnation, RETRY, Stage,
};
use bellwether_core::machine::worker::reporter::Event as ToReporter;
use bellwether_core::name::WorkerId;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::txn::Op;
use bellwether_core::wire::{decode, encode};
use bellwether_core::worker::WorkerInfo;
use bellwether_core::{metric, path, txn};
use bellwether_zk::{Node, ReadResult, SessionState, Watch, Zk};
use metrics::counter;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{Semaphore, watch};
use uuid::Uuid;

use super::links::{ExecutorLinks, InboxLinks, Later, ReporterLinks};
use super::runs::{self, HandlerRuns};
use super::{Term, WorkerConfig, WorkerStatus};
use crate::clock;
use crate::host::{self, Hosted, Ref};
use crate::session::SessionEvent;
use crate::spawn::{actor, spawn};
use crate::task::{Owned, Timers, report, tell};

/// No child's handler awaits anything, so one that does not stop by then is killed.
const STOP_WITHIN: Duration = Duration::from_secs(1);

/// How long a lost hint can delay an operator's drain.
const LOOK: Duration = Duration::from_secs(30);

/// Messages to the wing.
pub enum WorkerMsg {
    /// From the session.
    Session(SessionEvent),
    /// Finish within the grace, hand back the rest, leave; then answer.
    Drain(Duration, RpcReplyPort<Drained>),
    #[doc(hidden)]
    Committed(u64, Outcome<()>),
    #[doc(hidden)]
    Read(u64, ReadResult<Option<Node>>),
    #[doc(hidden)]
    Idle(u64),
    /// Somebody closed an attempt of ours: a leader may take us for hung.
    #[doc(hidden)]
    TakenForHung(u64),
    /// So many slots can be used.
    #[doc(hidden)]
    Usable(u64, u32),
    #[doc(hidden)]
    Said(u64, Outcome<()>),
    #[doc(hidden)]
    InboxGone(u64),
    /// The watch on the registration.
    #[doc(hidden)]
    Watching(u64, ReadResult<Watch>),
    /// The registration may have changed.
    #[doc(hidden)]
    Look(u64),
    #[doc(hidden)]
    Wake,
}

actor!(Wing, "worker", WorkerMsg {
    Session => SessionEvent,
    Drain,
    Committed,
    Read,
    Idle,
    TakenForHung,
    Usable,
    Said,
    InboxGone,
    Watching,
    Look,
    Wake,
}, supervises);

pub(super) struct Wing;

pub(super) struct State {
    config: WorkerConfig,
    publish: watch::Sender<WorkerStatus>,
    machine: Incarnation,
    zk: Option<Zk>,
    term: Term,
    id: WorkerId,
    info: WorkerInfo,
    children: Option<Children>,
    /// Outlives incarnations: a blocking handler keeps its permit until it returns.
    slots: Arc<Semaphore>,
    waiting_for_drain: Vec<RpcReplyPort<Drained>>,
    /// On the registration.
    watch: Option<Owned>,
    look: Option<Owned>,
    timers: Timers,
}

struct Children {
    inbox: Ref<InboxWatcher>,
    executor: Ref<ExecutorPool>,
    reporter: Ref<StatusReporter>,
    /// Hands what handlers report, and what runs and slots do, to the two.
    _pumps: [Owned; 2],
}

/// Most reports of handlers in one message.
const WORDS: usize = 256;

async fn pump(mut words: UnboundedReceiver<Word>, to: Ref<StatusReporter>) {
    loop {
        let mut said = Vec::new();
        if words.recv_many(&mut said, WORDS).await == 0 {
            return;
        }
        host::send(&to, ReporterMsg::Said(said));
    }
}

impl Children {
    /// In the order in which they are stopped: nothing new comes in first.
    fn cells(&self) -> [ActorCell; 3] {
        [self.inbox.get_cell(), self.executor.get_cell(), self.reporter.get_cell()]
    }
}

/// Too many children died: the supervisor decides.
#[derive(Debug, thiserror::Error)]
#[error("the worker's actors keep dying")]
struct TooManyRestarts;

impl Actor for Wing {
    type Msg = WorkerMsg;
    type State = State;
    type Arguments = (WorkerConfig, watch::Sender<WorkerStatus>);

    async fn pre_start(
        &self,
        _: ActorRef<WorkerMsg>,
        (config, publish): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        config.check()?;
        Ok(State {
            publish,
            machine: Incarnation::new(config.drain_grace),
            zk: None,
            term: 0,
            id: WorkerId::new(Uuid::nil()),
            info: config.info(clock::wall()),
            children: None,
            slots: Arc::new(Semaphore::new(config.slots as usize)),
            waiting_for_drain: Vec::new(),
            watch: None,
            look: None,
            timers: Timers::default(),
            config,
        })
    }

    async fn handle(
        &self,
        me: ActorRef<WorkerMsg>,
        message: WorkerMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let event = match message {
            WorkerMsg::Session(SessionEvent::Connected { zk, .. }) => {
                state.zk = Some(zk);
                Event::Connected
            }
            WorkerMsg::Session(SessionEvent::Disconnected { .. }) => Event::Disconnected,
            WorkerMsg::Session(SessionEvent::Reconnected) => Event::Reconnected,
            WorkerMsg::Session(SessionEvent::Expired) => {
                state.zk = None;
                state.term += 1;
                Event::Expired
            }
            WorkerMsg::Drain(grace, reply) => {
                state.waiting_for_drain.push(reply);
                Event::Drain(grace)
            }
            WorkerMsg::Committed(term, outcome) if term == state.term => Event::Committed(outcome),
            WorkerMsg::Read(term, node) if term == state.term => Event::Read(state.ephemeral(node)),
            WorkerMsg::Idle(term) if term == state.term => Event::Idle,
            WorkerMsg::TakenForHung(term) if term == state.term => Event::Anew,
            WorkerMsg::Usable(term, slots) if term == state.term => {
                state.info.slots = slots;
                Event::Anew
            }
            WorkerMsg::Said(term, outcome) if term == state.term => Event::Said(outcome),
            WorkerMsg::InboxGone(term) if term == state.term => Event::InboxGone,
            WorkerMsg::Watching(term, watch) if term == state.term => {
                state.watching(&me, watch);
                // What changed before it was there.
                Event::Look
            }
            WorkerMsg::Look(term) if term == state.term => {
                state.look_later(&me);
                Event::Look
            }
            // Of an incarnation that is over.
            WorkerMsg::Committed(..)
            | WorkerMsg::Read(..)
            | WorkerMsg::Idle(_)
            | WorkerMsg::TakenForHung(_)
            | WorkerMsg::Usable(..)
            | WorkerMsg::Said(..)
            | WorkerMsg::InboxGone(_)
            | WorkerMsg::Watching(..)
            | WorkerMsg::Look(_) => return Ok(()),
            WorkerMsg::Wake => Event::Wake,
        };
        state.feed(&me, event).await
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<WorkerMsg>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let (who, why) = match &event {
            SupervisionEvent::ActorTerminated(who, _, reason) => (who, reason.clone().unwrap_or_default()),
            SupervisionEvent::ActorFailed(who, error) => (who, error.to_string()),
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => return Ok(()),
        };
        let ours = |children: &Children| children.cells().iter().any(|c| c.get_id() == who.get_id());
        if state.children.as_ref().is_some_and(ours) {
            tracing::error!(worker = %state.id, %why, "an actor of the worker died: this incarnation ends");
            state.feed(&me, Event::ChildDied).await?;
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<WorkerMsg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        state.stop_children().await;
        Ok(())
    }
}

impl Drop for State {
    fn drop(&mut self) {
        match self.machine.stage() {
            Stage::Registering | Stage::Serving | Stage::Draining | Stage::Leaving => {}
            Stage::Away | Stage::Over => return,
        }
        if let (Some(zk), Ok(runtime)) = (self.zk.take(), Handle::try_current()) {
            runtime.spawn(leave(zk, self.id));
        }
    }
}

/// Tells the neighbours of an actor that it is started.
fn started<C: Concern>(later: &Later<C>, actor: Ref<C>) -> Ref<C> {
    let first = later.set(actor.clone()).is_ok();
    debug_assert!(first, "an actor is started once");
    actor
}

/// Deletes the ephemeral, unless the session's end does.
async fn leave(zk: Zk, worker: WorkerId) {
    while zk.state() != SessionState::Ended {
        let gone = zk.commit(vec![Op::Delete { path: path::worker(worker), version: None }]).await;
        match gone {
            Outcome::Applied(()) | Outcome::Rejected(Rejection { reason: Reason::NoNode, .. }) => return,
            Outcome::Rejected(_) | Outcome::Unknown => tokio::time::sleep(RETRY).await,
        }
    }
}

impl State {
    async fn feed(&mut self, me: &ActorRef<WorkerMsg>, event: Event) -> Result<(), ActorProcessingErr> {
        let mut effects = Vec::new();
        self.machine.handle(clock::now(), event, &mut effects);
        for effect in effects {
            self.carry_out(me, effect).await?;
        }
        let id = (self.term > 0).then_some(self.id);
        self.publish.send_replace(WorkerStatus { stage: self.machine.stage(), id });
        Ok(())
    }

    async fn carry_out(
        &mut self,
        me: &ActorRef<WorkerMsg>,
        effect: Effect,
    ) -> Result<(), ActorProcessingErr> {
        match effect {
            Effect::Renew => {
                self.term += 1;
                self.id = WorkerId::new(Uuid::now_v7());
                self.info = self.config.info(clock::wall());
                // What still runs of an incarnation before takes a slot of this one.
                let usable = u32::try_from(self.slots.available_permits()).unwrap_or(u32::MAX);
                self.info.slots = usable.min(self.config.slots);
            }
            Effect::Register => self.commit(me, txn::register(self.id, &self.info)),
            Effect::MakeParents => self.make_parents(),
            Effect::Read => self.read(me),
            Effect::Start => {
                self.start_children(me).await?;
                self.watch(me);
                tracing::info!(worker = %self.id, "registered");
            }
            Effect::Stop => self.stop_children().await,
            Effect::Hold => self.each_child(InboxMsg::Hold, ToExecutor::Hold, ToReporter::Hold),
            Effect::Resume => {
                self.each_child(InboxMsg::Resume, ToExecutor::Resume, ToReporter::Resume);
                self.watch(me);
            }
            Effect::MarkDraining(version) => {
                self.commit(me, txn::mark_draining(self.id, &self.info, version));
            }
            Effect::Say(version) => {
                let op = Op::Set { path: path::worker(self.id), data: encode(&self.info), version };
                let (Some(zk), term) = (&self.zk, self.term) else { return Ok(()) };
                report(me, zk.commit(vec![op]), move |outcome| WorkerMsg::Said(term, outcome));
            }
            Effect::Drain(until) => {
                if let Some(children) = &self.children {
                    host::send(&children.executor, ExecutorMsg::Tell(ToExecutor::Drain(until)));
                }
            }
            Effect::Relist => {
                if let Some(children) = &self.children {
                    host::send(&children.inbox, InboxMsg::Relist);
                }
            }
            Effect::Retire => self.commit(me, txn::retire(self.id)),
            Effect::Leave => {
                // A new term: the answer to a write that is still on its way is not the answer to this one.
                self.term += 1;
                self.commit(me, vec![Op::Delete { path: path::worker(self.id), version: None }]);
            }
            Effect::Restarted => counter!(metric::ACTOR_RESTARTS).increment(1),
            Effect::Drained(how) => {
                tracing::info!(worker = %self.id, ?how, "drained");
                for reply in self.waiting_for_drain.drain(..) {
                    if reply.send(how).is_err() {
                        tracing::debug!("nobody waits for the drain any more");
                    }
                }
            }
            Effect::Fail => return Err(TooManyRestarts.into()),
            Effect::WakeAt(at) => self.timers.after(me, at.since(clock::now()), || WorkerMsg::Wake),
        }
        Ok(())
    }

    /// Sends a write now. Without a session there is nobody to send it to, and the machine hears of the next.
    fn commit(&self, me: &ActorRef<WorkerMsg>, ops: Vec<Op>) {
        let (Some(zk), term) = (&self.zk, self.term) else { return };
        report(me, zk.commit(ops), move |outcome| WorkerMsg::Committed(term, outcome));
    }

    /// Sent now, so before the next registration. What becomes of it, that registration tells.
    fn make_parents(&self) {
        let Some(zk) = &self.zk else { return };
        tracing::warn!(worker = %self.id, "the namespace lacks a parent of the registration: made again");
        for parent in txn::register_parents() {
            let made = zk.commit(vec![parent]);
            tokio::spawn(async move {
                let outcome = made.await;
                tracing::debug!(?outcome, "a parent of the registration");
            });
        }
    }

    fn read(&self, me: &ActorRef<WorkerMsg>) {
        let (Some(zk), term) = (&self.zk, self.term) else { return };
        report(me, zk.get(path::worker(self.id)), move |node| WorkerMsg::Read(term, node));
    }

    /// Asks for a watch on the registration, in which an operator may tell the worker to drain.
    fn watch(&mut self, me: &ActorRef<WorkerMsg>) {
        let (Some(zk), term) = (&self.zk, self.term) else { return };
        report(me, zk.watch_path(path::worker(self.id)), move |watch| WorkerMsg::Watching(term, watch));
        self.look_later(me);
    }

    fn watching(&mut self, me: &ActorRef<WorkerMsg>, watch: ReadResult<Watch>) {
        match watch {
            Ok(mut watch) => {
                let (me, term) = (me.clone(), self.term);
                self.watch = Some(Owned::spawn(async move {
                    while watch.changes().await.is_some() {
                        tell(&me, WorkerMsg::Look(term));
                    }
                }));
            }
            // The next look, or the next reconnection, makes good for it.
            Err(error) => tracing::debug!(%error, "the registration is not watched"),
        }
    }

    fn look_later(&mut self, me: &ActorRef<WorkerMsg>) {
        let (me, term) = (me.clone(), self.term);
        self.look = Some(Owned::spawn(async move {
            tokio::time::sleep(LOOK).await;
            tell(&me, WorkerMsg::Look(term));
        }));
    }

    fn ephemeral(&self, node: ReadResult<Option<Node>>) -> Option<Ephemeral> {
        let session = self.zk.as_ref().map(Zk::session_id)?;
        match node {
            Ok(None) => Some(Ephemeral::Absent),
            Ok(Some(node)) if node.owner != session => Some(Ephemeral::Foreign),
            Ok(Some(node)) => {
                // Overwritten by a strange hand, it says nothing of draining.
                let draining = decode::<WorkerInfo>(&node.data).is_ok_and(|info| info.draining);
                Some(Ephemeral::Ours { version: node.version, draining })
            }
            Err(error) => {
                tracing::debug!(%error, "the registration could not be read");
                None
            }
        }
    }

    /// The reporter first and the inbox last: work flows in only when it can flow out.
    async fn start_children(&mut self, me: &ActorRef<WorkerMsg>) -> Result<(), SpawnErr> {
        let Some(zk) = self.zk.clone() else { return Ok(()) };
        let (worker, wing) = (self.id, me.get_cell());
        let (term, slots) = (self.term, self.config.slots);
        let (executor, inbox) = (Later::<ExecutorPool>::default(), Later::<InboxWatcher>::default());
        let links = ReporterLinks { term, executor: Arc::clone(&executor), wing: me.clone() };
        let args = host::Args { zk: Some(zk.clone()), links, args: worker };
        let reporter = spawn(Hosted::<StatusReporter>::new(), args, Some(wing.clone())).await?;
        let (say, words) = unbounded_channel();
        let notify: Notify = Arc::new(move |word| {
            if say.send(word).is_err() {
                tracing::trace!("a handler reported after its worker's end");
            }
        });
        let (to, happened) = unbounded_channel();
        let (handlers, permits) = (self.config.handlers.clone(), Arc::clone(&self.slots));
        let runs = Box::new(HandlerRuns::new(worker, handlers, permits, zk.trust(), notify, to));
        let args = host::Args {
            zk: None,
            links: ExecutorLinks {
                term,
                inbox: Arc::clone(&inbox),
                reporter: reporter.clone(),
                wing: me.clone(),
            },
            args: executor_pool::Args { runs, slots, usable: self.info.slots },
        };
        let executor = started(&executor, spawn(Hosted::new(), args, Some(wing.clone())).await?);
        let links = InboxLinks { term, executor: executor.clone(), wing: me.clone() };
        let args = host::Args { zk: Some(zk), links, args: worker };
        let inbox = started(&inbox, spawn(Hosted::new(), args, Some(wing)).await?);
        let _pumps = [
            Owned::spawn(pump(words, reporter.clone())),
            Owned::spawn(runs::pump(happened, executor.clone())),
        ];
        self.children = Some(Children { inbox, executor, reporter, _pumps });
        Ok(())
    }

    async fn stop_children(&mut self) {
        (self.watch, self.look) = (None, None);
        let Some(children) = self.children.take() else { return };
        for cell in children.cells() {
            if cell.stop_and_wait(None, Some(STOP_WITHIN)).await.is_err() {
                // It has stopped already, or does not: either way this is the last of it.
                cell.kill();
            }
        }
    }

    fn each_child(&self, inbox: InboxMsg, executor: ToExecutor, reporter: ToReporter) {
        if let Some(children) = &self.children {
            // The reporter first, so that what is unknown is read back before anything new is written.
            host::send(&children.reporter, ReporterMsg::Tell(reporter));
            host::send(&children.executor, ExecutorMsg::Tell(executor));
            host::send(&children.inbox, inbox);
        }
    }
}
