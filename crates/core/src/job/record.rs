//! The record and its transitions.

use std::time::Duration;

use crate::budget::{MAX_ERROR_BYTES, MAX_WAIT, MIN_DEFERRAL};
use crate::job::{Assignment, Membership, Payload, Policy, Priority, Progress, QueueEntry, Turn};
use crate::name::{AffinityKey, Kind, Lane, Tag, WorkerId};
use crate::time::WallMillis;
use crate::trace::TraceContext;
use uuid::Uuid;

/// Where a job may run, where it would rather, and after whom.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Placement {
    /// Tags that the worker must have; sorted, without repeats.
    pub tags: Vec<Tag>,
    /// Jobs of one key prefer one worker under the rendezvous strategy.
    pub affinity: Option<AffinityKey>,
    /// Jobs of one lane run one at a time, in the order of their submission.
    pub lane: Option<Lane>,
}

/// Everything about a job that must survive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobRecord {
    /// Which handler runs it.
    pub kind: Kind,
    /// What the handler gets.
    pub payload: Payload,
    /// How often and how long it is tried.
    pub policy: Policy,
    /// Where it may run.
    pub placement: Placement,
    /// How urgent it is.
    pub priority: Priority,
    /// Not to be started later, by the clock of whoever would start it.
    pub expires_at: Option<WallMillis>,
    /// Its group, if it has one.
    pub membership: Option<Membership>,
    /// Chosen by the submitting call: tells its own record from another's when a reply was lost.
    pub token: Uuid,
    /// When it was submitted, by the client's wall clock.
    pub submitted_at: WallMillis,
    /// 1, and one more for each operator's retry of a dead job.
    pub generation: u32,
    /// Attempts of this generation that are closed; the next is `attempts + 1`.
    pub attempts: u32,
    /// How many of them failed.
    pub failures: u32,
    /// How many of them lost their worker.
    pub losses: u32,
    /// The attempt that was closed last.
    pub last: Option<AttemptEnd>,
    /// The last error, also of an earlier generation.
    pub last_error: Option<String>,
    /// What its attempts said of themselves, as far as they are closed.
    pub progress: Option<Progress>,
    /// Whether one of them has sub-jobs: its own end then waits for theirs.
    pub spawned: bool,
    /// The trace that it was submitted in, which all of its attempts are part of.
    pub trace: Option<TraceContext>,
    /// Open or terminal.
    pub state: JobState,
}

/// Whether a job goes on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum JobState {
    /// Queued, delayed or assigned: the place that holds its entry tells which.
    Open {
        /// Set while it waits for its time, or out of a backoff: names its minute under `/delayed`.
        not_before: Option<WallMillis>,
    },
    /// Over; never changes but by an operator's retry of a dead job.
    Terminal {
        /// How it ended.
        verdict: Verdict,
        /// When, by the wall clock of whoever ended it.
        at: WallMillis,
    },
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// With this result.
    Succeeded(Payload),
    /// By a client's wish.
    Cancelled,
    /// By its own failures or its workers' losses; `last_error` tells.
    Dead,
}

/// One assignment of a job to a worker incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// 1, 2, … within the generation, without a gap (S9).
    pub number: u32,
    /// Who has it.
    pub worker: WorkerId,
}

/// A closed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptEnd {
    /// Which.
    pub attempt: Attempt,
    /// How it ended.
    pub how: AttemptEndKind,
    /// When, by the closer's wall clock.
    pub at: WallMillis,
}

/// The stored form of an [`Ending`]; the texts and results stand elsewhere in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptEndKind {
    /// The handler returned a result.
    Succeeded,
    /// The handler failed, panicked, or ran out of time.
    Failed,
    /// Its worker is gone.
    Lost,
    /// Its worker handed it back, unfinished, while draining.
    Released,
    /// It was cancelled while it ran.
    Cancelled,
    /// The handler said that the job can never succeed.
    Invalid,
    /// The handler asked to be called again later.
    Deferred,
    /// It gave no sign of life within its lease.
    LeaseExpired,
    /// Its time to start passed before it started.
    Overdue,
}

