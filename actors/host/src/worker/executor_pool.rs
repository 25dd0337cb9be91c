//! Runs attempts in slots: feeds the [`Executor`] machine and carries out its effects.
//!
//! The state owns every run. When it is dropped, however this actor ends, each run's token fires and each run is
//! aborted, with whatever its handler owns (a process group, for one). What a blocking handler does then is its
//! own affair, but its slot stays taken: the permits belong to the node, not to the incarnation.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether_actors::worker::inbox_watcher::{InboxMsg, InboxWatcher};
use bellwether_core::machine::worker::beats::{self, Begun};
use bellwether_core::machine::worker::executor::{CANCEL_GRACE, Effect, Ended, Event, Executor, Run};
use bellwether_core::machine::worker::{Finished, Start};
use bellwether_core::metric;
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::time::Millis;
use bellwether_zk::Trust;
use metrics::{counter, gauge};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use super::handler::{JobContext, Pulse, Registered, Registry, Word};
use super::run::{Bounds, Guard, run};
use super::status_reporter::ReporterMsg;
use super::{Term, WorkerMsg};
use crate::clock;
use crate::host::{self, Ref};
use crate::spawn::actor;
use crate::task::{Owned, after, tell};
use crate::trace;

/// From when slots seem to be stuck, or no more, to when the leader hears of it.
const COUNT_AFTER: Duration = Duration::from_secs(1);

/// Most ends handed on in one message.
const ENDS: usize = 256;

pub(super) struct ExecutorPool;

pub(super) struct Args {
    pub(super) worker: WorkerId,
    pub(super) term: Term,
    pub(super) handlers: Registry,
    pub(super) slots: Arc<Semaphore>,
    /// How many there are.
    pub(super) count: u32,
    /// And how many of them the registration says.
    pub(super) usable: u32,
    pub(super) trust: Trust,
    /// By which handlers tell the reporter that they have something to say.
    pub(super) say: UnboundedSender<Word>,
    pub(super) wing: ActorRef<WorkerMsg>,
    pub(super) reporter: ActorRef<ReporterMsg>,
}

pub(super) enum ExecutorMsg {
    /// From the inbox, which wants to hear when they are closed.
    Start(Vec<Start>, Ref<InboxWatcher>),
    /// From the inbox or the reporter.
    Tell(Event),
    /// From the session, by way of the wing.
    Ended(Vec<Ended>),
    Slot(OwnedSemaphorePermit),
    /// The time to count the stuck slots again.
    Count,
}

actor!(ExecutorPool, "executor_pool", ExecutorMsg { Start, Tell => Event, Ended, Slot, Count });

pub(super) struct State {
    args: Args,
    machine: Executor,
    /// Of the attempts that wait for a slot.
    pulses: HashMap<JobId, Arc<Pulse>>,
    runs: HashMap<JobId, Running>,
    granted: Option<OwnedSemaphorePermit>,
    waiter: Option<Owned>,
    alarm: Option<Owned>,
    /// Slots that are taken by runs without an attempt, as the wing was told last.
    stuck: usize,
    count: Option<Owned>,
    inbox: Option<Ref<InboxWatcher>>,
    ends: UnboundedSender<Ended>,
    _pump: Owned,
}

struct Running {
    _task: Owned,
    stop: CancellationToken,
    grace: Option<Owned>,
    _stop_on_drop: DropGuard,
}

impl Actor for ExecutorPool {
    type Msg = ExecutorMsg;
    type State = State;
    type Arguments = Args;

    async fn pre_start(&self, me: ActorRef<ExecutorMsg>, args: Args) -> Result<State, ActorProcessingErr> {
        gauge!(metric::ATTEMPTS_RUNNING).set(0.0);
        let (ends, ended) = unbounded_channel();
        let stuck = args.count.saturating_sub(args.usable) as usize;
        let mut state = State {
            args,
            machine: Executor::new(),
            pulses: HashMap::new(),
            runs: HashMap::new(),
            granted: None,
            waiter: None,
            alarm: None,
            stuck,
            count: None,
            inbox: None,
            ends,
            _pump: Owned::spawn(pump(ended, me.clone())),
        };
        state.count_later(&me);
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<ExecutorMsg>,
        message: ExecutorMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let event = match message {
            ExecutorMsg::Start(starts, inbox) => {
                state.inbox = Some(inbox);
                state.begin(&me, &starts);
                Event::Start(starts)
            }
            ExecutorMsg::Tell(event) => {
                if let Event::Zombie(job, attempt) = &event {
                    let over = beats::Event::Over(job.clone(), *attempt);
                    tell(&state.args.reporter, ReporterMsg::Beat(over));
                    tell(&state.args.wing, WorkerMsg::TakenForHung(state.args.term));
                }
                event
            }
            ExecutorMsg::Ended(ended) => {
                for Ended { job, .. } in &ended {
                    state.runs.remove(job);
                }
                Event::Ended(ended)
            }
            ExecutorMsg::Slot(permit) => {
                state.waiter = None;
                state.granted = Some(permit);
                Event::SlotGranted(clock::wall())
            }
            ExecutorMsg::Count => {
                state.recount();
                state.count_later(&me);
                return Ok(());
            }
        };
        state.feed(&me, event);
        state.count_later(&me);
        gauge!(metric::ATTEMPTS_RUNNING).set(u32::try_from(state.machine.running()).unwrap_or(u32::MAX));
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<ExecutorMsg>, _: &mut State) -> Result<(), ActorProcessingErr> {
        gauge!(metric::ATTEMPTS_RUNNING).set(0.0);
        Ok(())
    }
}

