//! The earliest start and the expiry of a job.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bellwether_core::budget::MAX_AHEAD;
use bellwether_core::duration::DurationText;
use bellwether_core::instant::InstantText;
use bellwether_core::time::WallMillis;

use super::job::JobError;
use super::timestamp::rfc3339;

/// The field of an instant, and that of a wait.
type Fields = [&'static str; 2];

pub(super) const START: Fields = ["run_at", "delay"];
pub(super) const EXPIRY: Fields = ["expires_at", "expires_in"];

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
    #[error("{field} must be in the future, not {}: leave it out, or give a later one", rfc3339(*.expires_at))]
    Expired {
        /// The field.
        field: &'static str,
        /// The expiry.
        expires_at: SystemTime,
    },
    /// The job expires before it may start.
    #[error(
        "{expiry} must be after {start}: a job that expires at {} and may start at {} would never start",
        rfc3339(*.expires_at),
        rfc3339(*.run_at)
    )]
    Never {
        /// The field of the start.
        start: &'static str,
        /// The field of the expiry.
        expiry: &'static str,
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
        let start = self.start.map(|start| start.at(now, START)).transpose()?;
        let start = start.filter(|(_, start)| *start > now);
        let expiry = self.expiry.map(|expiry| expiry.at(now, EXPIRY)).transpose()?;
        if let Some((field, at)) = expiry {
            let expires_at = at.into();
            if at <= now {
                return Err(TimingError::Expired { field, expires_at });
            }
            if let Some((start, run_at)) = start.filter(|(_, run_at)| *run_at >= at) {
                return Err(TimingError::Never { start, expiry: field, run_at: run_at.into(), expires_at });
            }
        }
        Ok(Times { not_before: start.map(|(_, at)| at), expires_at: expiry.map(|(_, at)| at) })
    }
}

impl Moment {
    /// Reads at most one of two fields.
    pub(super) fn of(
        at: Option<InstantText>,
        wait: Option<DurationText>,
        [first, second]: Fields,
    ) -> Result<Option<Self>, JobError> {
        match (at, wait) {
            (None, None) => Ok(None),
            (Some(InstantText(at)), None) => Ok(Some(Self::At(at))),
            (None, Some(DurationText(wait))) => Ok(Some(Self::In(wait))),
            (Some(_), Some(_)) => Err(JobError::Both { first, second }),
        }
    }

    /// Returns the field that was given.
    pub(super) fn field(self, [at, wait]: Fields) -> &'static str {
        match self {
            Self::At(_) => at,
            Self::In(_) => wait,
        }
    }

    fn at(self, now: WallMillis, fields: Fields) -> Result<(&'static str, WallMillis), TimingError> {
        let field = self.field(fields);
        let at = match self {
            Self::In(wait) => now + wait,
            // An instant before 1970 is treated as 1970.
            Self::At(at) => WallMillis(0) + at.duration_since(UNIX_EPOCH).unwrap_or_default(),
        };
        if at.since(now) > MAX_AHEAD {
            return Err(TimingError::TooFar { field });
        }
        Ok((field, at))
    }
}

#[cfg(test)]
mod tests;
