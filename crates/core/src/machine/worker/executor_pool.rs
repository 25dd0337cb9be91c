//! Which attempts run, which wait for a slot, and how each ends.
//!
//! ```text
//!            slot                    handler ended, or was aborted
//!  Waiting ────────▶ Running(stop?) ───────────────────────────────▶ Reported ──closed──▶ forgotten
//!     └── cancelled or handed back before it ran ───────────────────────▲
//! ```
//!
//! | wish to stop | the handler succeeded after all | it failed, or was aborted |
//! | --- | --- | --- |
//! | none | succeeded | failed; released if it lapsed |
//! | cancel flag | succeeded: a finished run wins | cancelled |
//! | hand back (drain) | succeeded | released |
//! | its lease is over | succeeded | lease expired |
//! | zombie | dropped | dropped |
//!
//! What a handler says of the job, that it can never succeed or shall be tried later, stands as a success does, but for a
//! cancel.
//!
//! An attempt that still waits for a slot when a third of its lease has passed is handed back: nobody knows when the slots
//! are free, and another worker may have one.
//!
//! An attempt whose job has a lane is aborted by itself when the session may have ended (*lapsed*): the next job of the
//! lane may begin then, and two must not run at once (S6). It ends as released, or as cancelled if that was wished.
//!
//! An attempt whose job has expired when its slot comes is not started: the leader assigned it in time, and it arrived late.
//!
//! A wish first signals the handler; when its grace is over, the attempt is aborted. While disconnected nothing
//! starts, and what runs goes on. Draining starts nothing any more and hands back what waits; what runs has
//! until the drain's deadline.
//!
//! Slots are counted outside, by permits that outlive an incarnation: a blocking handler that ignores its
//! signal keeps its slot until it returns, also after its attempt was closed. So the machine asks for a slot
//! and waits for the grant.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{Connectivity, Finished, Start};
use crate::job::{Assignment, Ending, Payload};
use crate::name::JobId;
use crate::time::{Millis, WallMillis};

/// From the signal to the abort: time for an async handler to put its things in order, short enough that a
/// cancelled job is seen to be cancelled.
pub const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// These are assigned.
    Start(Vec<Start>),
    /// A slot that was asked for is free, at this wall time.
    SlotGranted(WallMillis),
    /// These are over.
    Ended(Vec<Ended>),
    /// A client set the cancel flag.
    Cancel {
        /// Which job.
        job: JobId,
        /// Which attempt.
        attempt: u32,
        /// The assignment with the flag.
        assignment: Assignment,
        /// Its version.
        version: i32,
    },
    /// A third of this attempt's lease has passed.
    Third(JobId, u32),
    /// This attempt's lease is over.
    Lapsed(JobId, u32),
    /// These assignments were deleted, by our own report or by somebody else.
    Vanished(Vec<JobId>),
    /// This attempt was closed by somebody else.
    Zombie(JobId, u32),
    /// The grace of this attempt's signal is over.
    GraceOver(JobId, u32),
    /// The reporter is done with these: their attempts are closed.
    Closed(Vec<JobId>),
    /// The connection is lost.
    Hold,
    /// It is back.
    Resume,
    /// Finish what runs until then, hand back the rest.
    Drain(Millis),
    /// The time of an [`Effect::WakeAt`] has come.
    Wake,
}

/// An attempt's handler is over.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ended {
    /// Which job.
    pub job: JobId,
    /// Which attempt.
    pub attempt: u32,
    /// How.
    pub how: Run,
    /// How long it ran.
    pub ran: Duration,
}

/// How a handler ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Run {
    /// With a result.
    Succeeded(Payload),
    /// With an error, a panic, or at its timeout.
    Failed(String),
    /// It said that the job can never succeed.
    Invalid(String),
    /// It asked to be called again later.
    Deferred(Duration),
    /// It was aborted.
    Aborted,
    /// It holds a lane, and was aborted when its session could be trusted no longer.
    Lapsed,
}

