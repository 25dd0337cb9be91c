//! How long the records of jobs that are over are kept.
//!
//! One setting for a namespace, in `/config/retention`, so that candidates cannot differ about it. The first node makes
//! it with the defaults. Where it is absent or cannot be read nothing is removed.

use std::time::Duration;

use crate::budget::{BUCKETS, MAX_RECORDS, MAX_RETENTION, MIN_RETENTION};
use crate::group::End;
use crate::job::Verdict;

/// The shortest time for which a record is kept, whatever a hand wrote into the settings, which cannot be set below
/// [`MIN_RETENTION`]. A removed record's id is free again, and whoever heard of the earlier job of that id must have
/// forgotten it before: messages between the actors of a node, and requests on their way, are younger than this.
pub const KEPT_AT_LEAST: Duration = Duration::from_secs(5);

const DAY: Duration = Duration::from_secs(24 * 3600);

/// What is kept of jobs that are over: each for a time that depends on its end, and not more than so many of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Retention {
    /// Of those that succeeded. Default 1 day.
    pub succeeded: Duration,
    /// Of those that were cancelled. Default 7 days.
    pub cancelled: Duration,
    /// Of those that are dead: somebody may want to know why, or retry them. Default 30 days.
    pub dead: Duration,
    /// Most records of jobs that are over, in the whole namespace; beyond it the oldest ends go first. Default 640,000,
    /// half of what a namespace holds.
    pub records: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { succeeded: DAY, cancelled: 7 * DAY, dead: 30 * DAY, records: MAX_RECORDS / 2 }
    }
}

/// A setting is out of its bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RetentionError {
    /// A time is too short or too long.
    #[error(
        "retention of {field} jobs must be {} s to {} days, not {given:?}: a client that lost a reply asks for the \
         record, and takes a job that is gone for one that was never there",
        MIN_RETENTION.as_secs(),
        MAX_RETENTION.as_secs() / 86_400
    )]
    Time {
        /// Which.
        field: &'static str,
        /// What was given.
        given: Duration,
    },
    /// The count is too large.
    #[error("retention must keep 0 to {MAX_RECORDS} records, not {given}: a namespace holds no more")]
    TooMany {
        /// What was given.
        given: u32,
    },
}

impl Retention {
    /// Looks at every bound.
    ///
    /// # Errors
    /// Names the first setting that is out of its bounds.
    pub fn check(&self) -> Result<(), RetentionError> {
        let times = [("succeeded", self.succeeded), ("cancelled", self.cancelled), ("dead", self.dead)];
        let bounds = MIN_RETENTION..=MAX_RETENTION;
        if let Some((field, given)) = times.into_iter().find(|(_, given)| !bounds.contains(given)) {
            return Err(RetentionError::Time { field, given });
        }
        if self.records > MAX_RECORDS {
            return Err(RetentionError::TooMany { given: self.records });
        }
        Ok(())
    }

    /// For how long the record of a job with this end is kept.
    #[must_use]
    pub fn of(&self, verdict: &Verdict) -> Duration {
        let set = match verdict {
            Verdict::Succeeded(_) => self.succeeded,
            Verdict::Cancelled => self.cancelled,
            Verdict::Dead => self.dead,
        };
        set.max(KEPT_AT_LEAST)
    }

    /// As [`Retention::of`], by how a job of a group ended.
    #[must_use]
    pub fn of_end(&self, end: End) -> Duration {
        let set = match end {
            End::Succeeded => self.succeeded,
            End::Cancelled => self.cancelled,
            End::Dead => self.dead,
        };
        set.max(KEPT_AT_LEAST)
    }

    /// The shortest time for which any record is kept: what ends from now on stays for that long.
    #[must_use]
    pub fn shortest(&self) -> Duration {
        self.succeeded.min(self.cancelled).min(self.dead).max(KEPT_AT_LEAST)
    }

    /// How long a record is kept although there are too many.
    #[must_use]
    pub fn at_least(&self) -> Duration {
        self.shortest().min(MIN_RETENTION)
    }

    /// The share of one bucket. Ids spread by a hash, so that a namespace with as many records as the setting has some
    /// buckets above their share: the bound is that of each bucket.
    #[must_use]
    pub fn per_bucket(&self) -> usize {
        self.records.div_ceil(u32::from(BUCKETS)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_within_the_bounds() {
        assert_eq!(Retention::default().check(), Ok(()));
        assert_eq!(Retention::default().per_bucket(), 2_500);
    }

    #[test]
    fn what_is_out_of_bounds_is_named_with_the_bound() {
        for refused in [MAX_RETENTION + DAY, MIN_RETENTION - Duration::from_millis(1)] {
            let said =
                Retention { cancelled: refused, ..Retention::default() }.check().unwrap_err().to_string();
            assert!(
                said.starts_with("retention of cancelled jobs must be 60 s to 3650 days, not "),
                "{said}"
            );
        }
        let many = Retention { records: MAX_RECORDS + 1, ..Retention::default() };
        let said = many.check().unwrap_err().to_string();
        assert!(said.starts_with("retention must keep 0 to 1280000 records, not 1280001"), "{said}");
    }

    #[test]
    fn nothing_is_kept_for_less_than_it_takes_to_be_forgotten() {
        let none = Retention { succeeded: Duration::ZERO, ..Retention::default() };
        assert_eq!((none.of(&Verdict::Cancelled), none.shortest()), (7 * DAY, KEPT_AT_LEAST));
        let succeeded = Verdict::Succeeded(crate::job::Payload::json(*b"1").unwrap());
        assert_eq!((none.of(&succeeded), none.of_end(End::Succeeded)), (KEPT_AT_LEAST, KEPT_AT_LEAST));
    }
}
