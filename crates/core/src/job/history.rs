//! The closed attempts that a record lists for people.
//!
//! Nothing is decided from the list, and it is bounded: [`MAX_PAST_ATTEMPTS`] attempts, the newest ones, with the first
//! [`MAX_PAST_ERROR_BYTES`] bytes of their errors, together at most 2.5 KB. An attempt that succeeded is not listed, because
//! [`JobRecord::last`] and [`JobRecord::assigned_at`] describe it: a job without trouble stores no list.

use crate::budget::{MAX_PAST_ATTEMPTS, MAX_PAST_ERROR_BYTES};
use crate::job::{Attempt, AttemptEnd, AttemptOutcome, Ending, JobRecord};
use crate::time::WallMillis;

/// A closed attempt, of this generation or of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PastAttempt {
    /// The generation of the attempt.
    pub generation: u32,
    /// The attempt, how it ended and when.
    pub end: AttemptEnd,
    /// When it was assigned, by the leader's wall clock; `None` if that is not known.
    pub assigned_at: Option<WallMillis>,
    /// What its handler reported, if the attempt failed or was invalid.
    pub error: Option<String>,
}

impl JobRecord {
    /// The closed attempts that are known, oldest first.
    #[must_use]
    pub fn past(&self) -> Vec<PastAttempt> {
        let succeeded = self.last.filter(|last| last.how == AttemptOutcome::Succeeded);
        let succeeded = succeeded.map(|end| self.past_attempt(end, None));
        self.history.iter().cloned().chain(succeeded).collect()
    }

    /// Adds an attempt that was closed, unless it succeeded, and drops the oldest one that is too many.
    pub(super) fn note(&mut self, attempt: Attempt, how: AttemptOutcome, at: WallMillis, ending: &Ending) {
        let error = match ending {
            Ending::Succeeded(_) => return,
            Ending::Failed(error) | Ending::Invalid(error) => Some(cut(error, MAX_PAST_ERROR_BYTES)),
            // Their texts follow from the attempt.
            Ending::Lost
            | Ending::Released
            | Ending::Cancelled
            | Ending::Snoozed(_)
            | Ending::LeaseExpired
            | Ending::Expired => None,
        };
        if self.history.len() >= MAX_PAST_ATTEMPTS {
            self.history.remove(0);
        }
        self.history.push(self.past_attempt(AttemptEnd { attempt, how, at }, error));
    }

    fn past_attempt(&self, end: AttemptEnd, error: Option<String>) -> PastAttempt {
        PastAttempt { generation: self.generation, end, assigned_at: self.assigned_at, error }
    }
}

/// The first bytes of a text, cut at a character boundary.
pub(super) fn cut(text: &str, most: usize) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::job::{Assignment, Payload};
    use crate::name::{Kind, WorkerId};

    const ASSIGNED: WallMillis = WallMillis(1_000);
    const ENDED: WallMillis = WallMillis(3_000);

    fn job() -> JobRecord {
        let (kind, payload) = (Kind::new("sum").unwrap(), Payload::json(*b"{}").unwrap());
        let mut job = JobRecord::new(kind, payload, Uuid::from_u128(1), WallMillis(1));
        (job.policy.max_attempts, job.policy.max_losses) = (100, 100);
        job
    }

    fn close(job: JobRecord, ending: Ending) -> JobRecord {
        let number = job.attempts + 1;
        let attempt = Attempt { number, worker: WorkerId::new(Uuid::from_u128(number.into())) };
        job.carry(&Assignment::new(number, 1, ASSIGNED)).close(attempt, ending, ENDED, 0).0
    }

    fn seen(job: &JobRecord) -> Vec<(u32, u32, AttemptOutcome, Option<String>)> {
        let seen = |past: PastAttempt| (past.generation, past.end.attempt.number, past.end.how, past.error);
        job.past().into_iter().map(seen).collect()
    }

    #[test]
    fn each_closed_attempt_is_listed_with_its_worker_its_times_and_its_error() {
        let job =
            close(close(close(job(), Ending::Failed("no disk".into())), Ending::Lost), Ending::Released);
        let job = close(job, Ending::Succeeded(Payload::json(*b"1").unwrap()));
        assert_eq!(
            seen(&job),
            [
                (1, 1, AttemptOutcome::Failed, Some("no disk".to_owned())),
                (1, 2, AttemptOutcome::Lost, None),
                (1, 3, AttemptOutcome::Released, None),
                (1, 4, AttemptOutcome::Succeeded, None),
            ]
        );
        for (number, past) in (1_u32..).zip(job.past()) {
            assert_eq!(past.end.attempt.worker, WorkerId::new(Uuid::from_u128(number.into())));
            assert_eq!((past.assigned_at, past.end.at), (Some(ASSIGNED), ENDED));
        }
    }

    #[test]
    fn a_job_that_succeeds_in_its_first_attempt_stores_no_list() {
        let job = close(job(), Ending::Succeeded(Payload::json(*b"1").unwrap()));
        assert_eq!((job.history.len(), job.past().len()), (0, 1));
    }

    #[test]
    fn the_list_keeps_the_newest_attempts_and_the_start_of_their_errors() {
        let failed = || Ending::Failed("é".repeat(MAX_PAST_ERROR_BYTES));
        let most = u32::try_from(MAX_PAST_ATTEMPTS).unwrap();
        let job = (0..most + 3).fold(job(), |job, _| close(job, failed()));
        let numbers = job.past().iter().map(|past| past.end.attempt.number).collect::<Vec<_>>();
        assert_eq!(numbers, (4..=most + 3).collect::<Vec<_>>());
        let longest = job.past().iter().filter_map(|past| past.error.as_ref().map(String::len)).max();
        assert_eq!(longest, Some(MAX_PAST_ERROR_BYTES));
        assert!(job.last_error.unwrap().len() > MAX_PAST_ERROR_BYTES, "the last error is complete");
    }

    #[test]
    fn a_retry_keeps_the_attempts_of_the_generation_before() {
        let job = close(job(), Ending::Failed("one".into())).expire(ENDED).reopen();
        let job = close(job, Ending::Invalid("two".into()));
        let (one, two) = (Some("one".to_owned()), Some("two".to_owned()));
        let expected = [(1, 1, AttemptOutcome::Failed, one), (2, 1, AttemptOutcome::Invalid, two)];
        assert_eq!(seen(&job), expected);
    }
}