/// What leaves the actor as one message each.
#[derive(Default)]
struct Outgoing {
    finished: Vec<Finished>,
    closed: Vec<JobId>,
    recheck: Vec<JobId>,
}

impl State {
    fn feed(&mut self, me: &ActorRef<ExecutorMsg>, event: Event) {
        let mut outgoing = Outgoing::default();
        let mut events = vec![event];
        let mut effects = Vec::new();
        while let Some(event) = events.pop() {
            self.machine.handle(clock::now(), event, &mut effects);
            for effect in effects.drain(..) {
                events.extend(self.carry_out(me, effect, &mut outgoing));
            }
        }
        self.send(me, outgoing);
    }

    /// Their leases run from now on, whether a slot is free or not.
    fn begin(&mut self, me: &ActorRef<ExecutorMsg>, starts: &[Start]) {
        let begun = starts.iter().map(|start| {
            let Start { job, assignment, assignment_version: version, record, .. } = start;
            let left = assignment.progress.as_ref().or(record.progress.as_ref());
            let until = Instant::now() + assignment.lease;
            let (of, say) = ((job.clone(), assignment.attempt), self.args.say.clone());
            let pulse = Arc::new(Pulse::new(of, Some(say), until, left.cloned().unwrap_or_default()));
            self.pulses.insert(job.clone(), Arc::clone(&pulse));
            let of_kind = || self.args.handlers.registered(&record.kind).is_some_and(|kind| kind.auto_renew);
            let auto = record.policy.auto_renew.unwrap_or_else(of_kind);
            let (job, assignment) = (job.clone(), assignment.clone());
            (Begun { job, assignment, version: *version, auto }, pulse)
        });
        let begun = begun.collect();
        tell(&self.args.reporter, ReporterMsg::Begun(begun, me.clone()));
    }

    fn send(&self, me: &ActorRef<ExecutorMsg>, outgoing: Outgoing) {
        let Outgoing { finished, closed, recheck } = outgoing;
        if !finished.is_empty() {
            tell(&self.args.reporter, ReporterMsg::Report(finished, me.clone()));
        }
        let Some(inbox) = &self.inbox else { return };
        if !closed.is_empty() {
            host::send(inbox, InboxMsg::Closed(closed));
        }
        if !recheck.is_empty() {
            host::send(inbox, InboxMsg::Recheck(recheck));
        }
    }

    /// Does what the machine wants; an event that this leads to at once is given back.
    fn carry_out(
        &mut self,
        me: &ActorRef<ExecutorMsg>,
        effect: Effect,
        outgoing: &mut Outgoing,
    ) -> Option<Event> {
        match effect {
            Effect::WantSlot => return self.want_slot(me),
            Effect::ReturnSlot => self.granted = None,
            Effect::Launch(start) => return self.launch(*start),
            Effect::Signal(job, attempt) => self.signal(me, job, attempt),
            // Its guard tells that it ended.
            Effect::Abort(job, _) => {
                self.runs.remove(&job);
            }
            Effect::Report(finished) => {
                self.pulses.remove(&finished.start.job);
                outgoing.finished.push(*finished);
            }
            Effect::Closed(job) => {
                self.pulses.remove(&job);
                outgoing.closed.push(job);
            }
            Effect::Recheck(job) => outgoing.recheck.push(job),
            Effect::DroppedZombie(job) => {
                tracing::warn!(%job, "a run went on after its attempt was closed: its result is dropped");
                counter!(metric::ZOMBIES).increment(1);
            }
            Effect::WakeAt(at) => self.wake_at(me, at),
            Effect::Idle => tell(&self.args.wing, WorkerMsg::Idle(self.args.term)),
        }
        None
    }