/// What shall happen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Grant a slot as soon as one is free.
    WantSlot,
    /// The granted slot is not needed.
    ReturnSlot,
    /// Run it in the granted slot.
    Launch(Box<Start>),
    /// Tell the handler to stop, and come back with [`Event::GraceOver`] after [`CANCEL_GRACE`].
    Signal(JobId, u32),
    /// Abort it: [`Event::Ended`] follows.
    Abort(JobId, u32),
    /// Close its attempt.
    Report(Box<Finished>),
    /// Tell the inbox that it may be read anew.
    Closed(JobId),
    /// Ask the inbox whether its assignment still stands.
    Recheck(JobId),
    /// A zombie's end was dropped.
    DroppedZombie(JobId),
    /// Send [`Event::Wake`] then.
    WakeAt(Millis),
    /// Draining, and nothing is left here.
    Idle,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Waiting(Box<Start>),
    Running(Box<Start>, Wish),
    /// With the reporter.
    Reported,
}

/// Why a running attempt shall stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wish {
    None,
    Cancel,
    Release,
    /// Its lease is over.
    Expire,
    /// Its attempt is closed already.
    Zombie,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Slot {
    /// Not asked for.
    Unasked,
    Asked,
}

/// The machine of one incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExecutorPool {
    jobs: BTreeMap<JobId, Phase>,
    waiting: VecDeque<JobId>,
    running: usize,
    slot: Slot,
    connectivity: Connectivity,
    drain: Option<Millis>,
}

impl Default for ExecutorPool {
    fn default() -> Self {
        Self::new()
    }
}

