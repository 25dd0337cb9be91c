//! Heartbeats: decides which assignments to set, when, and with what content.
//!
//! A *beat* sets an attempt's assignment: it restarts the lease and writes progress and checkpoint to ZooKeeper. The
//! leader revokes an attempt whose lease has expired ([`machine::lease_watcher`](crate::machine::lease_watcher)), so
//! the worker tracks each lease too, and ends the attempt first.
//!
//! | request | written |
//! | --- | --- |
//! | a renewal, automatic or requested | after a third of the current lease |
//! | a renewal whose handler waits for the confirmation | immediately |
//! | progress, a checkpoint | [`PROGRESS_EVERY`] after the last write or the start |
//! | none | never |
//!
//! So a job that ends within a third of its lease writes nothing for the lease, and all due beats share one multi. A
//! beat without a renewal request writes the remaining lease: the leader's clock restarts, but the end does not move.
//!
//! In the worker, a lease starts when its assignment is read, and restarts when a beat is *sent*; for the leader it
//! starts when the leader reads the assignment. So the worker's lease ends first, except after the first read,
//! which [`LEASE_MARGIN`](crate::machine::lease_watcher::LEASE_MARGIN) covers. Only a beat that is known to be
//! applied extends the lease.
//!
//! | outcome of a beat | reaction |
//! | --- | --- |
//! | applied | the lease starts when the beat was sent |
//! | rejected at its version, or no reply | read the assignment: beat again if due, or report the cancel flag or the close |
//! | not sent | send again once the session is back |
//!
//! A beat whose reply was lost may be applied after the read-back. Then the next beat, or the close, fails on the
//! version, and the next read-back finds it. The version ties a beat to its attempt: requests of a session are
//! applied in order or not at all, and this worker closes the attempt after the beat.
//!
//! A renewal with a *ticket* is confirmed ([`Effect::Confirmed`]) by the reply to a beat that was sent after the request:
//! the attempt was open and its lease restarted. After a lost reply another beat is sent, because the read-back does not
//! show whose write it found.
//!
//! When a third of the first lease has passed, the executor hands back an attempt that still waits for a slot
//! ([`Effect::Third`]): otherwise it would start with a partly used lease.
//!
//! Limits: [`BATCH`] beats per batch; one batch and one read in flight.

mod lease;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::budget::MAX_READ_BATCH;
use crate::job::{Assignment, Progress};
use crate::machine::worker::{Finished, Lookup};
use crate::name::{JobId, WorkerId};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::time::Millis;
use crate::txn::{Batch, Locus, Op};
use crate::{path, wire};
use lease::{Lease, LeaseNotice, Phase};

/// Minimum interval between two writes of an attempt's progress: users look at most once a second.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Beats per batch: at the knee of ZooKeeper's throughput curve.
pub const BATCH: usize = 100;

/// Delay before an unsent or unanswered request is tried again if the session reports nothing.
pub const RETRY: Duration = Duration::from_millis(100);

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// These attempts were handed to the executor.
    Started(Vec<StartedAttempt>),
    /// A handler requests a write.
    Requested {
        /// The job.
        job: JobId,
        /// The attempt number.
        attempt: u32,
        /// Extend the lease to at least this duration from now.
        renew: Option<Duration>,
        /// Write the lease immediately and confirm this ticket. Tickets of an attempt grow.
        confirm: Option<u64>,
        /// The new progress.
        progress: Option<Progress>,
    },
    /// A handler has finished: [`Effect::Close`] follows, with the newest known assignment.
    Finished(Box<Finished>),
    /// This attempt is closed or no longer tracked.
    Over(JobId, u32),
    /// The outcome of a batch.
    Committed(Batch<Beat>, Outcome<()>),
    /// Assignments were read.
    Read(Vec<(JobId, Lookup<Assignment>)>),
    /// A read was not answered.
    ReadFailed(Vec<JobId>),
    /// The connection is lost: send nothing.
    Hold,
    /// The connection is back: read back unknown beats and continue.
    Resume,
    /// The time of an [`Effect::WakeAt`] has come.
    Wake,
}

/// An attempt that begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StartedAttempt {
    /// The job.
    pub job: JobId,
    /// Its assignment.
    pub assignment: Assignment,
    /// The assignment's version.
    pub version: i32,
    /// Whether its lease is renewed automatically.
    pub auto: bool,
}

/// One attempt's beat.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Beat {
    job: JobId,
    attempt: u32,
}

/// Output of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Commit this batch and return it with its outcome.
    Commit(Batch<Beat>),
    /// Read the assignments of these jobs, at most [`MAX_READ_BATCH`].
    Read(Vec<JobId>),
    /// Report the end of the lease to the handler.
    Until(JobId, u32, Millis),
    /// A beat was applied that was sent after the request with this ticket, and after all earlier requests.
    Confirmed(JobId, u32, u64),
    /// A third of the first lease has passed: the attempt must have started by now.
    Third(JobId, u32),
    /// The lease has expired: the attempt must stop.
    Lapsed(JobId, u32),
    /// A client set the cancel flag.
    Cancel {
        /// The job.
        job: JobId,
        /// The attempt number.
        attempt: u32,
        /// The assignment with the flag.
        assignment: Assignment,
        /// Its version.
        version: i32,
    },
    /// The attempt was closed by another process.
    Zombie(JobId, u32),
    /// Close this attempt.
    Close(Box<Finished>),
    /// Send [`Event::Wake`] at this time.
    WakeAt(Millis),
}

