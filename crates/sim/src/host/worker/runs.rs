//! Handlers: the runs in the slots of one process, with the bounds of `actors/host/src/worker/run.rs`.
//!
//! The behaviour of a handler is drawn from the seed, the job and the attempt, so that it does not depend on other
//! events.
//!
//! | kind | behaviour |
//! | --- | --- |
//! | `sum` | succeeds after a while |
//! | `flaky` | fails every other time |
//! | `slow` | takes seconds |
//! | `stubborn` | is a blocking handler that ignores signals: it keeps its slot until it returns |
//! | `poison` | kills its process every other time |
//! | `killer` | kills its process every time |
//! | `hangs` | does not return; every other time it also ignores signals and keeps its slot for long |
//! | `steady` | reports progress with a checkpoint, and fails every other time; the next attempt resumes from it |
//! | `never` | reports invalid input |
//! | `later` | snoozes a few times |
//! | `nest1` to `nest3` | submits sub-jobs one level less; succeeds, fails every other time, or reports invalid input |
//! | `….join`, `….finished` | succeeds after a while, or fails every other time |
//!
//! A run ends once: when its handler returns, at its timeout, when it is aborted, or, for a job with a lane, when the
//! session is no longer trusted.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bellwether_actors::worker::executor_pool::ExecutorPoolMsg;
use bellwether_actors::worker::lane_trust::next_check;
use bellwether_actors::worker::pulse::Pulse;
use bellwether_actors::worker::status_reporter::StatusReporterMsg;
use bellwether_core::job::Payload;
use bellwether_core::machine::worker::Start;
use bellwether_core::machine::worker::executor_pool::{Ended, Run as How};
use bellwether_core::name::{JobId, Kind, WorkerId};
use bellwether_core::takeover::HeldAttempt;
use bellwether_core::time::{Millis, as_millis};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::port::{Order, Slots};
use super::{Address, sub_jobs};
use crate::history::{Digest, EventKind, RunStep};
use crate::host::context::{Context, Out, Route};

/// The kinds that every simulated worker serves, in addition to the joins of groups of these, their dead-letter jobs and
/// the handlers of finished sub-jobs.
const KINDS: [&str; 13] = [
    "flaky", "hangs", "killer", "later", "never", "nest1", "nest2", "nest3", "poison", "slow", "steady",
    "stubborn", "sum",
];
const JOINS: [&str; 8] = [
    "flaky.join",
    "later.join",
    "never.join",
    "nest1.join",
    "nest2.join",
    "slow.join",
    "steady.join",
    "sum.join",
];
const DEAD: [&str; 4] = ["flaky.dead", "killer.dead", "never.dead", "poison.dead"];
const FINISHED: [&str; 3] = ["nest1.finished", "nest2.finished", "nest3.finished"];

/// Returns all kinds that a worker offers.
pub(crate) fn kinds() -> Vec<Kind> {
    let mut kinds: Vec<_> = KINDS.into_iter().chain(JOINS).chain(DEAD).chain(FINISHED).collect();
    kinds.sort_unstable();
    kinds.into_iter().map(|kind| Kind::new(kind).expect("letters")).collect()
}

/// How long a handler hangs that cannot be stopped: longer than any lease.
const HANGS_MS: u64 = 25_000;

/// How often a `steady` handler reports progress.
const SAYS_EVERY: Duration = Duration::from_millis(700);

pub(crate) enum RunMsg {
    /// The handler returns.
    Done(u64),
    /// Its timeout is over.
    TimedOut(u64),
    /// Its session may have ended: check.
    Lapse(u64),
    /// It kills its process.
    Kill(u64),
    /// It reports this progress.
    Say(u64, u8),
    /// Its sub-jobs are submitted: all of them, or not.
    Spawned(u64, bool),
}

pub(crate) struct Runs {
    seed: u64,
    slots: Slots,
    /// Whether the current executor pool drains.
    draining: bool,
    next: u64,
    runs: BTreeMap<u64, Running>,
    /// The runs that an executor waits for.
    of_jobs: BTreeMap<(JobId, WorkerId), u64>,
}

