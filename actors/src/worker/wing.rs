//! The worker wing: a node's role as a worker, as the machine [`wing::WorkerWing`] decides.
//!
//! ```text
//!  session ──events──▶ wing ──▶ inbox watcher ──▶ executor pool ──▶ status reporter
//!                       │            ▲ closed ────────┘ ▲ closed ───────┘
//!                       └─ registers, drains, retires
//! ```
//!
//! Incarnations follow one another. Each answer carries the *term* of its request. A new incarnation starts a new term,
//! and answers of older terms are dropped. The three children of an incarnation are stopped in order and are never
//! restarted individually: when one of them dies, the incarnation ends.
//!
//! When the wing ends, for whatever reason, its registration is deleted ([`Out::Will`](crate::Out::Will)). The session
//! belongs to another actor and stays open, so a leader would otherwise treat the incarnation as alive.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::budget::MAX_FORMER_IDS;
use bellwether_core::chain::chain;
use bellwether_core::change::Noted;
use bellwether_core::machine::worker::executor_pool::Event as ToExecutor;
use bellwether_core::machine::worker::status_reporter::reporter::Event as ToReporter;
use bellwether_core::machine::worker::wing::{self, Drained, Effect, Ephemeral, Event, Stage};
use bellwether_core::name::WorkerId;
use bellwether_core::outcome::Outcome;
use bellwether_core::port::{Node, ReadResult};
use bellwether_core::time::{Millis, WallMillis};
use bellwether_core::txn::Op;
use bellwether_core::wire::{decode, encode};
use bellwether_core::worker::{WorkerInfo, WorkerSettings};
use bellwether_core::{metric, path, txn};
use metrics::counter;
use uuid::{Builder, Uuid};

use super::inbox_watcher::InboxWatcherMsg;
use super::takeover::{Taken, Takeover, take_over};
use crate::session::SessionEvent;
use crate::{Concern, Context, Feed};

/// The longest delay of an operator's drain or settings if the watch event is lost.
const LOOK: Duration = Duration::from_secs(30);

/// The watch and the timers of the worker wing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The watch on the registration.
    Registration,
    /// The periodic read of the registration.
    Look,
    /// A time that the machine waits for.
    Wake(Millis),
}

/// The arguments of the worker wing.
pub struct Args {
    /// The contents of the registration. Slots that are in use when an incarnation starts are not offered.
    pub info: WorkerInfo,
    /// The grace period for running jobs when an operator drains the worker.
    pub drain_grace: Duration,
    /// Counts the free slots of the process.
    pub free_slots: Box<dyn Fn() -> u32 + Send>,
    /// What the first incarnation takes over.
    pub takeover: Option<Takeover>,
}

/// A node's role as a worker.
pub struct WorkerWing {
    args: Args,
    takeover: Option<Arc<Takeover>>,
    machine: wing::WorkerWing,
    /// The current session, connected or not.
    session: Option<i64>,
    term: u64,
    id: WorkerId,
    info: WorkerInfo,
    /// The version of the registration that contained the settings in `info`.
    settings_at: i32,
    status: Option<(Stage, Option<WorkerId>)>,
    will: Option<WorkerId>,
}

/// Messages to the worker wing.
pub enum WorkerWingMsg {
    /// From the session supervisor.
    Session(SessionEvent),
    /// Finish the running jobs within the grace period, hand back the rest, and leave. [`Tell::Drained`] follows.
    Drain(Duration),
    /// The outcome of a write.
    Committed(u64, Outcome<()>),
    /// The registration.
    Read(u64, ReadResult<Option<Node>>),
    /// The outcome of the takeover.
    TookOver(u64, ReadResult<Vec<Taken>>),
    /// From the executor pool: no attempt is left.
    Idle(u64),
    /// From a child: another node closed an attempt of this worker. The leader may treat the worker as hung.
    TakenForHung(u64),
    /// From the executor pool: the number of usable slots.
    Usable(u64, u32),
    /// From the executor pool: an attempt was handed back because of the settings.
    NotServed(u64),
    /// The outcome of updating the registration.
    RegistrationUpdated(u64, Outcome<()>),
    /// From the inbox watcher: the inbox does not exist.
    InboxGone(u64),
    /// From the watch on the registration.
    Feed(Feed),
    /// The periodic read of the registration is due.
    Look,
    /// The machine's time has come.
    Wake,
}

kinds!(WorkerWingMsg {
    Session => SessionEvent,
    Drain,
    Committed,
    Read,
    TookOver,
    Idle,
    TakenForHung,
    Usable,
    NotServed,
    RegistrationUpdated,
    InboxGone,
    Feed => Feed,
    Look,
    Wake,
});

