//! The executor pool: runs attempts in slots, as the [`executor_pool::ExecutorPool`] machine decides.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::machine::worker::executor_pool::{self, CANCEL_GRACE, Effect, Ended, Event};
use bellwether_core::machine::worker::status_reporter::beats::{self, StartedAttempt};
use bellwether_core::machine::worker::status_reporter::segments;
use bellwether_core::machine::worker::{Finished, Start};
use bellwether_core::metric;
use bellwether_core::name::{JobId, Kind};
use bellwether_core::segment::MemberId;
use bellwether_core::worker::WorkerSettings;
use metrics::counter;

use super::pulse::{Attended, Pulse};
use super::runs::Runs;
use crate::gauge::GaugePart;
use crate::{Concern, Context};

/// The wait between a change of the number of stuck slots and the update of the registration.
const COUNT_AFTER: Duration = Duration::from_secs(1);

/// The timers of the executor pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The next time that the machine waits for.
    Wake,
    /// The stuck slots are counted again.
    Count,
    /// The grace period of a handler that was asked to stop.
    Grace(JobId),
}

/// The arguments of the executor pool.
pub struct Args {
    /// The port that runs the handlers.
    pub runs: Box<dyn Runs>,
    /// The slots of the process.
    pub slots: u32,
    /// The slots that the worker's registration offers.
    pub usable: u32,
    /// What an operator has set.
    pub settings: WorkerSettings,
    /// The concurrency limits of the kinds that may not use all slots.
    pub limits: BTreeMap<Kind, u32>,
}

/// Runs the attempts of one incarnation.
pub struct ExecutorPool {
    runs: Box<dyn Runs>,
    slots: u32,
    machine: executor_pool::ExecutorPool,
    /// The pulses of attempts that wait for a slot.
    pulses: HashMap<JobId, Arc<Pulse>>,
    /// The number of slots held by runs without an open attempt, as last reported to the wing.
    stuck: u32,
    /// The number of abandoned handlers, as last reported to the machine.
    abandoned: BTreeMap<Kind, u32>,
    /// Whether the timer for counting stuck slots and abandoned handlers is set.
    counting: bool,
    running: GaugePart,
}

/// Messages to the executor pool.
pub enum ExecutorPoolMsg {
    /// From the inbox watcher, the reporter, the wing, or a timer.
    Tell(Event),
    /// From the wing: the slots of the process, and what an operator has set.
    Settings(u32, WorkerSettings),
    /// From runs.
    Ended(Vec<Ended>),
    /// A slot was granted.
    Slot,
    /// Count the stuck slots again.
    Count,
}

kinds!(ExecutorPoolMsg { Tell => Event, Settings, Ended, Slot, Count });

/// Messages of the executor pool to its neighbours.
pub enum Tell {
    /// To the reporter: these attempts start.
    Started(Vec<(StartedAttempt, Attended)>),
    /// To the reporter: these attempts have ended.
    Report(Vec<Finished>),
    /// To the reporter's beats.
    Beat(beats::Event),
    /// To the reporter's segments.
    Segment(segments::Event),
    /// To the inbox watcher: these attempts are closed.
    Closed(Vec<JobId>),
    /// To the inbox watcher: read these again.
    Recheck(Vec<JobId>),
    /// To the wing: no attempt is left.
    Idle,
    /// To the wing: another node closed an attempt of this worker.
    TakenForHung,
    /// To the wing: the number of usable slots.
    Usable(u32),
    /// To the wing: an attempt was handed back because of the settings.
    NotServed,
}

/// Items that are sent to a neighbour in one message.
#[derive(Default)]
struct Outgoing {
    began: Vec<MemberId>,
    finished: Vec<Finished>,
    closed: Vec<JobId>,
    recheck: Vec<JobId>,
}

impl Concern for ExecutorPool {
    const NAME: &'static str = "executor_pool";
    type Msg = ExecutorPoolMsg;
    type Args = Args;
    type Key = Key;
    type Tell = Tell;

