//! An attempt, and how it ends. What an ending does to the job is the record's to decide ([`JobRecord::close`]).
//!
//! [`JobRecord::close`]: crate::job::JobRecord::close

use std::time::Duration;

use crate::job::Payload;
use crate::name::WorkerId;
use crate::time::WallMillis;

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
    ///
    /// [`MIN_DEFERRAL`]: crate::budget::MIN_DEFERRAL
    /// [`MAX_WAIT`]: crate::budget::MAX_WAIT
    Deferred(Duration),
    /// It gave no sign of life within its lease. Counts as a loss.
    LeaseExpired,
    /// Its time to start passed before it started. It is not tried again.
    Overdue,
}
