//! One attempt on its way to be closed.

use std::time::Duration;

use crate::job::{Assignment, Attempt, AttemptEndKind, Ending, JobRecord, JobState, Next, Progress, Verdict};
use crate::machine::worker::{BELIEVED, Finished, Found, Look};
use crate::name::{JobId, WorkerId};
use crate::outcome::Reason;
use crate::path;
use crate::time::{Millis, WallMillis};
use crate::txn::{self, Op};

/// One attempt on its way to be closed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Close {
    job: JobId,
    attempt: Attempt,
    /// With what the attempt left.
    before: JobRecord,
    /// Of the attempt, whether it stands in its assignment or not.
    said: Option<Progress>,
    version: i32,
    /// When the read was sent that showed the record last.
    asked: Millis,
    assignment: Assigned,
    /// What of its end was taken away, or made, by a strange hand while the record stands.
    gone: Vec<String>,
    ending: Ending,
    ran: Option<Duration>,
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
    /// It was deleted by a strange hand while the record stands: the record's version alone fences the close.
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Try {
    None,
    Unknown,
    Refused(Reason),
}

/// How an attempt was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settled {
    /// By us, so.
    Closed {
        /// How the attempt ended.
        how: AttemptEndKind,
        /// Whether the job is over without a result.
        dead: bool,
    },
    /// By somebody else: our result is dropped.
    Zombie,
}

pub(super) enum Decision {
    Settled(Box<Close>, Settled),
    Again(Box<Close>),
    /// Something stands where the close would create something: wait for an operator.
    Blocked(Box<Close>, Reason),
}

impl Close {
    pub(super) fn new(worker: WorkerId, finished: Finished, at: WallMillis, random: u64) -> Self {
        let Finished { start, ending, ran } = finished;
        // A beat may have read the flag before the executor heard of it.
        let ending = if start.assignment.cancel { flagged(ending) } else { ending };
        let attempt = Attempt { number: start.assignment.attempt, worker };
        let said = start.assignment.progress.clone();
        let before = start.record.carry(&start.assignment);
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
            ran,
            at,
            random,
            after,
            next,
            last_try: Try::None,
        }
    }

    /// Which job.
    #[must_use]
    pub fn job(&self) -> &JobId {
        &self.job
    }

    /// Which attempt.
    #[must_use]
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// The record as the close leaves it.
    #[must_use]
    pub fn record(&self) -> &JobRecord {
        &self.after
    }

    /// How long the handler ran; nothing when it never did.
    #[must_use]
    pub fn ran(&self) -> Option<Duration> {
        self.ran
    }

    /// From submission to the close, by two machines' clocks.
    #[must_use]
    pub fn since_submission(&self) -> Duration {
        self.at.since(self.before.submitted_at)
    }

    pub(super) fn minute(&self) -> Option<u64> {
        match &self.next {
            Next::Delay(entry) => Some(entry.not_before.minute()),
            Next::Queue(_) | Next::Terminal => None,
        }
    }

    pub(super) fn ops(&self) -> Vec<Op> {
        let (job, worker) = (&self.job, self.attempt.worker);
        // By version whatever the ending, so that nothing that the attempt left there is overlooked.
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
        self.gone.iter().for_each(|gone| txn::without_part(&self.after, gone, &mut ops));
        ops
    }

    /// Whether the operation at this position of [`Close::ops`] is the creation of the entry.
    pub(super) fn creates_at(&self, op: usize) -> bool {
        matches!(self.ops().get(op), Some(Op::Create { .. }))
    }

    /// The part of the job's end at this position of [`Close::ops`], if a hand was there before. A rejection there means
    /// that the record was as expected: nobody else closed it.
    pub(super) fn gone_part(&self, op: usize, reason: &Reason) -> Option<String> {
        txn::gone_part(&self.ops(), op, reason)
    }

    pub(super) fn without_part(mut self, gone: String) -> Self {
        self.gone.push(gone);
        self
    }

    /// Whether the record must be read before anything is written: what was known of it is [old](BELIEVED), and
    /// neither version tells whose it is.
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
        // Once a reply was lost, what is found may always be our own earlier write.
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
        settled(&self.after)
    }

    pub(super) fn decide(self, found: &Found) -> Decision {
        match &found.record {
            Look::There(record, version) if *version == self.version && self.is_of(record) => {
                self.still_open(found)
            }
            Look::There(record, _) if self.is_ours(record) => {
                Decision::Settled(Box::new(self), settled(record))
            }
            Look::There(..) | Look::Unreadable { .. } | Look::Absent => {
                Decision::Settled(Box::new(self), Settled::Zombie)
            }
        }
    }

    /// Whether this is the record that the attempt began with. When that was removed after its retention and the id
    /// submitted again, there may be another at the same version; the token is each submission's own.
    fn is_of(&self, record: &JobRecord) -> bool {
        (record.token, record.generation) == (self.before.token, self.before.generation)
    }

    /// A leader that closed the attempt names the same attempt. That its lease was over both may have written, and it is
    /// the same.
    fn is_ours(&self, record: &JobRecord) -> bool {
        let leaders = record.last.is_some_and(|last| match last.how {
            AttemptEndKind::Lost => true,
            AttemptEndKind::LeaseExpired => self.ending != Ending::LeaseExpired,
            AttemptEndKind::Succeeded
            | AttemptEndKind::Failed
            | AttemptEndKind::Released
            | AttemptEndKind::Cancelled
            | AttemptEndKind::Invalid
            | AttemptEndKind::Deferred
            | AttemptEndKind::Overdue => false,
        });
        record.was_closed_by(self.attempt) && !leaders
    }

    fn still_open(mut self, found: &Found) -> Decision {
        let before = self.assignment;
        let cancel = match &found.assignment {
            Look::There(assignment, version) => {
                self.assignment = Assigned::At(*version);
                if self.assignment != before {
                    self.carry(assignment);
                }
                assignment.cancel
            }
            Look::Unreadable { version, .. } => {
                self.assignment = Assigned::At(*version);
                false
            }
            Look::Absent => {
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

    /// What was written there meanwhile: by a handler that has sub-jobs, or by a beat. What was said here is the newest.
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

/// How an attempt with the cancel flag ends: a result counts, anything else becomes a cancellation.
fn flagged(ending: Ending) -> Ending {
    if matches!(ending, Ending::Succeeded(_)) { ending } else { Ending::Cancelled }
}

fn settled(record: &JobRecord) -> Settled {
    let how = record.last.map_or(AttemptEndKind::Lost, |last| last.how);
    let dead = matches!(record.state, JobState::Terminal { verdict: Verdict::Dead, .. });
    Settled::Closed { how, dead }
}