    fn start(cx: &mut Context<'_, Self>, args: Args) -> Self {
        let Args { mut runs, slots, usable, settings, limits } = args;
        runs.resize(slots);
        let stuck = slots.saturating_sub(usable);
        let mut pool = Self {
            runs,
            slots,
            machine: executor_pool::ExecutorPool::with_limits(limits),
            pulses: HashMap::new(),
            stuck,
            abandoned: BTreeMap::new(),
            counting: false,
            running: GaugePart::of_sum(metric::JOB_ATTEMPTS_RUNNING),
        };
        pool.feed(cx, Event::Settings(settings));
        pool.count_abandoned(cx);
        pool.count_later(cx);
        pool
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: ExecutorPoolMsg) {
        let event = match msg {
            ExecutorPoolMsg::Tell(event) => {
                match &event {
                    Event::Start(starts) => self.begin(cx, starts),
                    Event::Zombie(job, attempt) => {
                        cx.tell(Tell::Beat(beats::Event::Over(job.clone(), *attempt)));
                        cx.tell(Tell::TakenForHung);
                    }
                    Event::SlotGranted(_)
                    | Event::Ended(_)
                    | Event::Cancel { .. }
                    | Event::Third(..)
                    | Event::Lapsed(..)
                    | Event::Vanished(_)
                    | Event::GraceOver(..)
                    | Event::Closed(_)
                    | Event::HandBack(_)
                    | Event::Hold
                    | Event::Resume
                    | Event::Drain(_)
                    | Event::Settings(_)
                    | Event::Abandoned(_)
                    | Event::Wake => {}
                }
                event
            }
            ExecutorPoolMsg::Settings(slots, settings) => {
                self.resize(cx, slots);
                Event::Settings(settings)
            }
            ExecutorPoolMsg::Ended(ended) => {
                ended.iter().for_each(|Ended { job, .. }| self.runs.forget(job));
                self.count_abandoned(cx);
                Event::Ended(ended)
            }
            ExecutorPoolMsg::Slot => Event::SlotGranted(cx.wall),
            ExecutorPoolMsg::Count => {
                self.count_abandoned(cx);
                self.recount(cx);
                return self.count_later(cx);
            }
        };
        self.feed(cx, event);
        self.count_later(cx);
        self.running.set(u32::try_from(self.machine.running()).unwrap_or(u32::MAX).into());
    }
}

impl ExecutorPool {
    fn feed(&mut self, cx: &mut Context<'_, Self>, event: Event) {
        let mut outgoing = Outgoing::default();
        let mut events = vec![event];
        let mut effects = Vec::new();
        while let Some(event) = events.pop() {
            self.machine.handle(cx.now, event, &mut effects);
            for effect in effects.drain(..) {
                events.extend(self.carry_out(cx, effect, &mut outgoing));
            }
        }
        let Outgoing { began, finished, closed, recheck } = outgoing;
        // Before the ends: a member that was handed back before it began waits again.
        if !began.is_empty() {
            cx.tell(Tell::Segment(segments::Event::Began(began)));
        }
        if !finished.is_empty() {
            cx.tell(Tell::Report(finished));
        }
        if !closed.is_empty() {
            cx.tell(Tell::Closed(closed));
        }
        if !recheck.is_empty() {
            cx.tell(Tell::Recheck(recheck));
        }
    }

    /// Starts the leases now, whether a slot is free or not.
    fn begin(&mut self, cx: &mut Context<'_, Self>, starts: &[Start]) {
        let begun = starts.iter().map(|start| {
            let Start { job, assignment, assignment_version: version, record, .. } = start;
            let left = assignment.progress.as_ref().or(record.progress.as_ref());
            let of = (job.clone(), assignment.attempt);
            let pulse = self.runs.pulse(of, cx.now + assignment.lease, left.cloned().unwrap_or_default());
            self.pulses.insert(job.clone(), Arc::clone(&pulse));
            let auto = record.policy.auto_renew.unwrap_or_else(|| self.runs.auto_renews(&record.kind));
            let (job, assignment) = (job.clone(), assignment.clone());
            (StartedAttempt { job, assignment, version: *version, auto }, Attended::new(pulse))
        });
        let begun = begun.collect();
        let mut told = None;
        for packed in starts.iter().filter_map(|start| start.packed.as_ref()) {
            if told.replace(packed.id) != Some(packed.id) {
                cx.tell(Tell::Segment(segments::Event::Assigned(Arc::clone(packed))));
            }
        }
        cx.tell(Tell::Started(begun));
    }

