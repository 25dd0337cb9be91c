//! The earliest start and the expiry of a job.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bellwether_core::budget::MAX_AHEAD;
use bellwether_core::time::WallMillis;

use super::timestamp::rfc3339;

/// As they were given: relative times count from the submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Timing {
    pub(super) start: Option<Moment>,
    pub(super) expiry: Option<Moment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    At(SystemTime),
    In(Duration),
}

/// As they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    /// `None`: immediately.
    pub(super) not_before: Option<WallMillis>,
    pub(super) expires_at: Option<WallMillis>,
}

/// A time of a job is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimingError {
    /// The time is too far ahead.
    #[error("{field} must be at most {} days ahead", MAX_AHEAD.as_secs() / 86_400)]
    TooFar {
        /// The field.
        field: &'static str,
    },
    /// The job expires before it could start.
    #[error("expiry must be in the future, not {}: leave it out, or give a later one", rfc3339(*.0))]
    Expired(SystemTime),
    /// The job expires before it may start.
    #[error(
        "expiry must be after run_at, not {} with run_at {}: it would never start",
        rfc3339(*.expires_at),
        rfc3339(*.run_at)
    )]
    Never {
        /// The earliest start.
        run_at: SystemTime,
        /// The expiry.
        expires_at: SystemTime,
    },
}

impl Timing {
    /// Resolves the times at the instant of the submission.
    ///
    /// # Errors
    /// The first invalid time. A start in the past is valid and means immediately.
    pub(super) fn at(self, now: WallMillis) -> Result<Times, TimingError> {
        let start = self.start.map(|start| start.at(now, "run_at")).transpose()?;
        let not_before = start.filter(|start| *start > now);
        let expires_at = self.expiry.map(|expiry| expiry.at(now, "expiry")).transpose()?;
        if let Some(expires_at) = expires_at {
            if expires_at <= now {
                return Err(TimingError::Expired(expires_at.into()));
            }
            if let Some(run_at) = not_before.filter(|run_at| *run_at >= expires_at) {
                return Err(TimingError::Never { run_at: run_at.into(), expires_at: expires_at.into() });
            }
        }
        Ok(Times { not_before, expires_at })
    }
}

impl Moment {
    fn at(self, now: WallMillis, field: &'static str) -> Result<WallMillis, TimingError> {
        let at = match self {
            Self::In(wait) => now + wait,
            // An instant before 1970 is treated as 1970.
            Self::At(at) => WallMillis(0) + at.duration_since(UNIX_EPOCH).unwrap_or_default(),
        };
        if at.since(now) > MAX_AHEAD {
            return Err(TimingError::TooFar { field });
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests;
