//! Signs of life: which assignments are set anew, when, and with what.
//!
//! A *beat* sets an attempt's assignment: its lease begins anew, and its progress and checkpoint stand in ZooKeeper. The
//! leader takes an attempt whose lease is over from its worker ([`machine::lease_watcher`](crate::machine::lease_watcher)), so the worker
//! has a clock for each lease too, and ends the attempt first.
//!
//! | what is wanted | is written |
//! | --- | --- |
//! | a renewal, automatic or asked for | when a third of the standing lease has passed |
//! | progress, a checkpoint | [`PROGRESS_EVERY`] after the last write, or the beginning |
//! | nothing | never |
//!
//! So a job that is over within a third of its lease writes nothing for it, and all that are due go in one multi.
//! A beat without a wish to renew writes what is left of the lease: the leader's clock begins anew, its end does not move.
//!
//! A lease runs here from when its assignment was read, and anew from when a beat was *sent*; for the leader from when it
//! saw it. So this clock is the earlier one, but for the first read, which [`LEASE_MARGIN`](crate::machine::lease_watcher::LEASE_MARGIN)
//! covers. Only what is known to be written counts.
//!
//! | a beat that | means |
//! | --- | --- |
//! | is applied | the lease runs from when it was sent |
//! | is rejected at its version, or has no reply | the assignment is read, and what is due is written again; or it is flagged, or closed |
//! | was not sent | again, once the session is back |
//!
//! A beat whose reply was lost and which is applied after the read-back makes the next one, or the close, fail on its
//! version, and the read-back after that finds it. It names an attempt by its version, so it cannot hit another: a
//! session's requests are applied in their order or not at all, and this worker closes the attempt after it.
//!
//! An attempt that still waits for a slot when a third of its first lease has passed is handed back by the executor
//! ([`Effect::Third`]): it would begin with a lease half gone.
//!
//! Limits: [`BATCH`] beats a batch; one batch and one read in flight.

mod lease;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::budget::MAX_READ_BATCH;
use crate::job::{Assignment, Progress};
use crate::machine::worker::{Finished, Look};
use crate::name::{JobId, WorkerId};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::time::Millis;
use crate::txn::{Batch, Locus, Op};
use crate::{path, wire};
use lease::{Lease, Phase, Told};

/// From one write of an attempt's progress to the next: people look once a second at most.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Beats a batch: at the knee of ZooKeeper's throughput.
pub const BATCH: usize = 100;

/// Until what could not be sent or read is tried again without a word from the session.
pub const RETRY: Duration = Duration::from_millis(100);

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// These were handed to the executor.
    Begun(Vec<Begun>),
    /// A handler wants something written.
    Asked {
        /// Which job.
        job: JobId,
        /// Which attempt.
        attempt: u32,
        /// The lease shall not be over before, and be renewed for as long.
        renew: Option<Duration>,
        /// Its progress is now this.
        progress: Option<Progress>,
    },
    /// A handler is over: [`Effect::Close`] follows, with what is known of its assignment.
    Finished(Box<Finished>),
    /// This attempt is closed, or of no interest to anybody.
    Over(JobId, u32),
    /// A batch was answered.
    Committed(Batch<Beat>, Outcome<()>),
    /// Assignments were read.
    Read(Vec<(JobId, Look<Assignment>)>),
    /// A read has no answer.
    ReadFailed(Vec<JobId>),
    /// The connection is lost: send nothing.
    Hold,
    /// It is back: read back what is unknown, go on.
    Resume,
    /// The time of an [`Effect::WakeAt`] has come.
    Wake,
}

/// An attempt that begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Begun {
    /// Which job.
    pub job: JobId,
    /// Its assignment.
    pub assignment: Assignment,
    /// The assignment's version.
    pub version: i32,
    /// Whether its lease is renewed without being asked for.
    pub auto: bool,
}

/// One attempt's beat.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Beat {
    job: JobId,
    attempt: u32,
}

/// What shall happen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Commit this and hand it back with its outcome.
    Commit(Batch<Beat>),
    /// Read the assignments of these, at most [`MAX_READ_BATCH`].
    Read(Vec<JobId>),
    /// Tell the handler until when its lease runs.
    Until(JobId, u32, Millis),
    /// A third of its first lease has passed: it must have begun.
    Third(JobId, u32),
    /// Its lease is over: it must stop.
    Lapsed(JobId, u32),
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
    /// It was closed by somebody else.
    Zombie(JobId, u32),
    /// Close its attempt.
    Close(Box<Finished>),
    /// Send [`Event::Wake`] then.
    WakeAt(Millis),
}

/// Whether requests reach ZooKeeper: as [`Connectivity`](crate::machine::worker::Connectivity), and what was noticed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reachability {
    Up,
    /// A request could not be sent, and the session has not said why yet.
    Doubtful(Millis),
    Down,
}

/// The machine of one incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Beats {
    worker: WorkerId,
    reachability: Reachability,
    leases: BTreeMap<JobId, Lease>,
    /// When the executor is to be told of each.
    alarms: BTreeSet<(Millis, JobId)>,
    /// When each is to be written.
    due: BTreeSet<(Millis, JobId)>,
    unresolved: BTreeSet<JobId>,
    committing: bool,
    reading: bool,
    armed: Option<Millis>,
}