    /// Carries out an effect. Returns the event that follows from it immediately, if any.
    fn carry_out(
        &mut self,
        cx: &mut Context<'_, Self>,
        effect: Effect,
        outgoing: &mut Outgoing,
    ) -> Option<Event> {
        match effect {
            Effect::WantSlot => {
                if self.runs.want_slot() {
                    return Some(Event::SlotGranted(cx.wall));
                }
            }
            Effect::ReturnSlot => self.runs.return_slot(),
            Effect::Launch(start) => {
                let pulse = self.pulses.remove(&start.job).expect("a started attempt has a pulse");
                let (job, attempt) = (start.job.clone(), start.assignment.attempt);
                outgoing.began.extend(start.packed.as_ref().and_then(|_| MemberId::of_job(&job)));
                if let Err(how) = self.runs.launch(*start, pulse) {
                    return Some(Event::Ended(vec![Ended { job, attempt, how }]));
                }
            }
            Effect::Signal(job, attempt, stop) => {
                // If the run has just ended, its end is already in the mailbox.
                if self.runs.signal(&job, stop) {
                    let over = ExecutorPoolMsg::Tell(Event::GraceOver(job.clone(), attempt));
                    cx.after(Key::Grace(job), CANCEL_GRACE, over);
                }
            }
            Effect::Abort(job, _) => self.runs.abort(&job),
            Effect::Report(finished) => {
                self.pulses.remove(&finished.start.job);
                outgoing.finished.push(*finished);
            }
            Effect::Closed(job) => {
                self.pulses.remove(&job);
                outgoing.closed.push(job);
            }
            Effect::Recheck(job) => outgoing.recheck.push(job),
            Effect::NotServed => cx.tell(Tell::NotServed),
            Effect::DroppedZombie(job) => {
                tracing::warn!(%job, "a run outlived its attempt: the worker drops its result");
                counter!(metric::STALE_RESULTS_DROPPED).increment(1);
            }
            Effect::WakeAt(at) => cx.after(Key::Wake, at.since(cx.now), ExecutorPoolMsg::Tell(Event::Wake)),
            Effect::Idle => cx.tell(Tell::Idle),
        }
        None
    }

    /// Changes the number of slots and informs the wing, which publishes it. Runs that use more slots than remain continue.
    fn resize(&mut self, cx: &mut Context<'_, Self>, slots: u32) {
        if slots == self.slots {
            return;
        }
        self.slots = slots;
        self.runs.resize(slots);
        self.stuck = self.stuck_now();
        cx.tell(Tell::Usable(self.slots.saturating_sub(self.stuck)));
    }

    /// Counts the slots whose runs continue although their attempts are closed. No job can use these slots, and the
    /// leader knows only the jobs in the inbox.
    fn stuck_now(&self) -> u32 {
        let used = self.runs.free().saturating_add(self.machine.attending());
        self.slots.saturating_sub(u32::try_from(used).unwrap_or(u32::MAX))
    }

    /// Sets the timer for counting. The count waits because a run returns its slot shortly before or after its end is
    /// processed.
    fn count_later(&mut self, cx: &mut Context<'_, Self>) {
        let abandoned = self.stuck > 0 || !self.abandoned.is_empty();
        if !self.counting && (abandoned || self.stuck_now() > 0) {
            self.counting = true;
            cx.after(Key::Count, COUNT_AFTER, ExecutorPoolMsg::Count);
        }
    }

    /// Counts the handlers that were abandoned and still run. Jobs of kinds with a limit wait for them.
    fn count_abandoned(&mut self, cx: &mut Context<'_, Self>) {
        let abandoned = self.runs.abandoned();
        if abandoned != self.abandoned {
            self.abandoned.clone_from(&abandoned);
            self.feed(cx, Event::Abandoned(abandoned));
        }
    }

    fn recount(&mut self, cx: &mut Context<'_, Self>) {
        self.counting = false;
        let stuck = self.stuck_now();
        if stuck != self.stuck {
            self.stuck = stuck;
            match stuck {
                0 => tracing::info!("the abandoned runs have left the slots of the worker"),
                _ => tracing::warn!(stuck, "the abandoned runs still occupy slots of the worker"),
            }
            cx.tell(Tell::Usable(self.slots.saturating_sub(stuck)));
        }
    }
}
