//! The record of a job and its transitions.

use super::history::cut;
use crate::budget::{MAX_ERROR_BYTES, MAX_WAIT, MIN_DEFERRAL};
use crate::change::Change;
use crate::job::{
    Assignment, Attempt, AttemptEnd, AttemptOutcome, Delay, Ending, Isolation, Membership, PastAttempt,
    Payload, Placement, Policy, Priority, Progress, QueueEntry, Turn,
};
use crate::name::{Kind, WorkerId};
use crate::time::WallMillis;
use crate::trace::TraceContext;
use uuid::Uuid;

/// The durable data of a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobRecord {
    /// The kind: the name of the handler that runs the job.
    pub kind: Kind,
    /// The input of the handler.
    pub payload: Payload,
    /// The limits on attempts, waits and run time.
    pub policy: Policy,
    /// Where it may run.
    pub placement: Placement,
    /// How urgent it is.
    pub priority: Priority,
    /// The latest time at which it may start, by the clock of the process that starts it.
    pub expires_at: Option<WallMillis>,
    /// Its group, if it has one.
    pub membership: Option<Membership>,
    /// Chosen by the submitting call; identifies that call's record after a lost reply.
    pub token: Uuid,
    /// When it was submitted, by the client's wall clock.
    pub submitted_at: WallMillis,
    /// 1, plus one for each time that the job was opened again after its end.
    pub generation: u32,
    /// Attempts of this generation that are closed; the next is `attempts + 1`.
    pub attempts: u32,
    /// How many of them failed.
    pub failures: u32,
    /// How many of them were lost with their worker, or by an expired lease, and are not excused.
    pub losses: u32,
    /// The workers of the newest of these losses, oldest first: see [`JobRecord::excuse`]. At most
    /// [`MAX_FORMER_IDS`](crate::budget::MAX_FORMER_IDS).
    pub lost_workers: Vec<WorkerId>,
    /// How many losses were excused.
    pub excused: u32,
    /// The attempt that was closed last.
    pub last: Option<AttemptEnd>,
    /// The last error, possibly of an earlier generation.
    pub last_error: Option<String>,
    /// The progress that its closed attempts reported last.
    pub progress: Option<Progress>,
    /// Whether one of them has sub-jobs: the end of the job then waits for theirs.
    pub spawned: bool,
    /// The trace in which it was submitted. All of its attempts are part of it.
    pub trace: Option<TraceContext>,
    /// Open or terminal.
    pub state: JobState,
    /// When the attempt that was closed last was assigned, by the leader's wall clock.
    pub assigned_at: Option<WallMillis>,
    /// Closed attempts for people: see [`JobRecord::past`].
    pub history: Vec<PastAttempt>,
    /// Who cancelled it, opened it again or released it last. `None` if only the cluster did.
    pub changed: Option<Change>,
    /// The part of the slots in which its entries are while it is ready: its submission chose it.
    pub part: u16,
    /// Whether an operator released it from the quarantine in this generation: the record was set while no attempt ended.
    pub released: bool,
}

/// Whether a job is open or terminal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum JobState {
    /// Queued, delayed or assigned: determined by the place of its entry.
    Open {
        /// Set while it is delayed or in a backoff: determines its minute under `/delayed`.
        not_before: Option<WallMillis>,
    },
    /// Terminal. Changes only when the job is opened again, by a retry or a submission.
    Terminal {
        /// How it ended.
        verdict: Verdict,
        /// When, by the wall clock of the process that ended it.
        at: WallMillis,
    },
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// With this result.
    Succeeded(Payload),
    /// Cancelled by a client.
    Cancelled,
    /// Dead because of its failures or losses, or because it was invalid or expired; see `last_error`.
    Dead,
}

/// Where a job goes after an attempt was closed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Next {
    /// The job is terminal.
    Terminal,
    /// Back to the queue.
    Queue,
    /// To the delayed jobs, until its backoff or its requested delay has passed.
    Delay(Delay),
}