/// Messages of the worker wing to its children and its host.
pub enum Tell {
    /// Start the children of an incarnation.
    Start {
        /// Its term.
        term: u64,
        /// Its id.
        worker: WorkerId,
        /// The former ids in its registration.
        former: Vec<WorkerId>,
        /// The slots that its registration offers.
        usable: u32,
        /// The slots of the process.
        slots: u32,
        /// What an operator has set.
        settings: WorkerSettings,
    },
    /// Stop the children, in order.
    Stop,
    /// To the inbox watcher.
    Inbox(InboxWatcherMsg),
    /// To the executor pool.
    Executor(ToExecutor),
    /// To the executor pool: the slots of the process, and what an operator has set.
    Settings(u32, WorkerSettings),
    /// To the status reporter.
    Reporter(ToReporter),
    /// This worker has taken over these attempts, or has refused them. Its children start after this.
    TookOver(WorkerId, Vec<Taken>),
    /// The stage or the id changed. The id is `None` before the first incarnation.
    Status(Stage, Option<WorkerId>),
    /// The worker has drained.
    Drained(Drained),
    /// The wing fails, because its children died too often.
    Fail,
}

impl Concern for WorkerWing {
    const NAME: &'static str = "worker_wing";
    type Msg = WorkerWingMsg;
    type Args = Args;
    type Key = Key;
    type Tell = Tell;

    fn start(_: &mut Context<'_, Self>, mut args: Args) -> Self {
        let machine = wing::WorkerWing::new(args.drain_grace);
        let takeover = args.takeover.take().map(Arc::new);
        Self {
            machine: if takeover.is_some() { machine.taking_over() } else { machine },
            takeover,
            session: None,
            term: 0,
            id: WorkerId::new(Uuid::nil()),
            info: args.info.clone(),
            settings_at: 0,
            status: None,
            will: None,
            args,
        }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: WorkerWingMsg) {
        let event = match msg {
            WorkerWingMsg::Session(SessionEvent::Connected { session, .. }) => {
                self.session = Some(session);
                Event::Connected
            }
            WorkerWingMsg::Session(SessionEvent::Disconnected) => Event::Disconnected,
            WorkerWingMsg::Session(SessionEvent::Reconnected) => Event::Reconnected,
            // A worker whose clock is wrong works by ZooKeeper's.
            WorkerWingMsg::Session(SessionEvent::Clock { .. }) => return,
            WorkerWingMsg::Session(SessionEvent::Expired) => {
                self.session = None;
                self.survive();
                self.term += 1;
                Event::Expired
            }
            WorkerWingMsg::Drain(grace) => Event::Drain(grace),
            WorkerWingMsg::Committed(term, outcome) if term == self.term => Event::Committed(outcome),
            WorkerWingMsg::Read(term, node) if term == self.term => Event::Read(self.ephemeral(cx, node)),
            WorkerWingMsg::TookOver(term, taken) if term == self.term => self.took_over(cx, taken),
            WorkerWingMsg::Idle(term) if term == self.term => Event::Idle,
            WorkerWingMsg::TakenForHung(term) if term == self.term => Event::Refresh,
            WorkerWingMsg::Usable(term, slots) if term == self.term => {
                self.info.slots = slots;
                Event::Refresh
            }
            WorkerWingMsg::NotServed(term) if term == self.term => Event::Look,
            WorkerWingMsg::RegistrationUpdated(term, outcome) if term == self.term => {
                Event::RegistrationUpdated(outcome)
            }
            WorkerWingMsg::InboxGone(term) if term == self.term => Event::InboxGone,
            // From an incarnation that has ended.
            WorkerWingMsg::Committed(..)
            | WorkerWingMsg::Read(..)
            | WorkerWingMsg::TookOver(..)
            | WorkerWingMsg::Idle(_)
            | WorkerWingMsg::TakenForHung(_)
            | WorkerWingMsg::Usable(..)
            | WorkerWingMsg::NotServed(_)
            | WorkerWingMsg::RegistrationUpdated(..)
            | WorkerWingMsg::InboxGone(_) => return,
            // The registration may have changed before the watch was set.
            WorkerWingMsg::Feed(Feed::Watching) => Event::Look,
            WorkerWingMsg::Feed(Feed::Changes(_)) | WorkerWingMsg::Look => {
                cx.sweep(Key::Look, LOOK, WorkerWingMsg::Look);
                Event::Look
            }
            WorkerWingMsg::Wake => Event::Wake,
        };
        self.feed(cx, event);
    }
}

impl WorkerWing {
    /// Handles the unexpected end of a child. The host calls this only for the children of the current incarnation.
    pub fn child_ended(&mut self, cx: &mut Context<'_, Self>, why: &str) {
        tracing::error!(worker = %self.id, reason = why, "an actor of the worker died: this incarnation ends");
        self.feed(cx, Event::ChildDied);
    }