/// Whether requests reach ZooKeeper: [`Connectivity`](crate::machine::worker::Connectivity), plus failures observed
/// here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reachability {
    Up,
    /// A request could not be sent, and the session has not reported the reason yet.
    Doubtful(Millis),
    Down,
}

/// State machine of one incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Beats {
    worker: WorkerId,
    reachability: Reachability,
    leases: BTreeMap<JobId, Lease>,
    /// When each lease needs a report to the executor.
    alarms: BTreeSet<(Millis, JobId)>,
    /// When each assignment needs a write.
    due: BTreeSet<(Millis, JobId)>,
    unresolved: BTreeSet<JobId>,
    committing: bool,
    reading: bool,
    armed: Option<Millis>,
}

impl Beats {
    /// Creates the machine without attempts.
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

    /// Returns the number of tracked attempts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// Returns whether no attempt is tracked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Handles one event.
    pub fn handle(&mut self, now: Millis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Started(begun) => begun.into_iter().for_each(|begun| self.begun(begun, now, out)),
            Event::Requested { job, attempt, renew, confirm, progress } => {
                self.change(&job, attempt, |lease| lease.ask(renew, confirm, progress, now));
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

    fn begun(&mut self, begun: StartedAttempt, now: Millis, out: &mut Vec<Effect>) {
        let StartedAttempt { job, assignment, version, auto } = begun;
        let lease = Lease::new(assignment, version, auto, now);
        out.push(Effect::Until(job.clone(), lease.attempt(), lease.until()));
        self.forget(&job);
        self.alarms.extend(lease.alarm().map(|at| (at, job.clone())));
        self.due.extend(lease.due().map(|at| (at, job.clone())));
        self.leases.insert(job, lease);
    }

    /// Changes an attempt's lease and updates `alarms` and `due`.
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

    /// The close carries the last progress, whether it was written or not.
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
                    let Some((until, ticket)) = self.change(&job, attempt, Lease::written) else { continue };
                    out.push(Effect::Until(job.clone(), attempt, until));
                    out.extend(ticket.map(|ticket| Effect::Confirmed(job, attempt, ticket)));
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

    /// One beat failed the batch: its assignment is read back, the rest is sent again.
    fn rejected(&mut self, now: Millis, mut batch: Batch<Beat>, rejection: &Rejection) {
        let group = match batch.locate(rejection.at) {
            Some(Locus::Group { group, .. }) => group,
            // A batch of beats has no fence, and a rejection never points past the last operation.
            Some(Locus::Fence(_)) | None => 0,
        };
        let (beat, _) = batch.remove(group);
        self.again(batch);
        match rejection.reason {
            Reason::NoNode | Reason::BadVersion => {
                // This beat was not applied, so the read-back cannot find it.
                self.change(&beat.job, beat.attempt, Lease::not_written);
                self.read_back(beat);
            }
            // A rejection without a conflict: the beat is due again after a delay.
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

    fn read(&mut self, job: &JobId, found: Lookup<Assignment>, out: &mut Vec<Effect>) {
        let Some(lease) = self.leases.get(job).filter(|lease| lease.phase() == Phase::Unresolved) else {
            return;
        };
        let attempt = lease.attempt();
        match found {
            Lookup::Found(assignment, version) if assignment.key() == lease.key() => {
                if assignment.cancel && !lease.is_flagged() {
                    let (job, assignment) = (job.clone(), assignment.clone());
                    out.push(Effect::Cancel { job, attempt, assignment, version });
                }
                let until = self.change(job, attempt, |lease| lease.found(assignment, version));
                out.extend(until.map(|until| Effect::Until(job.clone(), attempt, until)));
            }
            Lookup::Found(..) | Lookup::Absent => {
                self.forget(job);
                out.push(Effect::Zombie(job.clone(), attempt));
            }
            // Overwritten by another process: the attempt itself stays valid and ends with its lease.
            Lookup::Unreadable { version, .. } => {
                self.change(job, attempt, |lease| lease.overwritten(version));
            }
        }
    }

    /// Waits for the session to report the problem, but only for a limited time: the report may have come before
    /// the failure.
    fn doubt(&mut self, now: Millis) {
        if self.reachability == Reachability::Up {
            self.reachability = Reachability::Doubtful(now + RETRY);
        }
    }

    /// Reports the lease times that have come, connected or not.
    fn tell(&mut self, now: Millis, out: &mut Vec<Effect>) {
        while let Some((at, job)) = self.alarms.first().filter(|(at, _)| *at <= now).cloned() {
            let Some(attempt) = self.leases.get(&job).map(Lease::attempt) else {
                self.alarms.remove(&(at, job));
                continue;
            };
            match self.change(&job, attempt, Lease::next_notice) {
                Some(LeaseNotice::Third) => out.push(Effect::Third(job, attempt)),
                Some(LeaseNotice::Lapsed) => out.push(Effect::Lapsed(job, attempt)),
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
            // A beat that does not fit stays due.
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
            // The answer to the batch in flight triggers the next send.
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
