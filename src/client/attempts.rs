//! The closed attempts of a job, for people.

use std::time::{Duration, SystemTime};

use bellwether_core::job::{AttemptOutcome, PastAttempt};
use bellwether_core::name::WorkerId;

/// A closed attempt of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastAttemptView {
    /// The generation of the job in which it ran.
    pub generation: u32,
    /// Its number in that generation.
    pub attempt: u32,
    /// The worker that it was assigned to.
    pub worker: WorkerId,
    /// When it was assigned, by the leader's clock; `None` if that is not known.
    pub assigned_at: Option<SystemTime>,
    /// When it was closed, by the clock of the process that closed it: its worker, or the leader.
    pub ended_at: SystemTime,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// The start of the error that its handler reported.
    pub error: Option<String>,
}

impl PastAttemptView {
    /// Returns the time from its assignment to its end; zero if the clocks of the two processes disagree about the order.
    #[must_use]
    pub fn run_time(&self) -> Option<Duration> {
        Some(self.ended_at.duration_since(self.assigned_at?).unwrap_or_default())
    }
}

impl PastAttemptView {
    pub(super) fn of(past: PastAttempt) -> Self {
        Self {
            generation: past.generation,
            attempt: past.end.attempt.number,
            worker: past.end.attempt.worker,
            assigned_at: past.assigned_at.map(Into::into),
            ended_at: past.end.at.into(),
            outcome: past.end.how,
            error: past.error,
        }
    }
}