struct Running {
    address: Address,
    start: Start,
    pulse: Arc<Pulse>,
    how: How,
    blocking: bool,
    /// Whether it ends soon after a signal.
    listens: bool,
    /// Duration of the run.
    took_ms: u64,
    /// Set to false when the run ends, to stop its submissions.
    goes_on: Rc<Cell<bool>>,
}

/// Returns whether every simulated worker has a handler for jobs of this kind.
pub(super) fn serves(kind: &Kind) -> bool {
    [&KINDS[..], &JOINS, &FINISHED].iter().any(|kinds| kinds.contains(&kind.as_str()))
}

impl Runs {
    pub(super) fn new(slots: u32, seed: u64) -> Self {
        let slots = Slots::new(slots);
        Self { seed, slots, draining: false, next: 0, runs: BTreeMap::new(), of_jobs: BTreeMap::new() }
    }

    /// Returns whether no handler code runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The attempts that a worker runs.
    pub(super) fn held(&self, worker: WorkerId) -> Vec<HeldAttempt> {
        let runs = self.of_jobs.iter().filter(|((_, of), _)| *of == worker);
        let runs = runs.filter_map(|(_, id)| self.runs.get(id));
        let held = runs.map(|Running { start, .. }| HeldAttempt {
            job: start.job.clone(),
            submission: start.record.token,
            generation: start.record.generation,
            attempt: start.assignment.attempt,
            fencing_token: start.version,
        });
        held.collect()
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The executor pool starts to drain: it starts no runs from now on.
    pub(super) fn drain(&mut self) {
        self.draining = true;
    }

    /// Carries out the orders of the executor pool, and grants it a slot if it waits for one.
    pub(super) fn carry_out(&mut self, cx: &mut Context<'_>, address: Address) {
        for order in self.slots.orders() {
            match order {
                Order::Launch(start, pulse) => self.launch(cx, address, *start, pulse),
                Order::Signal(job) => self.signal(cx, &job, address.worker),
                Order::Abort(job) => self.abort(cx, &job, address.worker),
            }
        }
        let words = self.slots.words();
        if !words.is_empty() {
            cx.tell(Route::RunToReporter, address.reporter(StatusReporterMsg::Said(words)));
        }
        if self.slots.grant() {
            cx.tell(Route::RunToExecutor, address.executor(ExecutorPoolMsg::Slot));
        }
    }

    /// Runs a handler in a granted slot. A job with a lane does not start once its session may have ended.
    fn launch(&mut self, cx: &mut Context<'_>, address: Address, start: Start, pulse: Arc<Pulse>) {
        // An attempt that was taken over has started before.
        let begins = start.assignment.moved_from.is_none();
        assert!(!begins || !start.record.is_overdue(cx.wall()), "S16: {} starts too late", start.job);
        assert!(!begins || !self.draining, "S18: {} starts on a draining worker", start.job);
        if lapsed(cx, address, &start) {
            self.slots.give_back();
            let ended = Ended { job: start.job, attempt: start.assignment.attempt, how: How::Lapsed };
            return cx.tell(Route::RunToExecutor, address.executor(ExecutorPoolMsg::Ended(vec![ended])));
        }
        self.next += 1;
        let id = self.next;
        let of = format!("{} {} {}", start.job, start.record.generation, start.assignment.attempt);
        let drawn = xxh3_64_with_seed(of.as_bytes(), self.seed);
        let kind = start.record.kind.as_str();
        let laned = start.record.placement.lane.is_some();
        let longest = match kind {
            "slow" => 12_000,
            "stubborn" => 6_000,
            "steady" => 12_000,
            _ if drawn.is_multiple_of(8) => 3_000,
            _ => 200,
        };
        let every_other = (drawn >> 8).is_multiple_of(2);
        let deaf = kind == "hangs" && every_other && !laned;
        let took_ms = match kind {
            "hangs" => HANGS_MS,
            _ => 1 + (drawn >> 16) % longest,
        };
        let result = Payload::json(of.into_bytes()).expect("a short text is within the payload limit");
        let follows = kind.ends_with(".join") || kind.ends_with(".finished");
        let nests = kind.starts_with("nest") && !follows;
        let fails = follows || (nests && drawn.is_multiple_of(3));
        let how = match kind {
            _ if fails && every_other => How::Failed("failed by plan".to_owned()),
            _ if nests && (drawn >> 20).is_multiple_of(16) => How::Invalid("invalid by plan".to_owned()),
            "flaky" | "steady" if every_other => How::Failed("failed by plan".to_owned()),
            "never" => How::Invalid("invalid by plan".to_owned()),
            "later" if start.assignment.attempt < 3 => How::Deferred(Duration::from_millis(took_ms)),
            _ => How::Succeeded(result),
        };
        let mut says = None;
        if kind == "steady" || (nests && (drawn >> 24).is_multiple_of(2)) {
            let from = start.assignment.progress.as_ref().or(start.record.progress.as_ref());
            let done = from.and_then(|left| left.checkpoint().first().copied()).unwrap_or_default();
            // The report is sent immediately, so it may reach the reporter before the executor's message.
            says = Some(done + 1);
        }
        cx.record(event(&start, address.worker, RunStep::Started));
        if kind == "killer" || (kind == "poison" && every_other) {
            cx.after(Duration::from_millis(took_ms), address.run(RunMsg::Kill(id)));
        }
        let goes_on = Rc::new(Cell::new(true));
        if nests {
            // The submissions of a zombie are fenced by the attempt until the group exists, then by the group.
            let obeys = !(drawn >> 28).is_multiple_of(4);
            let goes_on = if obeys { Rc::clone(&goes_on) } else { Rc::new(Cell::new(true)) };
            let spawned = sub_jobs::of(&start, address.worker, self.seed, goes_on);
            cx.begin(move |shell| async move {
                let all = shell.spawn(spawned).await;
                shell.tell(address.run(RunMsg::Spawned(id, all)));
            });
        } else {
            cx.after(Duration::from_millis(took_ms), address.run(RunMsg::Done(id)));
        }
        if let Some(limit) = start.record.policy.timeout.filter(|limit| as_millis(*limit) < took_ms) {
            cx.after(limit, address.run(RunMsg::TimedOut(id)));
        }
        if let Some(at) = next_check(trusted_until(cx, address), cx.now()).filter(|_| laned) {
            cx.out.push(Out::At(at.0 * 1_000, address.run(RunMsg::Lapse(id))));
        }
        let blocking = (kind == "stubborn" && !laned) || deaf;
        let listens = (drawn >> 12).is_multiple_of(3);
        self.of_jobs.insert((start.job.clone(), address.worker), id);
        let running = Running { address, start, pulse, how, blocking, listens, took_ms, goes_on };
        self.runs.insert(id, running);
        if let Some(checkpoint) = says {
            self.say(cx, id, checkpoint);
        }
    }

    pub(crate) fn handle(&mut self, cx: &mut Context<'_>, msg: RunMsg) {
        match msg {
            RunMsg::Done(id) => {
                let Some(running) = self.runs.get(&id) else { return };
                // A result that comes too late does not count.
                let how = if lapsed(cx, running.address, &running.start) {
                    How::Lapsed
                } else {
                    running.how.clone()
                };
                self.tell(cx, id, how);
                self.over(cx, id);
            }
            RunMsg::Spawned(id, all) => {
                let Some(running) = self.runs.get_mut(&id) else { return };
                if !all {
                    running.how = How::Failed("not all sub-jobs were submitted".to_owned());
                }
                cx.after(Duration::from_millis(running.took_ms), running.address.run(RunMsg::Done(id)));
            }
            RunMsg::TimedOut(id) => self.give_up(cx, id, How::Failed("timed out".to_owned())),
            RunMsg::Lapse(id) => {
                let Some(running) = self.runs.get(&id) else { return };
                match next_check(trusted_until(cx, running.address), cx.now()) {
                    None => self.give_up(cx, id, How::Lapsed),
                    Some(at) => cx.out.push(Out::At(at.0 * 1_000, running.address.run(RunMsg::Lapse(id)))),
                }
            }
            RunMsg::Say(id, checkpoint) => self.say(cx, id, checkpoint),
            RunMsg::Kill(id) => {
                if self.runs.contains_key(&id) {
                    cx.out.push(Out::Die);
                }
            }
        }
    }

    fn say(&self, cx: &mut Context<'_>, id: u64, checkpoint: u8) {
        let Some(Running { address, start, pulse, .. }) = self.runs.get(&id) else { return };
        pulse
            .progress(|said| said.with_checkpoint([checkpoint]))
            .expect("one byte is within the checkpoint limit");
        // A run that was given up has no listener.
        if self.of_jobs.get(&(start.job.clone(), address.worker)) == Some(&id) {
            cx.record(event(start, address.worker, RunStep::Said(checkpoint)));
        }
        cx.after(SAYS_EVERY, address.run(RunMsg::Say(id, checkpoint.saturating_add(1))));
    }

    /// Signals a handler to stop.
    fn signal(&mut self, cx: &mut Context<'_>, job: &JobId, worker: WorkerId) {
        let Some(id) = self.of_jobs.get(&(job.clone(), worker)) else { return };
        let Some(running) = self.runs.get_mut(id).filter(|running| running.listens && !running.blocking)
        else {
            return;
        };
        running.how = How::Failed("stopped by a signal".to_owned());
        cx.after(Duration::from_millis(20), running.address.run(RunMsg::Done(*id)));
    }

    /// Aborts a run.
    fn abort(&mut self, cx: &mut Context<'_>, job: &JobId, worker: WorkerId) {
        if let Some(id) = self.of_jobs.get(&(job.clone(), worker)).copied() {
            self.give_up(cx, id, How::Aborted);
        }
    }

    /// The executor has ended: everything that can be aborted is aborted.
    pub(super) fn abandon_all(&mut self, cx: &mut Context<'_>) {
        self.draining = false;
        self.of_jobs.clear();
        let ends: Vec<u64> = self.runs.iter().filter(|(_, run)| !run.blocking).map(|(id, _)| *id).collect();
        ends.into_iter().for_each(|id| self.over(cx, id));
    }

    /// Ends a run except for its code, which a blocking handler continues.
    fn give_up(&mut self, cx: &mut Context<'_>, id: u64, how: How) {
        let Some(running) = self.runs.get(&id) else { return };
        let blocking = running.blocking;
        self.tell(cx, id, how);
        if !blocking {
            self.over(cx, id);
        }
    }

    /// Informs the executor, once.
    fn tell(&mut self, cx: &mut Context<'_>, id: u64, how: How) {
        let Some(Running { address, start, .. }) = self.runs.get(&id) else { return };
        let key = (start.job.clone(), address.worker);
        if self.of_jobs.get(&key) != Some(&id) {
            return;
        }
        self.of_jobs.remove(&key);
        let ended = Ended { job: start.job.clone(), attempt: start.assignment.attempt, how };
        cx.tell(Route::RunToExecutor, address.executor(ExecutorPoolMsg::Ended(vec![ended])));
    }

    /// The handler's code has returned: its slot is free.
    fn over(&mut self, cx: &mut Context<'_>, id: u64) {
        if let Some(Running { address, start, goes_on, .. }) = self.runs.remove(&id) {
            goes_on.set(false);
            cx.record(event(&start, address.worker, RunStep::Ended));
            self.slots.give_back();
        }
    }
}

/// Returns whether the lane's next job may already run.
fn lapsed(cx: &Context<'_>, address: Address, start: &Start) -> bool {
    start.record.placement.lane.is_some() && next_check(trusted_until(cx, address), cx.now()).is_none()
}

/// Returns until when the session is trusted. A session that has ended is not trusted.
fn trusted_until(cx: &Context<'_>, address: Address) -> Millis {
    let is_present = cx.view.generation == address.zk.0;
    if is_present { Millis(cx.view.trusted_until_us() / 1_000) } else { cx.now() }
}

fn event(start: &Start, worker: WorkerId, step: RunStep) -> EventKind {
    EventKind::Run {
        worker,
        job: start.job.clone(),
        generation: start.record.generation,
        attempt: start.assignment.attempt,
        token: start.version,
        payload: Digest::of(start.record.payload.bytes()),
        step,
    }
}
