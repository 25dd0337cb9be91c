//! Attempts and how they end. [`JobRecord::close`] decides what an ending does to the job.
//!
//! [`JobRecord::close`]: crate::job::JobRecord::close

use std::time::Duration;

use serde::Serialize;

use crate::job::{JobRecord, JobState, Payload, Verdict};
use crate::name::WorkerId;
use crate::time::WallMillis;

/// One assignment of a job to a worker incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// 1, 2, … within the generation, without gaps (S9).
    pub number: u32,
    /// The worker that runs it.
    pub worker: WorkerId,
}

/// A closed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptEnd {
    /// The attempt.
    pub attempt: Attempt,
    /// How it ended.
    pub how: AttemptOutcome,
    /// When, by the closer's wall clock.
    pub at: WallMillis,
}

/// How an attempt ended, without its error or result, which are stored in other fields of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
pub enum AttemptOutcome {
    /// The handler returned a result.
    Succeeded,
    /// The handler failed, panicked or exceeded its time limit.
    Failed,
    /// The worker was lost.
    Lost,
    /// The worker handed the job back while it drained.
    Released,
    /// The job was cancelled.
    Cancelled,
    /// The handler reported that the job can never succeed.
    Invalid,
    /// The handler asked to be called again later.
    Snoozed,
    /// The lease was not renewed in time.
    LeaseExpired,
    /// The job expired before the attempt started.
    Expired,
}

crate::impl_names!(AttemptOutcome {
    Succeeded = "succeeded",
    Failed = "failed",
    Lost = "lost",
    Released = "released",
    Cancelled = "cancelled",
    Invalid = "invalid",
    Snoozed = "snoozed",
    LeaseExpired = "lease_expired",
    Expired = "expired",
});

/// What the close of an attempt did, for logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClosedAttempt {
    /// How the attempt ended.
    pub how: AttemptOutcome,
    /// Whether the job is dead.
    pub dead: bool,
}

impl ClosedAttempt {
    /// Describes the close that created this record.
    #[must_use]
    pub fn of(record: &JobRecord) -> Self {
        let how = record.last.map_or(AttemptOutcome::Lost, |last| last.how);
        let dead = matches!(record.state, JobState::Terminal { verdict: Verdict::Dead, .. });
        Self { how, dead }
    }
}

/// How an attempt ends, with its result or error.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The handler returned a result.
    Succeeded(Payload),
    /// The handler failed, panicked or exceeded its time limit.
    Failed(String),
    /// The worker was lost.
    Lost,
    /// Its worker handed it back.
    Released,
    /// The job was cancelled.
    Cancelled,
    /// The handler reported that the job can never succeed, with the reason. The job is not retried.
    Invalid(String),
    /// The handler asked to be called again after this time, which is clamped to [`MIN_DEFERRAL`] and [`MAX_WAIT`].
    /// Counts as neither failure nor loss.
    ///
    /// [`MIN_DEFERRAL`]: crate::budget::MIN_DEFERRAL
    /// [`MAX_WAIT`]: crate::budget::MAX_WAIT
    Snoozed(Duration),
    /// The lease was not renewed in time. Counts as a loss.
    LeaseExpired,
    /// The job expired before the attempt started. It is not retried.
    Expired,
}
