//! The executor pool: feeds core's [`executor::Executor`], as `actors/src/worker/executor_pool.rs` does.

use bellwether_core::machine::worker::executor::{self, CANCEL_GRACE, Effect, Ended, Event, Run};
use bellwether_core::name::JobId;
use bellwether_core::time::Millis;

use super::runs::Runs;
use super::{InboxMsg, Place, ReporterMsg, WorkerMsg};
use crate::node::Msg;
use crate::node::context::{Context, Route};

pub(crate) enum ExecutorMsg {
    /// From the inbox, the reporter, the session, or a timer.
    Tell(Event),
    /// From a run.
    Ended(Ended),
    /// The alarm with this number.
    Alarm(u64),
}

pub(super) struct Executor {
    place: Place,
    machine: executor::Executor,
    granted: bool,
    waits_for_slot: bool,
    alarms: u64,
}

/// What leaves as one message each.
#[derive(Default)]
struct Outgoing {
    finished: Vec<bellwether_core::machine::worker::Finished>,
    closed: Vec<JobId>,
    recheck: Vec<JobId>,
}

impl Executor {
    pub(super) fn new(place: Place) -> Self {
        Self { place, machine: executor::Executor::new(), granted: false, waits_for_slot: false, alarms: 0 }
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: ExecutorMsg, runs: &mut Runs) {
        let event = match msg {
            ExecutorMsg::Tell(event) => event,
            ExecutorMsg::Ended(ended) => Event::Ended(vec![ended]),
            ExecutorMsg::Alarm(number) if number == self.alarms => Event::Wake,
            // One that was replaced.
            ExecutorMsg::Alarm(_) => return,
        };
        self.feed(cx, event, runs);
    }

    /// A run may have given its slot back.
    pub(super) fn look_for_slot(&mut self, cx: &mut Context<'_>, runs: &mut Runs) {
        if self.waits_for_slot && runs.take_slot() {
            self.waits_for_slot = false;
            self.granted = true;
            self.feed(cx, Event::SlotGranted(cx.wall()), runs);
        }
    }

    fn feed(&mut self, cx: &mut Context<'_>, event: Event, runs: &mut Runs) {
        let mut outgoing = Outgoing::default();
        let mut events = vec![event];
        let mut effects = Vec::new();
        while let Some(event) = events.pop() {
            self.machine.handle(cx.now(), event, &mut effects);
            for effect in effects.drain(..) {
                events.extend(self.carry_out(cx, effect, &mut outgoing, runs));
            }
        }
        let (place, Outgoing { finished, closed, recheck }) = (self.place, outgoing);
        if !finished.is_empty() {
            cx.tell(Route::ExecutorToReporter, place.reporter(ReporterMsg::Report(finished)));
        }
        if !closed.is_empty() {
            cx.tell(Route::ExecutorToInbox, place.inbox(InboxMsg::Closed(closed)));
        }
        if !recheck.is_empty() {
            cx.tell(Route::ExecutorToInbox, place.inbox(InboxMsg::Recheck(recheck)));
        }
    }

    fn carry_out(
        &mut self,
        cx: &mut Context<'_>,
        effect: Effect,
        outgoing: &mut Outgoing,
        runs: &mut Runs,
    ) -> Option<Event> {
        let place = self.place;
        match effect {
            Effect::WantSlot if runs.take_slot() => {
                self.granted = true;
                return Some(Event::SlotGranted(cx.wall()));
            }
            Effect::WantSlot => self.waits_for_slot = true,
            Effect::ReturnSlot => {
                if std::mem::take(&mut self.granted) {
                    runs.return_slot();
                }
            }
            Effect::Launch(start) => {
                assert!(std::mem::take(&mut self.granted), "a launch takes a granted slot");
                assert!(!start.record.is_overdue(cx.wall()), "S16: {} starts too late", start.job);
                if !runs.serves(&start.record.kind) {
                    runs.return_slot();
                    let how = Run::Failed(format!("no handler for kind {}", start.record.kind));
                    let (job, attempt, ran) =
                        (start.job, start.assignment.attempt, std::time::Duration::ZERO);
                    return Some(Event::Ended(vec![Ended { job, attempt, how, ran }]));
                }
                runs.launch(cx, place, *start);
            }
            Effect::Signal(job, attempt) => {
                runs.signal(cx, &job, place.worker);
                let over = ExecutorMsg::Tell(Event::GraceOver(job, attempt));
                cx.after(CANCEL_GRACE, place.executor(over));
            }
            Effect::Abort(job, _) => runs.abort(cx, &job, place.worker),
            Effect::Report(finished) => outgoing.finished.push(*finished),
            Effect::Closed(job) => outgoing.closed.push(job),
            Effect::Recheck(job) => outgoing.recheck.push(job),
            Effect::DroppedZombie(_) => {}
            Effect::WakeAt(at) => self.wake_at(cx, at),
            Effect::Idle => cx.tell(Route::ChildToWorker, Msg::Worker(WorkerMsg::Idle(place.term))),
        }
        None
    }

    fn wake_at(&mut self, cx: &mut Context<'_>, at: Millis) {
        self.alarms += 1;
        cx.at(at, self.place.executor(ExecutorMsg::Alarm(self.alarms)));
    }
}