impl ExecutorPool {
    /// Has no job yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            jobs: BTreeMap::new(),
            waiting: VecDeque::new(),
            running: 0,
            slot: Slot::Unasked,
            connectivity: Connectivity::Up,
            drain: None,
        }
    }

    /// How many attempts run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running
    }

    /// How many of them have an attempt that is not closed by somebody else.
    #[must_use]
    pub fn attending(&self) -> usize {
        let closed = |phase: &&Phase| matches!(phase, Phase::Running(_, Wish::Zombie));
        self.running - self.jobs.values().filter(closed).count()
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
                // One that was reported vanished by its report.
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
            Event::Hold => self.connectivity = Connectivity::Down,
            Event::Resume => self.connectivity = Connectivity::Up,
            Event::Drain(until) => self.drain(until, out),
            Event::Wake => {}
        }
        if self.drain.is_some_and(|until| until <= now) {
            self.release_running(out);
        }
        self.want_slot(out);
    }

    fn start(&mut self, start: Start, out: &mut Vec<Effect>) {
        if self.jobs.contains_key(&start.job) {
            return;
        }
        let ending = match self.drain {
            _ if start.assignment.cancel => Ending::Cancelled,
            Some(_) => Ending::Released,
            None => {
                self.waiting.push_back(start.job.clone());
                self.jobs.insert(start.job.clone(), Phase::Waiting(Box::new(start)));
                return;
            }
        };
        self.report(start, ending, None, out);
    }

    fn want_slot(&mut self, out: &mut Vec<Effect>) {
        let wanted = self.connectivity == Connectivity::Up && !self.waiting.is_empty();
        if wanted && self.slot == Slot::Unasked {
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
        self.running += 1;
        self.jobs.insert(start.job.clone(), Phase::Running(start, Wish::None));
    }

    /// Takes out the first that waits and may start. Those that may not any more are ended on the way.
    fn next(&mut self, wall: WallMillis, out: &mut Vec<Effect>) -> Option<Box<Start>> {
        if self.connectivity == Connectivity::Down {
            return None;
        }
        while let Some(job) = self.waiting.pop_front() {
            let Some(Phase::Waiting(start)) = self.jobs.remove(&job) else { continue };
            if !start.record.is_overdue(wall) {
                return Some(start);
            }
            self.report(*start, Ending::Overdue, None, out);
        }
        None
    }

    fn ended(&mut self, ended: Ended, out: &mut Vec<Effect>) {
        if !self.runs(&ended.job, ended.attempt) {
            return;
        }
        let Some(Phase::Running(start, wish)) = self.jobs.remove(&ended.job) else { return };
        self.running -= 1;
        let ending = match (wish, ended.how) {
            (Wish::Zombie, _) => {
                out.extend([Effect::DroppedZombie(ended.job.clone()), Effect::Closed(ended.job)]);
                return self.idle(out);
            }
            (Wish::None | Wish::Cancel | Wish::Release | Wish::Expire, Run::Succeeded(result)) => {
                Ending::Succeeded(result)
            }
            (
                Wish::Cancel,
                Run::Failed(_) | Run::Invalid(_) | Run::Deferred(_) | Run::Aborted | Run::Lapsed,
            ) => Ending::Cancelled,
            (Wish::None | Wish::Release | Wish::Expire, Run::Invalid(why)) => Ending::Invalid(why),
            (Wish::None | Wish::Release | Wish::Expire, Run::Deferred(wait)) => Ending::Deferred(wait),
            (Wish::Release, Run::Failed(_) | Run::Aborted | Run::Lapsed) => Ending::Released,
            (Wish::Expire, Run::Failed(_) | Run::Aborted | Run::Lapsed) => Ending::LeaseExpired,
            // If the session lives after all: nobody did anything wrong.
            (Wish::None, Run::Lapsed) => Ending::Released,
            (Wish::None, Run::Failed(error)) => Ending::Failed(error),
            (Wish::None, Run::Aborted) => Ending::Failed("the handler was aborted".to_owned()),
        };
        self.report(*start, ending, Some(ended.ran), out);
    }

    fn report(&mut self, start: Start, ending: Ending, ran: Option<Duration>, out: &mut Vec<Effect>) {
        self.jobs.insert(start.job.clone(), Phase::Reported);
        out.push(Effect::Report(Box::new(Finished { start, ending, ran })));
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
                self.end_waiting(job, Ending::Cancelled, out);
            }
            Some(Phase::Running(start, wish)) if start.assignment.attempt == attempt => {
                (start.assignment, start.assignment_version) = (assignment, version);
                if matches!(wish, Wish::None | Wish::Release | Wish::Expire) {
                    let signalled = *wish != Wish::None;
                    *wish = Wish::Cancel;
                    if !signalled {
                        out.push(Effect::Signal(job.clone(), attempt));
                    }
                }
            }
            // Closed meanwhile, or on its way to be: the reporter knows the flag, or reads it when its write is refused.
            Some(Phase::Waiting(_) | Phase::Running(..) | Phase::Reported) | None => {}
        }
    }

    fn third(&mut self, job: &JobId, attempt: u32, out: &mut Vec<Effect>) {
        match self.jobs.get(job) {
            Some(Phase::Waiting(start)) if start.assignment.attempt == attempt => {
                self.end_waiting(job, Ending::Released, out);
            }
            // It has begun, or is over.
            Some(Phase::Waiting(_) | Phase::Running(..) | Phase::Reported) | None => {}
        }
    }

    fn lapsed(&mut self, job: &JobId, attempt: u32, out: &mut Vec<Effect>) {
        match self.jobs.get_mut(job) {
            Some(Phase::Running(start, wish @ Wish::None)) if start.assignment.attempt == attempt => {
                *wish = Wish::Expire;
                out.push(Effect::Signal(job.clone(), attempt));
            }
            // It stops already, or is over; one that waited was handed back before.
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
            Some(Phase::Running(start, wish)) if start.assignment.attempt == attempt => {
                if *wish == Wish::None {
                    out.push(Effect::Signal(job, attempt));
                }
                *wish = Wish::Zombie;
            }
            // The reporter finds out by itself, and says so.
            Some(Phase::Waiting(_) | Phase::Running(..) | Phase::Reported) | None => {}
        }
    }

    fn closed(&mut self, job: JobId, out: &mut Vec<Effect>) {
        if let Some(Phase::Reported) = self.jobs.get(&job) {
            self.jobs.remove(&job);
            out.push(Effect::Closed(job));
            self.idle(out);
        }
    }

    fn drain(&mut self, until: Millis, out: &mut Vec<Effect>) {
        self.drain = Some(until);
        for job in std::mem::take(&mut self.waiting) {
            self.end_waiting(&job, Ending::Released, out);
        }
        out.push(Effect::WakeAt(until));
        self.idle(out);
    }

    fn release_running(&mut self, out: &mut Vec<Effect>) {
        for (job, phase) in &mut self.jobs {
            if let Phase::Running(start, wish @ Wish::None) = phase {
                *wish = Wish::Release;
                out.push(Effect::Signal(job.clone(), start.assignment.attempt));
            }
        }
    }

    fn end_waiting(&mut self, job: &JobId, ending: Ending, out: &mut Vec<Effect>) {
        self.waiting.retain(|waiting| waiting != job);
        if let Some(Phase::Waiting(start)) = self.jobs.remove(job) {
            self.report(*start, ending, None, out);
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

#[cfg(test)]
#[path = "executor_pool_tests.rs"]
mod tests;
