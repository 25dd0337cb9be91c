//! The pending close of one attempt.

use std::time::Duration;

use crate::job::{Assignment, Attempt, AttemptOutcome, ClosedAttempt, Ending, JobRecord, Next, Progress};
use crate::machine::worker::{BELIEVED, Finished, Found, Lookup};
use crate::name::{JobId, WorkerId};
use crate::outcome::Reason;
use crate::path;
use crate::time::{Millis, WallMillis};
use crate::txn::{self, Op};

/// The pending close of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Close {
    job: JobId,
    attempt: Attempt,
    /// The record before the close, with the progress of the attempt.
    before: JobRecord,
    /// The last progress of the attempt, whether it is stored in the assignment or not.
    said: Option<Progress>,
    version: i32,
    /// When the read was sent that last returned the record.
    asked: Millis,
    assignment: Assigned,
    /// Parts of the close that an operator already deleted or created, while the record is unchanged.
    gone: Vec<String>,
    ending: Ending,
    at: WallMillis,
    random: u64,
    after: JobRecord,
    next: Next,
    last_try: Try,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Assigned {
    /// The assignment was last seen with this version.
    At(i32),
    /// The assignment was deleted by an operator while the record is unchanged: only the record's version fences
    /// the close.
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Try {
    None,
    Unknown,
    Refused(Reason),
}

/// The result of a close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settled {
    /// Closed by this worker.
    Closed(ClosedAttempt),
    /// Closed by another process: this worker's result is dropped.
    Zombie,
}

pub(super) enum Decision {
    Settled(Box<Close>, Settled),
    Again(Box<Close>),
    /// An existing znode blocks a create of the close: wait for an operator.
    Blocked(Box<Close>, Reason),
}

impl Close {
    pub(in crate::machine::worker) fn new(
        worker: WorkerId,
        former: &[WorkerId],
        finished: Finished,
        at: WallMillis,
        random: u64,
    ) -> Self {
        let Finished { start, ending } = finished;
        // A beat may have read the flag before the executor received it.
        let ending = if start.assignment.cancel { flagged(ending) } else { ending };
        let attempt = Attempt { number: start.assignment.attempt, worker };
        let said = start.assignment.progress.clone();
        let before = start.record.carry(&start.assignment).excuse(|lost| former.contains(lost));
        let (after, next) = before.clone().close(attempt, ending.clone(), at, random);
        Self {
            job: start.job,
            attempt,
            before,
            said,
            version: start.version,
            asked: start.asked,
            assignment: Assigned::At(start.assignment_version),
            gone: Vec::new(),
            ending,
            at,
            random,
            after,
            next,
            last_try: Try::None,
        }
    }

    /// Returns the job.
    #[must_use]
    pub fn job(&self) -> &JobId {
        &self.job
    }

    /// Returns the attempt.
    #[must_use]
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// Returns the record as the close writes it.
    #[must_use]
    pub fn record(&self) -> &JobRecord {
        &self.after
    }

    /// Returns the time from submission to the close, measured by two machines' clocks.
    #[must_use]
    pub fn since_submission(&self) -> Duration {
        self.at.since(self.before.submitted_at)
    }

    pub(super) fn ops(&self) -> Vec<Op> {
        let (job, worker) = (&self.job, self.attempt.worker);
        // Delete the assignment by version for every ending, so that no progress written there is overlooked.
        let assignment = match self.assignment {
            Assigned::At(version) => Some(version),
            Assigned::Gone => None,
        };
        let mut ops = txn::close(job, worker, self.version, assignment, &self.after, &self.next);
        match self.assignment {
            Assigned::At(_) => {}
            Assigned::Gone => {
                let assignment = path::assignment(worker, job);
                ops.retain(|op| op.path() != assignment);
            }
        }
        self.gone.iter().for_each(|gone| txn::without_part(job, &self.after, gone, &mut ops));
        ops
    }

    /// Returns the part of the close at this position of [`Close::ops`], if an operator already did it. A rejection
    /// there means that the record had the expected version: no other process closed the attempt.
    pub(super) fn gone_part(&self, op: usize, reason: &Reason) -> Option<String> {
        txn::gone_part(&self.ops(), op, reason)
    }

    pub(super) fn without_part(mut self, gone: String) -> Self {
        self.gone.push(gone);
        self
    }