    /// The session has expired and the process is alive: the next registration names this id, so that the leader does not
    /// count its attempts as lost (S20). An id that ended in another way is not named: a job may have caused that.
    fn survive(&mut self) {
        match self.machine.stage() {
            Stage::Registering | Stage::Serving | Stage::Draining => {
                let former = &mut self.info.former;
                former.push(self.id);
                former.drain(..former.len().saturating_sub(MAX_FORMER_IDS));
            }
            Stage::Away | Stage::Leaving | Stage::Over => {}
        }
    }

    fn feed(&mut self, cx: &mut Context<'_, Self>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(cx.now, event, &mut effects);
        effects.into_iter().for_each(|effect| self.carry_out(cx, effect));
        let stage = self.machine.stage();
        let will = match stage {
            Stage::Registering | Stage::Serving | Stage::Draining | Stage::Leaving => Some(self.id),
            Stage::Away | Stage::Over => None,
        };
        if will != self.will {
            self.will = will;
            let delete = |id| vec![Op::Delete { path: path::worker(id), version: None }];
            cx.will(will.map(delete));
        }
        let status = (stage, (self.term > 0).then_some(self.id));
        if self.status != Some(status) {
            self.status = Some(status);
            cx.tell(Tell::Status(status.0, status.1));
        }
    }

    fn carry_out(&mut self, cx: &mut Context<'_, Self>, effect: Effect) {
        match effect {
            Effect::Renew => {
                self.term += 1;
                self.id = fresh(cx.wall, cx.rng);
                let slots = if self.machine.takes_over() { 0 } else { self.offer() };
                let former = std::mem::take(&mut self.info.former);
                let settings = std::mem::take(&mut self.info.settings);
                let usual = self.args.info.clone();
                self.info = WorkerInfo { slots, started_at: cx.wall, former, settings, ..usual };
                self.settings_at = 0;
            }
            Effect::Register => self.commit(cx, txn::register(self.id, &self.info)),
            Effect::TakeOver => {
                if let Some(takeover) = &self.takeover {
                    let (term, to, takeover) = (self.term, self.id, Arc::clone(takeover));
                    cx.task(move |zk| async move {
                        WorkerWingMsg::TookOver(term, take_over(&*zk, &takeover, to).await)
                    });
                }
            }
            Effect::MakeParents => self.make_parents(cx),
            Effect::Read => {
                if self.session.is_some() {
                    let term = self.term;
                    cx.get(path::worker(self.id), move |node| WorkerWingMsg::Read(term, node));
                }
            }
            Effect::Start => {
                if self.session.is_some() {
                    let (slots, settings) = (self.slots(), self.info.settings.value.clone());
                    let former = self.info.former.clone();
                    let (term, worker, usable) = (self.term, self.id, self.info.slots);
                    cx.tell(Tell::Start { term, worker, former, usable, slots, settings });
                    self.watch(cx);
                }
                tracing::info!(worker = %self.id, "the worker registered");
            }
            Effect::Stop => {
                cx.unwatch(Key::Registration);
                cx.disarm(Key::Look);
                cx.tell(Tell::Stop);
            }
            Effect::Hold => tell_each(cx, InboxWatcherMsg::Hold, ToExecutor::Hold, ToReporter::Hold),
            Effect::Resume => {
                tell_each(cx, InboxWatcherMsg::Resume, ToExecutor::Resume, ToReporter::Resume);
                self.watch(cx);
            }
            Effect::MarkDraining(version) => {
                self.commit(cx, txn::mark_draining(self.id, &self.info, version));
            }
            Effect::UpdateRegistration(version) => {
                if self.session.is_some() {
                    let op = Op::Set { path: path::worker(self.id), data: encode(&self.info), version };
                    let term = self.term;
                    cx.commit(vec![op], move |_, outcome| {
                        Some(WorkerWingMsg::RegistrationUpdated(term, outcome))
                    });
                }
            }
            Effect::Drain(until) => cx.tell(Tell::Executor(ToExecutor::Drain(until))),
            Effect::Relist => cx.tell(Tell::Inbox(InboxWatcherMsg::Relist)),
            Effect::Retire => self.commit(cx, txn::retire(self.id)),
            Effect::Leave => {
                // A new term, so the outcome of an earlier write that is still in flight is ignored.
                self.term += 1;
                self.commit(cx, vec![Op::Delete { path: path::worker(self.id), version: None }]);
            }
            Effect::Restarted => counter!(metric::ACTOR_RESTARTS).increment(1),
            Effect::Drained(how) => {
                tracing::info!(worker = %self.id, ?how, "the worker drained");
                cx.tell(Tell::Drained(how));
            }
            Effect::Fail => cx.tell(Tell::Fail),
            Effect::WakeAt(at) => cx.after(Key::Wake(at), at.since(cx.now), WorkerWingMsg::Wake),
        }
    }

