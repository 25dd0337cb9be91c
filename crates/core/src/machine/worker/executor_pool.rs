//! The executor: decides which attempts run, which wait for a slot, and how each ends.
//!
//! ```text
//!            slot                    handler ended, or was aborted
//!  Waiting ────────▶ Running(reason) ──────────────────────────────▶ Reported ──closed──▶ forgotten
//!     └── cancelled or handed back before it ran ───────────────────────▲
//! ```
//!
//! How an attempt ends is decided in `ending`.
//!
//! An attempt that still waits for a slot after a third of its lease is handed back: the time until a slot is free is
//! unknown, and another worker may have one.
//!
//! When the session may have ended, an attempt whose job has a lane *lapses*: its runner aborts it without an
//! effect of this machine, because the next job of the lane may start, and two jobs of a lane must not run at the same
//! time (S6). It ends as released, or as cancelled if a cancel was requested.
//!
//! A kind may have a concurrency limit. An attempt whose kind has reached its limit keeps its place in the queue, and
//! attempts of other kinds behind it start before it. Abandoned handlers count, because their code still runs. The leader
//! does not know the limits: such an attempt uses one of the worker's offered slots until it starts or is handed back.
//!
//! An attempt is not started if its job has expired when the slot is granted: the leader assigned it in time, but it
//! arrived late.
//!
//! An operator can pause a kind on this worker, or leave it without slots. Then the waiting attempts of that kind, or all, are
//! handed back, and so is every attempt that arrives later. Running attempts continue.
//!
//! A stop first signals the handler; after the grace period the attempt is aborted. While disconnected, no
//! attempt starts, and running attempts continue. A drain starts no attempts and hands back the waiting ones; running
//! attempts may continue until the drain's deadline.
//!
//! **An attempt that was taken over** from another worker runs already, in a process that this worker serves. It is treated as
//! running: it is launched in any case, so that the process hears how it ends, and a cancel, a drain or a pause of its kind
//! then concerns it as any running attempt. It takes the first free slot, whatever the limit of its kind.
//!
//! Slots are permits that are counted outside this machine and outlive an incarnation: a blocking handler that ignores
//! its signal keeps its slot until it returns, even after its attempt was closed. So the machine requests a slot and
//! waits for the grant.

mod ending;
mod event;

use std::collections::{BTreeMap, VecDeque};

use super::{Connectivity, Finished, Start};
use crate::job::{Assignment, Ending};
use crate::name::{JobId, Kind};
use crate::segment::SegmentId;
use crate::time::{Millis, WallMillis};
use crate::worker::WorkerSettings;

pub use self::event::{CANCEL_GRACE, Effect, Ended, Event, Run, Stop};

use self::ending::StopReason;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Waiting(Box<Start>),
    Running(Box<Start>, StopReason),
    /// The reporter has the attempt.
    Reported,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Slot {
    /// Not requested.
    Unasked,
    Asked,
}

/// State machine of one incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExecutorPool {
    jobs: BTreeMap<JobId, Phase>,
    waiting: VecDeque<JobId>,
    running: usize,
    /// The running attempts that were closed by another process.
    zombies: usize,
    /// The concurrency limits. A kind without a limit may use all slots.
    limits: BTreeMap<Kind, u32>,
    /// The running attempts of the kinds with a limit.
    running_of: BTreeMap<Kind, u32>,
    abandoned: BTreeMap<Kind, u32>,
    slot: Slot,
    connectivity: Connectivity,
    drain: Option<Millis>,
    settings: WorkerSettings,
}

impl Default for ExecutorPool {
    fn default() -> Self {
        Self::new()
    }
}