/// How an attempt ends, with what it leaves behind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The handler returned a result.
    Succeeded(Payload),
    /// The handler failed, panicked, or ran out of time.
    Failed(String),
    /// Its worker is gone.
    Lost,
    /// Its worker handed it back.
    Released,
    /// It was cancelled while it ran.
    Cancelled,
    /// The handler said that the job can never succeed, and why. It is not tried again.
    Invalid(String),
    /// The handler asked to be called again after this time, which is taken into [`MIN_DEFERRAL`] to [`MAX_WAIT`]. Counts as
    /// neither failure nor loss.
    Deferred(Duration),
    /// It gave no sign of life within its lease. Counts as a loss.
    LeaseExpired,
    /// Its time to start passed before it started. It is not tried again.
    Overdue,
}

/// Where a job goes when an attempt is closed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Next {
    /// Nowhere: it is over.
    Terminal,
    /// Back to the queue.
    Queue(QueueEntry),
    /// To the delayed jobs, until its backoff is over.
    Delay(QueueEntry),
}

impl JobRecord {
    /// An ordinary job that was never tried.
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
            last: None,
            last_error: None,
            progress: None,
            spawned: false,
            trace: None,
            state: JobState::Open { not_before: None },
        }
    }

    /// Whether the job is over.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self.state, JobState::Terminal { .. })
    }

    /// The entry that stands in the queue while the job waits for its next attempt.
    #[must_use]
    pub fn entry(&self) -> QueueEntry {
        let not_before = match self.state {
            JobState::Open { not_before } => not_before.unwrap_or_default(),
            JobState::Terminal { .. } => WallMillis::default(),
        };
        QueueEntry {
            kind: self.kind.clone(),
            attempt: self.attempts + 1,
            generation: self.generation,
            placement: self.placement.clone(),
            not_before,
            priority: self.priority,
            submitted_at: self.submitted_at.max(not_before),
            expires_at: self.expires_at,
            lease: self.policy.lease,
            trace: self.trace.filter(TraceContext::is_sampled),
        }
    }

    /// The minute under `/delayed` in which its entry stands while it waits for its time.
    #[must_use]
    pub fn minute(&self) -> Option<u64> {
        match self.state {
            JobState::Open { not_before } => not_before.map(WallMillis::minute),
            JobState::Terminal { .. } => None,
        }
    }

    /// Its turn in its lane, which is there from the submission, or the retry, to the end.
    #[must_use]
    pub fn turn(&self) -> Option<Turn> {
        let lane = self.placement.lane.clone()?;
        Some(Turn { lane, generation: self.generation })
    }

    /// Takes over what an attempt left in its assignment: to be called before [`JobRecord::close`].
    #[must_use]
    pub fn carry(mut self, assignment: &Assignment) -> Self {
        self.progress = assignment.progress.clone().or(self.progress);
        self.spawned |= assignment.spawned;
        self
    }

    /// Closes an attempt. `random` is any 64 random bits for the backoff's jitter.
    ///
    /// The caller commits the new record on the version that it read: a record that moved on meanwhile
    /// rejects it.
    #[must_use]
    pub fn close(mut self, attempt: Attempt, ending: Ending, at: WallMillis, random: u64) -> (Self, Next) {
        debug_assert!(!self.is_terminal(), "only an open job has an attempt to close");
        self.attempts = attempt.number;
        let (how, error) = match &ending {
            Ending::Succeeded(_) => (AttemptEndKind::Succeeded, None),
            Ending::Failed(error) => (AttemptEndKind::Failed, Some(truncated(error))),
            Ending::Lost => {
                let (n, worker) = (attempt.number, attempt.worker);
                (AttemptEndKind::Lost, Some(format!("attempt {n} lost its worker {worker}")))
            }
            Ending::Released => (AttemptEndKind::Released, None),
            Ending::Cancelled => (AttemptEndKind::Cancelled, None),
            Ending::Invalid(why) => (AttemptEndKind::Invalid, Some(truncated(why))),
            Ending::Deferred(_) => (AttemptEndKind::Deferred, None),
            Ending::LeaseExpired => {
                let (n, worker) = (attempt.number, attempt.worker);
                let error = format!("attempt {n} gave no sign of life on worker {worker} within its lease");
                (AttemptEndKind::LeaseExpired, Some(error))
            }
            Ending::Overdue => (AttemptEndKind::Overdue, Some(self.overdue())),
        };
        self.last = Some(AttemptEnd { attempt, how, at });
        self.last_error = error.or(self.last_error);
        let terminal = |verdict| JobState::Terminal { verdict, at };
        self.state = match ending {
            Ending::Succeeded(result) => terminal(Verdict::Succeeded(result)),
            Ending::Cancelled => terminal(Verdict::Cancelled),
            Ending::Released => JobState::Open { not_before: None },
            Ending::Deferred(wait) => {
                JobState::Open { not_before: Some(at + wait.clamp(MIN_DEFERRAL, MAX_WAIT)) }
            }
            Ending::Invalid(_) | Ending::Overdue => terminal(Verdict::Dead),
            Ending::Lost | Ending::LeaseExpired => {
                self.losses += 1;
                if self.losses >= self.policy.max_losses {
                    terminal(Verdict::Dead)
                } else {
                    JobState::Open { not_before: None }
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
        let next = match self.state {
            JobState::Terminal { .. } => Next::Terminal,
            JobState::Open { not_before: None } => Next::Queue(self.entry()),
            JobState::Open { not_before: Some(_) } => Next::Delay(self.entry()),
        };
        (self, next)
    }

    /// Whether `attempt` was closed by the write that made this record: how a worker recognises its own
    /// report when the reply was lost.
    #[must_use]
    pub fn was_closed_by(&self, attempt: Attempt) -> bool {
        self.last.is_some_and(|last| last.attempt == attempt)
    }

    /// Ends a job that has no attempt under way.
    #[must_use]
    pub fn cancel(mut self, at: WallMillis) -> Self {
        self.state = JobState::Terminal { verdict: Verdict::Cancelled, at };
        self
    }

    /// Ends a job that has no attempt under way, because its time to start has passed.
    #[must_use]
    pub fn expire(mut self, at: WallMillis) -> Self {
        self.last_error = Some(self.overdue());
        self.state = JobState::Terminal { verdict: Verdict::Dead, at };
        self
    }

    /// Whether its time to start has passed.
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

    /// Opens a new generation of a dead or cancelled job: counters start afresh, the last error and the progress
    /// stay, and it does not expire any more.
    #[must_use]
    pub fn reopen(mut self) -> Self {
        self.generation += 1;
        self.expires_at = None;
        self.spawned = false;
        (self.attempts, self.failures, self.losses) = (0, 0, 0);
        self.state = JobState::Open { not_before: None };
        self
    }

    /// Whether submitting `other` under this record's id is the same submission: same kind and payload.
    #[must_use]
    pub fn is_same_submission(&self, other: &Self) -> bool {
        self.kind == other.kind && self.payload == other.payload
    }
}

fn truncated(error: &str) -> String {
    let mut end = error.len().min(MAX_ERROR_BYTES);
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    error[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn job(max_attempts: u32, max_losses: u32) -> JobRecord {
        let (kind, payload) = (Kind::new("sum").unwrap(), Payload::json(*b"{}").unwrap());
        JobRecord {
            policy: Policy { max_attempts, max_losses, ..Policy::default() },
            ..JobRecord::new(kind, payload, Uuid::from_u128(1), WallMillis(1_000))
        }
    }

    fn attempt(number: u32) -> Attempt {
        Attempt { number, worker: WorkerId::new(Uuid::from_u128(2)) }
    }

    const NOW: WallMillis = WallMillis(5_000);

    /// What the leader writes nothing about, it need not carry.
    #[test]
    fn every_attempt_and_generation_is_part_of_the_trace_of_the_submission_and_waits_with_it_if_it_is_recorded()
     {
        let traced = |flags| {
            let context = TraceContext::new([1; 16], [2; 8], flags).unwrap();
            (context, JobRecord { trace: Some(context), ..job(9, 9) })
        };
        let (context, record) = traced(1);
        assert_eq!(record.entry().trace, Some(context));
        let (lost, next) = record.close(attempt(1), Ending::Lost, NOW, 0);
        assert!(matches!(next, Next::Queue(ref entry) if entry.trace == Some(context)), "{next:?}");
        assert_eq!(lost.cancel(NOW).reopen().trace, Some(context));
        let (context, record) = traced(0);
        assert_eq!((record.trace, record.entry().trace), (Some(context), None));
    }

    #[test]
    fn a_failure_waits_out_its_backoff_and_keeps_its_error() {
        let (job, next) = job(2, 1).close(attempt(1), Ending::Failed("boom".into()), NOW, 0);
        let JobState::Open { not_before: Some(until) } = job.state else { panic!("{job:?}") };
        assert_eq!(until.since(NOW), Duration::from_millis(500));
        let Next::Delay(entry) = next else { panic!("{next:?}") };
        assert_eq!((entry.attempt, entry.not_before), (2, until));
        assert_eq!(job.last_error.as_deref(), Some("boom"));
    }

    #[test]
    fn the_last_failure_makes_the_job_dead() {
        let (job, _) = job(2, 9).close(attempt(1), Ending::Failed("one".into()), NOW, 0);
        let (job, next) = job.close(attempt(2), Ending::Failed("two".into()), NOW, 0);
        assert_eq!(next, Next::Terminal);
        assert_eq!(job.state, JobState::Terminal { verdict: Verdict::Dead, at: NOW });
        assert_eq!(job.last_error.as_deref(), Some("two"));
    }

    #[test]
    fn losses_are_counted_apart_from_failures_and_kill_a_poison_job() {
        let (job, _) = job(2, 2).close(attempt(1), Ending::Failed("one".into()), NOW, 0);
        let (job, next) = job.close(attempt(2), Ending::Lost, NOW, 0);
        assert!(matches!(next, Next::Queue(ref entry) if entry.attempt == 3), "{next:?}");
        let (job, next) = job.close(attempt(3), Ending::Lost, NOW, 0);
        assert_eq!(next, Next::Terminal);
        assert_eq!((job.failures, job.losses), (1, 2));
        assert!(job.last_error.unwrap().starts_with("attempt 3 lost its worker"));
    }

    #[test]
    fn a_hand_back_counts_as_neither() {
        let (job, next) = job(1, 1).close(attempt(1), Ending::Released, NOW, 0);
        assert_eq!((job.failures, job.losses, job.attempts), (0, 0, 1));
        assert!(matches!(next, Next::Queue(ref entry) if entry.attempt == 2), "{next:?}");
    }

    #[test]
    fn a_job_that_can_never_succeed_is_dead_at_once_with_the_reason() {
        let (job, next) = job(9, 9).close(attempt(1), Ending::Invalid("no such account".into()), NOW, 0);
        assert_eq!((next, job.failures, job.losses), (Next::Terminal, 0, 0));
        assert_eq!(job.state, JobState::Terminal { verdict: Verdict::Dead, at: NOW });
        assert_eq!(job.last_error.as_deref(), Some("no such account"));
    }

    #[test]
    fn a_job_that_asks_to_be_called_later_is_delayed_and_has_lost_nothing() {
        let wait = Duration::from_secs(90);
        let (job, next) = job(1, 1).close(attempt(1), Ending::Deferred(wait), NOW, 0);
        assert_eq!((job.failures, job.losses, job.attempts), (0, 0, 1));
        assert!(matches!(next, Next::Delay(ref entry) if entry.not_before == NOW + wait), "{next:?}");
    }

    #[test]
    fn a_job_that_asks_to_be_called_at_once_is_not() {
        for (asked, waits) in [(Duration::ZERO, MIN_DEFERRAL), (Duration::MAX, MAX_WAIT)] {
            let (deferred, _) = job(1, 1).close(attempt(1), Ending::Deferred(asked), NOW, 0);
            assert_eq!(deferred.state, JobState::Open { not_before: Some(NOW + waits) });
        }
    }

    #[test]
    fn a_job_that_expired_says_when_as_people_write_it() {
        let expires = JobRecord { expires_at: Some(WallMillis(1_795_226_400_250)), ..job(1, 1) };
        let error = expires.expire(NOW).last_error.unwrap();
        assert_eq!(error, "not started before it expired, at 2026-11-21T02:00:00.250Z");
    }

    #[test]
    fn an_attempt_that_gave_no_sign_of_life_counts_as_a_loss() {
        let (job, next) = job(1, 2).close(attempt(1), Ending::LeaseExpired, NOW, 0);
        assert!(matches!(next, Next::Queue(ref entry) if entry.attempt == 2), "{next:?}");
        let (job, next) = job.close(attempt(2), Ending::LeaseExpired, NOW, 0);
        assert_eq!((next, job.failures, job.losses), (Next::Terminal, 0, 2));
        assert!(job.last_error.unwrap().starts_with("attempt 2 gave no sign of life on worker"));
    }

    #[test]
    fn a_job_that_was_not_started_in_time_is_dead_and_a_retry_of_it_does_not_expire() {
        let overdue = JobRecord { expires_at: Some(WallMillis(4_999)), ..job(9, 9) };
        assert!(overdue.is_overdue(NOW) && !overdue.is_overdue(WallMillis(4_999)));
        let expired = overdue.clone().expire(NOW);
        let (closed, next) = overdue.close(attempt(1), Ending::Overdue, NOW, 0);
        assert_eq!(next, Next::Terminal);
        assert_eq!(closed.state, expired.state);
        assert_eq!(closed.last_error, expired.last_error);
        assert!(!closed.reopen().is_overdue(NOW));
    }

    #[test]
    fn what_an_attempt_left_is_carried_into_the_record_and_its_silence_erases_nothing() {
        let said = Progress::default().with_checkpoint(*b"7").unwrap();
        let left = Assignment { progress: Some(said.clone()), spawned: true, ..Assignment::new(1, 1, NOW) };
        let record = job(9, 9).carry(&left).carry(&Assignment::new(2, 1, NOW));
        assert_eq!((record.progress, record.spawned), (Some(said), true));
    }

    #[test]
    fn a_long_error_is_cut_at_a_character_boundary() {
        let (job, _) = job(1, 1).close(attempt(1), Ending::Failed("é".repeat(MAX_ERROR_BYTES)), NOW, 0);
        let kept = job.last_error.unwrap();
        assert!(kept.len() <= MAX_ERROR_BYTES && kept.chars().all(|c| c == 'é'));
    }

    /// S9: a worker may get a job again, after a hand-back or a failure.
    #[test]
    fn a_record_was_closed_by_one_attempt_of_one_worker() {
        let (closed, _) = job(9, 9).close(attempt(1), Ending::Released, NOW, 0);
        assert!(closed.was_closed_by(attempt(1)));
        assert!(!closed.was_closed_by(attempt(2)), "the same worker, another attempt");
        let other = Attempt { worker: WorkerId::new(Uuid::from_u128(3)), ..attempt(1) };
        assert!(!closed.was_closed_by(other), "the same number, another worker");
    }

    /// S11
    #[test]
    fn a_submission_is_the_same_by_its_kind_and_payload_whatever_its_token_and_policy() {
        let again = JobRecord { token: Uuid::from_u128(2), submitted_at: NOW, ..job(9, 9) };
        assert!(job(1, 1).is_same_submission(&again));
        let other_kind = JobRecord { kind: Kind::new("echo").unwrap(), ..job(1, 1) };
        assert!(!job(1, 1).is_same_submission(&other_kind));
        let other_payload = JobRecord { payload: Payload::json(*b"[]").unwrap(), ..job(1, 1) };
        assert!(!job(1, 1).is_same_submission(&other_payload));
    }

    fn endings() -> impl Strategy<Value = Ending> {
        prop_oneof![
            Just(Ending::Failed("x".into())),
            Just(Ending::Lost),
            Just(Ending::Released),
            Just(Ending::Cancelled),
            Just(Ending::Invalid("x".into())),
            Just(Ending::Deferred(Duration::from_secs(1))),
            Just(Ending::LeaseExpired),
            Just(Ending::Overdue),
            Just(Ending::Succeeded(Payload::json(*b"1").unwrap())),
        ]
    }

    proptest! {
        /// S2, S9: attempts run 1..n without a gap, bounds hold, and what is terminal stays so.
        #[test]
        fn any_history_keeps_the_bounds(endings in prop::collection::vec(endings(), 1..40), random: u64) {
            let mut record = job(3, 2);
            for (n, ending) in (1..).zip(endings) {
                prop_assert_eq!(record.entry().attempt, n);
                let (closed, next) = record.close(attempt(n), ending, NOW, random);
                prop_assert!(closed.failures <= 3 && closed.losses <= 2);
                prop_assert_eq!(closed.is_terminal(), next == Next::Terminal);
                prop_assert!(closed.was_closed_by(attempt(n)));
                record = closed;
                if record.is_terminal() {
                    break;
                }
            }
        }
    }
}