impl JobRecord {
    /// Creates the record of a new job with default settings.
    #[must_use]
    pub fn new(kind: Kind, payload: Payload, token: Uuid, submitted_at: WallMillis) -> Self {
        Self {
            kind,
            payload,
            policy: Policy::default(),
            placement: Placement::default(),
            priority: Priority::default(),
            expires_at: None,
            membership: None,
            token,
            submitted_at,
            generation: 1,
            attempts: 0,
            failures: 0,
            losses: 0,
            lost_workers: Vec::new(),
            excused: 0,
            last: None,
            last_error: None,
            progress: None,
            spawned: false,
            trace: None,
            state: JobState::Open { not_before: None },
            assigned_at: None,
            history: Vec::new(),
            changed: None,
            part: 0,
            released: false,
        }
    }

    /// Whether the job is over.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self.state, JobState::Terminal { .. })
    }

    /// Which jobs may share its worker.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        Isolation::after(self.losses, self.policy.max_losses)
    }

    /// The queue entry of the job while it waits for its next attempt. `version` is that of this record.
    #[must_use]
    pub fn entry(&self, version: i32) -> QueueEntry {
        let not_before = match self.state {
            JobState::Open { not_before } => not_before.unwrap_or_default(),
            JobState::Terminal { .. } => WallMillis::default(),
        };
        QueueEntry {
            kind: self.kind.clone(),
            attempt: self.attempts + 1,
            generation: self.generation,
            fencing_token: version,
            placement: self.placement.clone(),
            not_before,
            priority: self.priority,
            submitted_at: self.submitted_at.max(not_before),
            part: self.part,
            expires_at: self.expires_at,
            lease: self.policy.lease,
            isolation: self.isolation(),
            trace: self.trace.filter(TraceContext::is_sampled),
        }
    }

    /// The name of its entry while it is delayed.
    #[must_use]
    pub fn delay(&self) -> Option<Delay> {
        let JobState::Open { not_before: Some(at) } = self.state else { return None };
        Some(Delay { minute: at.minute(), generation: self.generation, attempt: self.attempts + 1 })
    }

    /// Its turn in its lane, which exists from the submission, or the retry, to the end.
    #[must_use]
    pub fn turn(&self) -> Option<Turn> {
        let lane = self.placement.lane.clone()?;
        Some(Turn { lane, generation: self.generation })
    }

    /// Takes over the time, the progress and the sub-job flag of the assignment. Call it before [`JobRecord::close`].
    #[must_use]
    pub fn carry(mut self, assignment: &Assignment) -> Self {
        self.progress = assignment.progress.clone().or(self.progress);
        self.spawned |= assignment.spawned;
        self.assigned_at = Some(assignment.assigned_at);
        self.changed = assignment.cancelled.clone().or(self.changed);
        self
    }

    /// Closes an attempt. `random` is any 64 random bits for the jitter of the backoff.
    ///
    /// The caller commits the new record at the version that it read, so a concurrent change rejects it.
    #[must_use]
    pub fn close(mut self, attempt: Attempt, ending: Ending, at: WallMillis, random: u64) -> (Self, Next) {
        debug_assert!(!self.is_terminal(), "only an open job has an attempt to close");
        self.attempts = attempt.number;
        let (how, error) = match &ending {
            Ending::Succeeded(_) => (AttemptOutcome::Succeeded, None),
            Ending::Failed(error) => (AttemptOutcome::Failed, Some(cut(error, MAX_ERROR_BYTES))),
            Ending::Lost => {
                let (n, worker) = (attempt.number, attempt.worker);
                (AttemptOutcome::Lost, Some(format!("attempt {n} lost its worker {worker}")))
            }
            Ending::Released => (AttemptOutcome::Released, None),
            Ending::Cancelled => (AttemptOutcome::Cancelled, None),
            Ending::Invalid(why) => (AttemptOutcome::Invalid, Some(cut(why, MAX_ERROR_BYTES))),
            Ending::Snoozed(_) => (AttemptOutcome::Snoozed, None),
            Ending::LeaseExpired => {
                let (n, worker) = (attempt.number, attempt.worker);
                let error = format!("the lease of attempt {n} on worker {worker} expired without a renewal");
                (AttemptOutcome::LeaseExpired, Some(error))
            }
            Ending::Expired => (AttemptOutcome::Expired, Some(self.overdue())),
        };
        self.last = Some(AttemptEnd { attempt, how, at });
        self.note(attempt, how, at, &ending);
        self.last_error = error.or(self.last_error);
        let terminal = |verdict| JobState::Terminal { verdict, at };
        self.state = match ending {
            Ending::Succeeded(result) => terminal(Verdict::Succeeded(result)),
            Ending::Cancelled => terminal(Verdict::Cancelled),
            Ending::Released => JobState::Open { not_before: None },
            Ending::Snoozed(wait) => {
                JobState::Open { not_before: Some(at + wait.clamp(MIN_DEFERRAL, MAX_WAIT)) }
            }
            Ending::Invalid(_) | Ending::Expired => terminal(Verdict::Dead),
            lost @ (Ending::Lost | Ending::LeaseExpired) => {
                self.losses += 1;
                // An expired lease shows a hung run, whatever becomes of the process.
                if lost == Ending::Lost {
                    self.suspect(attempt.worker);
                }
                if self.losses >= self.policy.max_losses {
                    terminal(Verdict::Dead)
                } else {
                    // The jobs of a lost worker do not return together.
                    let wait = self.policy.backoff.delay(self.losses, random);
                    JobState::Open { not_before: Some(at + wait) }
                }
            }
            Ending::Failed(_) => {
                self.failures += 1;
                if self.failures >= self.policy.max_attempts {
                    terminal(Verdict::Dead)
                } else {
                    let wait = self.policy.backoff.delay(self.failures, random);
                    JobState::Open { not_before: Some(at + wait) }
                }
            }
        };
        let next = match (&self.state, self.delay()) {
            (JobState::Terminal { .. }, _) => Next::Terminal,
            (JobState::Open { .. }, None) => Next::Queue,
            (JobState::Open { .. }, Some(delay)) => Next::Delay(delay),
        };
        (self, next)
    }

    /// Whether `attempt` was closed by the write that created this record. A worker recognises its own report with it
    /// after a lost reply.
    #[must_use]
    pub fn was_closed_by(&self, attempt: Attempt) -> bool {
        self.last.is_some_and(|last| last.attempt == attempt)
    }

    /// Ends a job without a running attempt as cancelled.
    #[must_use]
    pub fn cancel(mut self, at: WallMillis) -> Self {
        self.state = JobState::Terminal { verdict: Verdict::Cancelled, at };
        self
    }

    /// Ends a job without a running attempt, because it has expired.
    #[must_use]
    pub fn expire(mut self, at: WallMillis) -> Self {
        self.last_error = Some(self.overdue());
        self.state = JobState::Terminal { verdict: Verdict::Dead, at };
        self
    }

    /// Whether the job has expired.
    #[must_use]
    pub fn is_overdue(&self, now: WallMillis) -> bool {
        self.expires_at.is_some_and(|at| at < now)
    }

    fn overdue(&self) -> String {
        match self.expires_at {
            Some(at) => format!("not started before it expired, at {at}"),
            None => "not started before it expired".to_owned(),
        }
    }

    /// Opens a new generation of a dead or cancelled job. Counters are reset, the last error and the progress are
    /// kept, and the expiry is removed.
    #[must_use]
    pub fn reopen(mut self) -> Self {
        self.generation += 1;
        self.expires_at = None;
        (self.spawned, self.released) = (false, false);
        (self.attempts, self.failures, self.losses, self.excused) = (0, 0, 0, 0);
        self.lost_workers.clear();
        self.state = JobState::Open { not_before: None };
        self
    }

    /// Whether submitting `other` under this record's id is the same submission: same kind and payload.
    #[must_use]
    pub fn is_same_submission(&self, other: &Self) -> bool {
        self.kind == other.kind && self.payload == other.payload
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