    /// The slots that the next incarnation offers. A run of an earlier one still uses a slot.
    fn offer(&self) -> u32 {
        (self.args.free_slots)().min(self.slots())
    }

    fn took_over(&mut self, cx: &mut Context<'_, Self>, taken: ReadResult<Vec<Taken>>) -> Event {
        match taken {
            Ok(taken) => {
                let moved = taken.iter().filter(|taken| taken.fencing_token.is_ok()).count();
                tracing::info!(worker = %self.id, moved, refused = taken.len() - moved, "the worker took over attempts of its former worker");
                cx.tell(Tell::TookOver(self.id, taken));
                self.info.slots = self.offer();
                Event::TakenOver
            }
            Err(error) => {
                tracing::debug!(worker = %self.id, error = %chain(&error), "the worker could not complete the takeover of attempts");
                Event::TakeoverInterrupted
            }
        }
    }

    /// Sends a write now. Without a session the write is dropped, and the machine continues with the next session.
    fn commit(&self, cx: &mut Context<'_, Self>, ops: Vec<Op>) {
        if self.session.is_some() {
            let term = self.term;
            cx.commit(ops, move |_, outcome| Some(WorkerWingMsg::Committed(term, outcome)));
        }
    }

    /// Creates the parents of the registration. The outcome of the next registration shows whether they exist.
    fn make_parents(&self, cx: &mut Context<'_, Self>) {
        if self.session.is_none() {
            return;
        }
        tracing::warn!(worker = %self.id, "the worker recreates the missing parents of its registration");
        for parent in txn::register_parents() {
            cx.commit(vec![parent], |_, outcome| {
                tracing::debug!(?outcome, "the worker sent the creation of a parent of its registration");
                None
            });
        }
    }

    /// Watches the registration, in which an operator sets the drain mark and the settings.
    fn watch(&self, cx: &mut Context<'_, Self>) {
        if self.session.is_some() {
            cx.watch(Key::Registration, path::worker(self.id), WorkerWingMsg::Feed);
            cx.sweep(Key::Look, LOOK, WorkerWingMsg::Look);
        }
    }

    /// The slots of the process: as configured, or as an operator has set them.
    fn slots(&self) -> u32 {
        self.info.settings.value.slots.unwrap_or(self.args.info.slots)
    }

    /// Follows the settings in the registration. A read may be overtaken by a later one. The wing's own writes of the
    /// registration contain the settings that it has read, and are fenced by the version, so they never undo an
    /// operator's change.
    fn follow(&mut self, cx: &mut Context<'_, Self>, version: i32, settings: Noted<WorkerSettings>) {
        if version < self.settings_at {
            return;
        }
        self.settings_at = version;
        let Noted { value: before, .. } = std::mem::replace(&mut self.info.settings, settings);
        let settings = &self.info.settings.value;
        if *settings != before {
            tracing::info!(worker = %self.id, ?settings, "an operator changed the settings of the worker");
            cx.tell(Tell::Settings(self.slots(), settings.clone()));
        }
    }

    fn ephemeral(&mut self, cx: &mut Context<'_, Self>, node: ReadResult<Option<Node>>) -> Option<Ephemeral> {
        let session = self.session?;
        match node.ok()? {
            None => Some(Ephemeral::Absent),
            Some(node) if node.owner != session => Some(Ephemeral::Foreign),
            Some(node) => {
                // An unreadable registration counts as not draining and leaves the settings as they are.
                let info = decode::<WorkerInfo>(&node.data).ok();
                let draining = info.as_ref().is_some_and(|info| info.draining);
                if let Some(info) = info {
                    self.follow(cx, node.version, info.settings);
                }
                Some(Ephemeral::Ours { version: node.version, draining })
            }
        }
    }
}

/// Informs all children. The reporter is first, so an unknown outcome is read back before anything new is written.
fn tell_each(
    cx: &mut Context<'_, WorkerWing>,
    inbox: InboxWatcherMsg,
    executor: ToExecutor,
    reporter: ToReporter,
) {
    cx.tell(Tell::Reporter(reporter));
    cx.tell(Tell::Executor(executor));
    cx.tell(Tell::Inbox(inbox));
}

/// Creates a UUID of version 7: ids sort by the start times of their incarnations.
fn fresh(wall: WallMillis, rng: &mut fastrand::Rng) -> WorkerId {
    let mut random = [0; 10];
    rng.fill(&mut random);
    WorkerId::new(Builder::from_unix_timestamp_millis(wall.0, &random).into_uuid())
}

#[cfg(test)]
mod tests;