impl Beats {
    /// Knows of no attempt yet.
    #[must_use]
    pub fn new(worker: WorkerId) -> Self {
        Self {
            worker,
            reachability: Reachability::Up,
            leases: BTreeMap::new(),
            alarms: BTreeSet::new(),
            due: BTreeSet::new(),
            unresolved: BTreeSet::new(),
            committing: false,
            reading: false,
            armed: None,
        }
    }

    /// How many attempts are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Handles one event.
    pub fn handle(&mut self, now: Millis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Begun(begun) => begun.into_iter().for_each(|begun| self.begun(begun, now, out)),
            Event::Asked { job, attempt, renew, progress } => {
                self.change(&job, attempt, |lease| lease.ask(renew, progress, now));
            }
            Event::Finished(finished) => self.finished(*finished, out),
            Event::Over(job, attempt) => self.over(&job, attempt),
            Event::Committed(batch, outcome) => self.committed(now, batch, outcome, out),
            Event::Read(found) => {
                self.reading = false;
                for (job, found) in found {
                    self.read(&job, found, out);
                }
            }
            Event::ReadFailed(jobs) => {
                self.reading = false;
                self.unresolved.extend(jobs.into_iter().filter(|job| self.leases.contains_key(job)));
                self.doubt(now);
            }
            Event::Hold => self.reachability = Reachability::Down,
            Event::Resume => self.reachability = Reachability::Up,
            Event::Wake => self.armed = None,
        }
        if let Reachability::Doubtful(until) = self.reachability
            && until <= now
        {
            self.reachability = Reachability::Up;
        }
        self.tell(now, out);
        self.send(now, out);
        self.arm(out);
    }

    fn begun(&mut self, begun: Begun, now: Millis, out: &mut Vec<Effect>) {
        let Begun { job, assignment, version, auto } = begun;
        let lease = Lease::new(assignment, version, auto, now);
        out.push(Effect::Until(job.clone(), lease.attempt(), lease.until()));
        self.forget(&job);
        self.alarms.extend(lease.alarm().map(|at| (at, job.clone())));
        self.due.extend(lease.due().map(|at| (at, job.clone())));
        self.leases.insert(job, lease);
    }

    /// Changes what is known of an attempt, and keeps what is due in step.
    fn change<T>(&mut self, job: &JobId, attempt: u32, change: impl FnOnce(&mut Lease) -> T) -> Option<T> {
        let lease = self.leases.get_mut(job).filter(|lease| lease.attempt() == attempt)?;
        let before = (lease.alarm(), lease.due());
        let changed = change(lease);
        let after = (lease.alarm(), lease.due());
        for (set, before, after) in
            [(&mut self.alarms, before.0, after.0), (&mut self.due, before.1, after.1)]
        {
            if before != after {
                before.map(|at| set.remove(&(at, job.clone())));
                set.extend(after.map(|at| (at, job.clone())));
            }
        }
        Some(changed)
    }

    fn forget(&mut self, job: &JobId) -> Option<Lease> {
        let lease = self.leases.remove(job)?;
        lease.alarm().map(|at| self.alarms.remove(&(at, job.clone())));
        lease.due().map(|at| self.due.remove(&(at, job.clone())));
        self.unresolved.remove(job);
        Some(lease)
    }

    fn over(&mut self, job: &JobId, attempt: u32) {
        if self.leases.get(job).is_some_and(|lease| lease.attempt() == attempt) {
            self.forget(job);
        }
    }

    /// What it said last goes with its close, written before or not.
    fn finished(&mut self, mut finished: Finished, out: &mut Vec<Effect>) {
        let start = &mut finished.start;
        let known = self.leases.get(&start.job);
        if known.is_some_and(|lease| lease.attempt() == start.assignment.attempt)
            && let Some(lease) = self.forget(&start.job)
        {
            lease.leave(&mut start.assignment, &mut start.assignment_version);
        }
        out.push(Effect::Close(Box::new(finished)));
    }

    fn committed(&mut self, now: Millis, batch: Batch<Beat>, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        self.committing = false;
        match outcome {
            Outcome::Applied(()) => {
                for (Beat { job, attempt }, _) in batch.into_groups() {
                    let until = self.change(&job, attempt, Lease::written);
                    out.extend(until.map(|until| Effect::Until(job, attempt, until)));
                }
            }
            Outcome::Unknown => {
                batch.into_groups().into_iter().for_each(|(beat, _)| self.read_back(beat));
            }
            Outcome::Rejected(Rejection { reason: Reason::NotSent, .. }) => {
                self.again(batch);
                self.doubt(now);
            }
            Outcome::Rejected(rejection) => self.rejected(now, batch, &rejection),
        }
    }

    fn again(&mut self, batch: Batch<Beat>) {
        for (beat, _) in batch.into_groups() {
            self.change(&beat.job, beat.attempt, Lease::not_written);
        }
    }

    fn read_back(&mut self, Beat { job, attempt }: Beat) {
        if self.change(&job, attempt, Lease::unresolved).is_some() {
            self.unresolved.insert(job);
        }
    }

    /// One beat failed the batch: its assignment is read, the rest goes again.
    fn rejected(&mut self, now: Millis, mut batch: Batch<Beat>, rejection: &Rejection) {
        let group = match batch.locate(rejection.at) {
            Some(Locus::Group { group, .. }) => group,
            // There is no fence, and no operation behind the last.
            Some(Locus::Fence(_)) | None => 0,
        };
        let (beat, _) = batch.remove(group);
        self.again(batch);
        match rejection.reason {
            Reason::NoNode | Reason::BadVersion => {
                // This one is not what will be found.
                self.change(&beat.job, beat.attempt, Lease::not_written);
                self.read_back(beat);
            }
            // Refused for nothing of ours: it is due again after a while.
            Reason::NodeExists
            | Reason::NotEmpty
            | Reason::NoAuth
            | Reason::NotSent
            | Reason::OverBudget(_)
            | Reason::Refused(_)
            | Reason::Other(_) => {
                self.change(&beat.job, beat.attempt, |lease| lease.refused(now));
            }
        }
    }

    fn read(&mut self, job: &JobId, found: Look<Assignment>, out: &mut Vec<Effect>) {
        let Some(lease) = self.leases.get(job).filter(|lease| lease.phase() == Phase::Unresolved) else {
            return;
        };
        let attempt = lease.attempt();
        match found {
            Look::There(assignment, version) if assignment.attempt == attempt => {
                if assignment.cancel && !lease.is_flagged() {
                    let (job, assignment) = (job.clone(), assignment.clone());
                    out.push(Effect::Cancel { job, attempt, assignment, version });
                }
                let until = self.change(job, attempt, |lease| lease.found(assignment, version));
                out.extend(until.map(|until| Effect::Until(job.clone(), attempt, until)));
            }
            Look::There(..) | Look::Absent => {
                self.forget(job);
                out.push(Effect::Zombie(job.clone(), attempt));
            }
            // Overwritten by a strange hand: the attempt itself stands, and ends with its lease.
            Look::Unreadable { version, .. } => {
                self.change(job, attempt, |lease| lease.overwritten(version));
            }
        }
    }

    /// Waits for the session to say what is wrong, but not for ever: its word may have come first.
    fn doubt(&mut self, now: Millis) {
        if self.reachability == Reachability::Up {
            self.reachability = Reachability::Doubtful(now + RETRY);
        }
    }

    /// Tells the executor of the times that have come, connected or not.
    fn tell(&mut self, now: Millis, out: &mut Vec<Effect>) {
        while let Some((at, job)) = self.alarms.first().filter(|(at, _)| *at <= now).cloned() {
            let Some(attempt) = self.leases.get(&job).map(Lease::attempt) else {
                self.alarms.remove(&(at, job));
                continue;
            };
            match self.change(&job, attempt, Lease::told) {
                Some(Told::Third) => out.push(Effect::Third(job, attempt)),
                Some(Told::Lapsed) => out.push(Effect::Lapsed(job, attempt)),
                None => {}
            }
        }
    }

    fn send(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if self.reachability != Reachability::Up {
            return;
        }
        if !self.reading && !self.unresolved.is_empty() {
            let mut jobs = Vec::new();
            while jobs.len() < MAX_READ_BATCH
                && let Some(job) = self.unresolved.pop_first()
            {
                jobs.push(job);
            }
            self.reading = true;
            out.push(Effect::Read(jobs));
        }
        if !self.committing {
            self.beat(now, out);
        }
    }

    fn beat(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let wanted = self.due.iter().take_while(|(at, _)| *at <= now);
        let jobs: Vec<JobId> = wanted.map(|(_, job)| job.clone()).take(BATCH).collect();
        let mut batch = Batch::new(Vec::new());
        for job in jobs {
            let Some(lease) = self.leases.get(&job) else { continue };
            let (attempt, version) = (lease.attempt(), lease.version());
            let written = lease.beat(now);
            let path = path::assignment(self.worker, &job);
            let set = Op::Set { path, data: wire::encode(&written), version };
            // One that does not fit is due still.
            if batch.push(Beat { job: job.clone(), attempt }, vec![set]).is_err() {
                break;
            }
            self.change(&job, attempt, |lease| lease.sent(written, now));
        }
        if !batch.is_empty() {
            self.committing = true;
            out.push(Effect::Commit(batch));
        }
    }

    fn arm(&mut self, out: &mut Vec<Effect>) {
        let alarm = self.alarms.first().map(|(at, _)| *at);
        let send = match self.reachability {
            // The answer to what is on its way sends what is due then.
            Reachability::Up => self.due.first().map(|(at, _)| *at).filter(|_| !self.committing),
            Reachability::Doubtful(until) => Some(until),
            Reachability::Down => None,
        };
        let Some(next) = alarm.into_iter().chain(send).min() else { return };
        if self.armed.is_none_or(|armed| next < armed) {
            self.armed = Some(next);
            out.push(Effect::WakeAt(next));
        }
    }
}

#[cfg(test)]
mod tests;
