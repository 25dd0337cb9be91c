//! The executor pool: feeds core's [`executor::Executor`], as `actors/host/src/worker/executor_pool.rs` does.

use std::time::Duration;

use bellwether_core::machine::worker::Start;
use bellwether_core::machine::worker::beats::{self, Begun};
use bellwether_core::machine::worker::executor::{self, CANCEL_GRACE, Effect, Ended, Event};
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
    /// The time to count the stuck slots again.
    Count,
}

/// As the actor's.
const COUNT_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Executor {
    place: Place,
    machine: executor::Executor,
    granted: bool,
    waits_for_slot: bool,
    alarms: u64,
    slots: u32,
    stuck: u32,
    counts: bool,
    drains: bool,
}

/// What leaves as one message each.
#[derive(Default)]
struct Outgoing {
    finished: Vec<bellwether_core::machine::worker::Finished>,
    closed: Vec<JobId>,
    recheck: Vec<JobId>,
}

impl Executor {
    pub(super) fn start(cx: &mut Context<'_>, place: Place, slots: u32, usable: u32) -> Self {
        let mut executor = Self {
            place,
            machine: executor::Executor::new(),
            granted: false,
            waits_for_slot: false,
            alarms: 0,
            slots,
            stuck: slots - usable,
            counts: false,
            drains: false,
        };
        executor.count_later(cx, slots - usable);
        executor
    }

    /// Slots whose runs go on although their attempts are closed.
    fn stuck_now(&self, runs: &Runs) -> u32 {
        let free = runs.free() + u32::from(self.granted);
        let attending = u32::try_from(self.machine.attending()).unwrap_or(u32::MAX);
        self.slots.saturating_sub(free.saturating_add(attending))
    }

    fn count_later(&mut self, cx: &mut Context<'_>, stuck: u32) {
        if !self.counts && (self.stuck > 0 || stuck > 0) {
            self.counts = true;
            cx.after(COUNT_AFTER, self.place.executor(ExecutorMsg::Count));
        }
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: ExecutorMsg, runs: &mut Runs) {
        let event = match msg {
            ExecutorMsg::Count => {
                self.counts = false;
                let stuck = self.stuck_now(runs);
                if std::mem::replace(&mut self.stuck, stuck) != stuck {
                    let usable = WorkerMsg::Usable(self.place.term, self.slots - stuck);
                    cx.tell(Route::ChildToWorker, Msg::Worker(usable));
                }
                return self.count_later(cx, stuck);
            }
            ExecutorMsg::Tell(Event::Start(starts)) => {
                let begun = starts.iter().map(begun).collect();
                cx.tell(Route::ExecutorToReporter, self.place.reporter(ReporterMsg::Begun(begun)));
                Event::Start(starts)
            }
            ExecutorMsg::Tell(Event::Zombie(job, attempt)) => {
                let over = ReporterMsg::Beat(beats::Event::Over(job.clone(), attempt));
                cx.tell(Route::ExecutorToReporter, self.place.reporter(over));
                let hung = Msg::Worker(WorkerMsg::TakenForHung(self.place.term));
                cx.tell(Route::ChildToWorker, hung);
                Event::Zombie(job, attempt)
            }
            ExecutorMsg::Tell(event) => {
                self.drains |= matches!(event, Event::Drain(_));
                event
            }
            ExecutorMsg::Ended(ended) => Event::Ended(vec![ended]),
            ExecutorMsg::Alarm(number) if number == self.alarms => Event::Wake,
            // One that was replaced.
            ExecutorMsg::Alarm(_) => return,
        };
        self.feed(cx, event, runs);
        let stuck = self.stuck_now(runs);
        self.count_later(cx, stuck);
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
                assert!(!self.drains, "S18: {} starts in a worker that drains", start.job);
                if let Some(how) = runs.refuses(cx, place, &start) {
                    runs.return_slot();
                    let (job, attempt, ran) = (start.job, start.assignment.attempt, Duration::ZERO);
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

/// Its lease runs from now on, whether a slot is free or not.
fn begun(start: &Start) -> Begun {
    let auto = start.record.policy.auto_renew.unwrap_or_default();
    Begun {
        job: start.job.clone(),
        assignment: start.assignment.clone(),
        version: start.assignment_version,
        auto,
    }
}