    /// Whether the record must be read before a write: the known record is [old](BELIEVED), and the versions alone
    /// do not identify the job.
    pub(super) fn is_old(&self, now: Millis) -> bool {
        now.since(self.asked) >= BELIEVED
    }

    pub(super) fn read_at(self, now: Millis) -> Self {
        Self { asked: now, ..self }
    }

    pub(super) fn unknown(self) -> Self {
        Self { last_try: Try::Unknown, ..self }
    }

    pub(super) fn refused(self, reason: Reason) -> Self {
        // After a lost reply, a conflict may be caused by our own earlier write.
        let last_try = match self.last_try {
            Try::Unknown => Try::Unknown,
            Try::None | Try::Refused(_) => Try::Refused(reason),
        };
        Self { last_try, ..self }
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.last_try == Try::Unknown
    }

    pub(super) fn as_written(&self) -> Settled {
        Settled::Closed(ClosedAttempt::of(&self.after))
    }

    pub(super) fn decide(self, found: &Found) -> Decision {
        match &found.record {
            Lookup::Found(record, version) if *version == self.version && self.is_of(record) => {
                self.still_open(found)
            }
            Lookup::Found(record, _) if self.is_ours(record) => {
                let settled = Settled::Closed(ClosedAttempt::of(record));
                Decision::Settled(Box::new(self), settled)
            }
            Lookup::Found(..) | Lookup::Unreadable { .. } | Lookup::Absent => {
                Decision::Settled(Box::new(self), Settled::Zombie)
            }
        }
    }

    /// Whether this is the record that the attempt began with. If that record was removed after its retention and the
    /// id was submitted again, another record may have the same version; the token is unique to each submission.
    fn is_of(&self, record: &JobRecord) -> bool {
        (record.token, record.generation) == (self.before.token, self.before.generation)
    }

    /// Whether this attempt's own close is stored. A leader that closes an attempt names the same attempt. An
    /// expired lease may have been written by either; the result is the same.
    fn is_ours(&self, record: &JobRecord) -> bool {
        let leaders = record.last.is_some_and(|last| match last.how {
            AttemptOutcome::Lost => true,
            AttemptOutcome::LeaseExpired => self.ending != Ending::LeaseExpired,
            AttemptOutcome::Succeeded
            | AttemptOutcome::Failed
            | AttemptOutcome::Released
            | AttemptOutcome::Cancelled
            | AttemptOutcome::Invalid
            | AttemptOutcome::Snoozed
            | AttemptOutcome::Expired => false,
        });
        record.was_closed_by(self.attempt) && !leaders
    }

    fn still_open(mut self, found: &Found) -> Decision {
        let before = self.assignment;
        let cancel = match &found.assignment {
            Lookup::Found(assignment, version) => {
                self.assignment = Assigned::At(*version);
                if self.assignment != before {
                    self.carry(assignment);
                }
                assignment.cancel
            }
            Lookup::Unreadable { version, .. } => {
                self.assignment = Assigned::At(*version);
                false
            }
            Lookup::Absent => {
                self.assignment = Assigned::Gone;
                false
            }
        };
        if cancel && !matches!(self.ending, Ending::Succeeded(_) | Ending::Cancelled) {
            self.end_as(Ending::Cancelled);
        } else if self.assignment == before
            && let Try::Refused(reason) = &self.last_try
        {
            let reason = reason.clone();
            return Decision::Blocked(Box::new(self), reason);
        }
        Decision::Again(Box::new(self))
    }

    /// Takes over concurrent writes to the assignment: by a handler with sub-jobs, or by a beat. `said` is newer
    /// than the progress found there.
    fn carry(&mut self, found: &Assignment) {
        let progress = self.said.clone().or_else(|| found.progress.clone());
        self.before = self.before.clone().carry(&Assignment { progress, ..found.clone() });
        self.end_as(self.ending.clone());
    }

    fn end_as(&mut self, ending: Ending) {
        self.ending = ending.clone();
        (self.after, self.next) = self.before.clone().close(self.attempt, ending, self.at, self.random);
    }
}

/// Returns the ending of an attempt with the cancel flag: a result counts, anything else becomes a cancellation.
fn flagged(ending: Ending) -> Ending {
    if matches!(ending, Ending::Succeeded(_)) { ending } else { Ending::Cancelled }
}