    fn want_slot(&mut self, me: &ActorRef<ExecutorMsg>) -> Option<Event> {
        if let Ok(permit) = Arc::clone(&self.args.slots).try_acquire_owned() {
            self.granted = Some(permit);
            return Some(Event::SlotGranted(clock::wall()));
        }
        let (slots, me) = (Arc::clone(&self.args.slots), me.clone());
        self.waiter = Some(Owned::spawn(async move {
            let permit = slots.acquire_owned().await.expect("the slots are never closed");
            tell(&me, ExecutorMsg::Slot(permit));
        }));
        None
    }

    fn launch(&mut self, start: Start) -> Option<Event> {
        let slot = self.granted.take().expect("the machine launches only what it was granted a slot for");
        let pulse = self.pulses.remove(&start.job).expect("an attempt that was started has its pulse");
        let Some(Registered { handler, on_invalid, .. }) =
            self.args.handlers.registered(&start.record.kind).cloned()
        else {
            let how = Run::Failed(format!("no handler for kind {}", start.record.kind));
            let (job, attempt) = (start.job, start.assignment.attempt);
            return Some(Event::Ended(vec![Ended { job, attempt, how, ran: Duration::ZERO }]));
        };
        let stop = CancellationToken::new();
        let laned = start.record.placement.lane.is_some();
        let bounds =
            Bounds { timeout: start.record.policy.timeout, trust: laned.then(|| self.args.trust.clone()) };
        let trace = start.record.trace;
        let (epoch, attempt) = (start.assignment.epoch, start.assignment.attempt);
        let span = trace::run(&start.job, &start.record.kind, attempt, epoch, trace.as_ref());
        let context = JobContext {
            trace: trace::context(&span).or(trace),
            job: start.job.clone(),
            kind: start.record.kind,
            generation: start.record.generation,
            attempt,
            payload: start.record.payload,
            worker: self.args.worker,
            fencing_token: start.version,
            cancelled: stop.clone(),
            trust: self.args.trust.clone(),
            left: start.assignment.progress.or(start.record.progress),
            pulse,
            tools: self.args.handlers.tools(),
        };
        let guard = Guard::new(&context, span.clone(), self.ends.clone());
        let task = Owned::spawn(run(handler, on_invalid, context, bounds, slot, guard).instrument(span));
        let _stop_on_drop = stop.clone().drop_guard();
        self.runs.insert(start.job, Running { _task: task, stop, grace: None, _stop_on_drop });
        None
    }

    fn signal(&mut self, me: &ActorRef<ExecutorMsg>, job: JobId, attempt: u32) {
        // One that just ended is in the mailbox already.
        let Some(running) = self.runs.get_mut(&job) else { return };
        running.stop.cancel();
        let me = me.clone();
        running.grace = Some(Owned::spawn(async move {
            tokio::time::sleep(CANCEL_GRACE).await;
            tell(&me, ExecutorMsg::Tell(Event::GraceOver(job, attempt)));
        }));
    }

    /// Slots whose runs go on although their attempts are closed: nothing can be run in them, and the leader knows only
    /// of what is in the inbox.
    fn stuck_now(&self) -> usize {
        let free = self.args.slots.available_permits() + usize::from(self.granted.is_some());
        (self.args.count as usize).saturating_sub(free + self.machine.attending())
    }

    /// A run that ends gives its slot back a moment before or after it is noted.
    fn count_later(&mut self, me: &ActorRef<ExecutorMsg>) {
        if self.count.is_none() && (self.stuck > 0 || self.stuck_now() > 0) {
            self.count = Some(after(me, COUNT_AFTER, || ExecutorMsg::Count));
        }
    }

    fn recount(&mut self) {
        self.count = None;
        let stuck = self.stuck_now();
        if stuck != self.stuck {
            self.stuck = stuck;
            tracing::warn!(stuck, "slots are taken by runs that were given up and go on");
            let usable = self.args.count.saturating_sub(u32::try_from(stuck).unwrap_or(u32::MAX));
            tell(&self.args.wing, WorkerMsg::Usable(self.args.term, usable));
        }
    }

    fn wake_at(&mut self, me: &ActorRef<ExecutorMsg>, at: Millis) {
        let (me, wait) = (me.clone(), at.since(clock::now()));
        self.alarm = Some(Owned::spawn(async move {
            tokio::time::sleep(wait).await;
            tell(&me, ExecutorMsg::Tell(Event::Wake));
        }));
    }
}

async fn pump(mut ended: UnboundedReceiver<Ended>, me: ActorRef<ExecutorMsg>) {
    loop {
        let mut ends = Vec::new();
        if ended.recv_many(&mut ends, ENDS).await == 0 {
            return;
        }
        tell(&me, ExecutorMsg::Ended(ends));
    }
}