impl ExecutorPool {
    /// Creates the machine without jobs and without concurrency limits.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limits(BTreeMap::new())
    }

    /// Creates the machine without jobs, with the concurrency limits of some kinds.
    #[must_use]
    pub fn with_limits(limits: BTreeMap<Kind, u32>) -> Self {
        Self {
            jobs: BTreeMap::new(),
            waiting: VecDeque::new(),
            running: 0,
            zombies: 0,
            limits,
            running_of: BTreeMap::new(),
            abandoned: BTreeMap::new(),
            slot: Slot::Unasked,
            connectivity: Connectivity::Up,
            drain: None,
            settings: WorkerSettings::default(),
        }
    }

    /// Returns the number of running attempts.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running
    }

    /// Returns the number of running attempts that were not closed by another process.
    #[must_use]
    pub fn attending(&self) -> usize {
        self.running - self.zombies
    }

    /// Handles one event.
    pub fn handle(&mut self, now: Millis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Start(starts) => starts.into_iter().for_each(|start| self.start(start, out)),
            Event::SlotGranted(wall) => self.slot_granted(wall, out),
            Event::Ended(ended) => ended.into_iter().for_each(|ended| self.ended(ended, out)),
            Event::Cancel { job, attempt, assignment, version } => {
                self.cancel(&job, attempt, assignment, version, out);
            }
            Event::Third(job, attempt) => self.third(&job, attempt, out),
            Event::Lapsed(job, attempt) => self.lapsed(&job, attempt, out),
            Event::Vanished(jobs) => {
                // A reported job's assignment is deleted by its own report.
                let open = |job: &JobId| !matches!(self.jobs.get(job), None | Some(Phase::Reported));
                out.extend(jobs.into_iter().filter(open).map(Effect::Recheck));
            }
            Event::Zombie(job, attempt) => self.zombie(job, attempt, out),
            Event::GraceOver(job, attempt) => {
                if self.runs(&job, attempt) {
                    out.push(Effect::Abort(job, attempt));
                }
            }
            Event::Closed(jobs) => jobs.into_iter().for_each(|job| self.closed(job, out)),
            Event::HandBack(id) => {
                let is_member = |start: &Start| start.packed.as_ref().is_some_and(|packed| packed.id == id);
                self.release_waiting(is_member, out);
            }
            Event::Hold => self.connectivity = Connectivity::Down,
            Event::Resume => self.connectivity = Connectivity::Up,
            Event::Drain(until) => self.drain(until, out),
            Event::Settings(settings) => self.set(settings, out),
            Event::Abandoned(abandoned) => self.abandoned = abandoned,
            Event::Wake => {}
        }
        if self.drain.is_some_and(|until| until <= now) {
            self.release_waiting(|_| true, out);
            self.release_running(out);
        }
        self.want_slot(out);
    }

    fn start(&mut self, start: Start, out: &mut Vec<Effect>) {
        if self.jobs.contains_key(&start.job) {
            return;
        }
        if is_taken_over(&start) {
            self.waiting.push_front(start.job.clone());
            self.jobs.insert(start.job.clone(), Phase::Waiting(Box::new(start)));
            return;
        }
        let ending = match self.drain {
            _ if start.assignment.cancel => Ending::Cancelled,
            Some(_) => Ending::Released,
            None if !self.settings.starts(&start.record.kind) => {
                // Assigned before an operator paused the kind; or the kind is resumed, and the wing has yet to see that.
                out.push(Effect::NotServed);
                Ending::Released
            }
            None => {
                self.waiting.push_back(start.job.clone());
                self.jobs.insert(start.job.clone(), Phase::Waiting(Box::new(start)));
                return;
            }
        };
        self.report(start, ending, out);
    }

    fn want_slot(&mut self, out: &mut Vec<Effect>) {
        let may_start = |job| match self.jobs.get(job) {
            Some(Phase::Waiting(start)) => is_taken_over(start) || self.is_below_limit(&start.record.kind),
            Some(Phase::Running(..) | Phase::Reported) | None => false,
        };
        let wanted = self.connectivity == Connectivity::Up && self.slot == Slot::Unasked;
        if wanted && self.waiting.iter().any(may_start) {
            self.slot = Slot::Asked;
            out.push(Effect::WantSlot);
        }
    }

    fn slot_granted(&mut self, wall: WallMillis, out: &mut Vec<Effect>) {
        self.slot = Slot::Unasked;
        let Some(start) = self.next(wall, out) else {
            out.push(Effect::ReturnSlot);
            return;
        };
        out.push(Effect::Launch(start.clone()));
        let cancelled = start.assignment.cancel;
        if cancelled {
            out.push(Effect::Signal(start.job.clone(), start.assignment.attempt, Stop::Cancelled));
        }
        self.running += 1;
        if self.limits.contains_key(&start.record.kind) {
            *self.running_of.entry(start.record.kind.clone()).or_default() += 1;
        }
        let reason = if cancelled { StopReason::Cancel } else { StopReason::None };
        self.jobs.insert(start.job.clone(), Phase::Running(start, reason));
    }

    /// Whether another attempt of the kind may start.
    fn is_below_limit(&self, kind: &Kind) -> bool {
        let Some(limit) = self.limits.get(kind) else { return true };
        let count = |of: &BTreeMap<Kind, u32>| of.get(kind).copied().unwrap_or(0);
        count(&self.running_of).saturating_add(count(&self.abandoned)) < *limit
    }

    /// Takes out the first waiting attempt that may start, and ends expired ones before it.
    fn next(&mut self, wall: WallMillis, out: &mut Vec<Effect>) -> Option<Box<Start>> {
        if self.connectivity == Connectivity::Down {
            return None;
        }
        let mut at = 0;
        while let Some(job) = self.waiting.get(at) {
            let Some(Phase::Waiting(start)) = self.jobs.get(job) else {
                self.waiting.remove(at);
                continue;
            };
            let runs_already = is_taken_over(start);
            let overdue = !runs_already && start.record.is_overdue(wall);
            if !runs_already && !overdue && !self.is_below_limit(&start.record.kind) {
                at += 1;
                continue;
            }
            let job = self.waiting.remove(at)?;
            let Some(Phase::Waiting(start)) = self.jobs.remove(&job) else { continue };
            if !overdue {
                return Some(start);
            }
            self.report(*start, Ending::Expired, out);
        }
        None
    }

    fn ended(&mut self, ended: Ended, out: &mut Vec<Effect>) {
        if !self.runs(&ended.job, ended.attempt) {
            return;
        }
        let Some(Phase::Running(start, reason)) = self.jobs.remove(&ended.job) else { return };
        self.running -= 1;
        self.zombies -= usize::from(reason == StopReason::Zombie);
        if let Some(running) = self.running_of.get_mut(&start.record.kind) {
            *running -= 1;
        }
        let Some(ending) = reason.ending(ended.how) else {
            out.extend([Effect::DroppedZombie(ended.job.clone()), Effect::Closed(ended.job)]);
            return self.idle(out);
        };
        self.report(*start, ending, out);
    }

    fn report(&mut self, start: Start, ending: Ending, out: &mut Vec<Effect>) {
        self.jobs.insert(start.job.clone(), Phase::Reported);
        out.push(Effect::Report(Box::new(Finished { start, ending })));
    }

    fn cancel(
        &mut self,
        job: &JobId,
        attempt: u32,
        assignment: Assignment,
        version: i32,
        out: &mut Vec<Effect>,
    ) {
        match self.jobs.get_mut(job) {
            Some(Phase::Waiting(start)) if start.assignment.attempt == attempt => {
                (start.assignment, start.assignment_version) = (assignment, version);
                // Otherwise the launch is followed by the signal.
                if !is_taken_over(start) {
                    self.end_waiting(job, Ending::Cancelled, out);
                }
            }
            Some(Phase::Running(start, reason)) if start.assignment.attempt == attempt => {
                (start.assignment, start.assignment_version) = (assignment, version);
                if matches!(reason, StopReason::None | StopReason::Release | StopReason::Expire) {
                    let signalled = *reason != StopReason::None;
                    *reason = StopReason::Cancel;
                    if !signalled {
                        out.push(Effect::Signal(job.clone(), attempt, Stop::Cancelled));
                    }
                }
            }
            // Closed, or about to be: the reporter knows the flag, or reads it when its write is rejected.
            Some(Phase::Waiting(_) | Phase::Running(..) | Phase::Reported) | None => {}
        }
    }

    fn third(&mut self, job: &JobId, attempt: u32, out: &mut Vec<Effect>) {
        match self.jobs.get(job) {
            Some(Phase::Waiting(start)) if start.assignment.attempt == attempt => {
                self.end_waiting(job, Ending::Released, out);
            }
            // It has started, or has ended.
            Some(Phase::Waiting(_) | Phase::Running(..) | Phase::Reported) | None => {}
        }
    }

    fn lapsed(&mut self, job: &JobId, attempt: u32, out: &mut Vec<Effect>) {
        match self.jobs.get_mut(job) {
            Some(Phase::Running(start, reason @ StopReason::None)) if start.assignment.attempt == attempt => {
                *reason = StopReason::Expire;
                out.push(Effect::Signal(job.clone(), attempt, Stop::LeaseExpired));
            }
            // It is stopping or has ended; a waiting attempt was handed back before.
            Some(Phase::Waiting(_) | Phase::Running(..) | Phase::Reported) | None => {}
        }
    }

    fn zombie(&mut self, job: JobId, attempt: u32, out: &mut Vec<Effect>) {
        match self.jobs.get_mut(&job) {
            Some(Phase::Waiting(start)) if start.assignment.attempt == attempt => {
                self.waiting.retain(|waiting| *waiting != job);
                self.jobs.remove(&job);
                out.push(Effect::Closed(job));
                self.idle(out);
            }
            Some(Phase::Running(start, reason)) if start.assignment.attempt == attempt => {
                if *reason == StopReason::None {
                    out.push(Effect::Signal(job, attempt, Stop::Closed));
                }
                self.zombies += usize::from(*reason != StopReason::Zombie);
                *reason = StopReason::Zombie;
            }
            // The reporter detects this and reports it.
            Some(Phase::Waiting(_) | Phase::Running(..) | Phase::Reported) | None => {}
        }
    }

    fn closed(&mut self, job: JobId, out: &mut Vec<Effect>) {
        if let Some(Phase::Reported) = self.jobs.get(&job) {
            self.jobs.remove(&job);
            out.push(Effect::Closed(job));
            self.idle(out);
        } else if SegmentId::of_job(&job).is_some() {
            out.push(Effect::Closed(job));
        }
    }

    fn drain(&mut self, until: Millis, out: &mut Vec<Effect>) {
        self.drain = Some(until);
        self.release_waiting(|start| !is_taken_over(start), out);
        out.push(Effect::WakeAt(until));
        self.idle(out);
    }

    /// Hands back the waiting attempts that the settings exclude. Running attempts continue.
    fn set(&mut self, settings: WorkerSettings, out: &mut Vec<Effect>) {
        self.release_waiting(|start| !is_taken_over(start) && !settings.starts(&start.record.kind), out);
        self.settings = settings;
    }

    fn release_waiting(&mut self, is_released: impl Fn(&Start) -> bool, out: &mut Vec<Effect>) {
        let released = |job: &&JobId| match self.jobs.get(*job) {
            Some(Phase::Waiting(start)) => is_released(start),
            Some(Phase::Running(..) | Phase::Reported) | None => false,
        };
        let released = self.waiting.iter().filter(released).cloned().collect::<Vec<_>>();
        for job in released {
            self.end_waiting(&job, Ending::Released, out);
        }
    }

    fn release_running(&mut self, out: &mut Vec<Effect>) {
        for (job, phase) in &mut self.jobs {
            if let Phase::Running(start, reason @ StopReason::None) = phase {
                *reason = StopReason::Release;
                out.push(Effect::Signal(job.clone(), start.assignment.attempt, Stop::HandedBack));
            }
        }
    }

    fn end_waiting(&mut self, job: &JobId, ending: Ending, out: &mut Vec<Effect>) {
        self.waiting.retain(|waiting| waiting != job);
        if let Some(Phase::Waiting(start)) = self.jobs.remove(job) {
            self.report(*start, ending, out);
        }
    }

    fn runs(&self, job: &JobId, attempt: u32) -> bool {
        let phase = self.jobs.get(job);
        matches!(phase, Some(Phase::Running(start, _)) if start.assignment.attempt == attempt)
    }

    fn idle(&self, out: &mut Vec<Effect>) {
        if self.drain.is_some() && self.jobs.is_empty() {
            out.push(Effect::Idle);
        }
    }
}

/// Whether the attempt was moved here from another worker, so it runs already.
fn is_taken_over(start: &Start) -> bool {
    start.assignment.moved_from.is_some()
}

#[cfg(test)]
#[path = "executor_pool_tests.rs"]
mod tests;
