//! How long the records of terminal jobs are kept.
//!
//! The retention is one setting of the namespace, in `/config/retention`, so that all candidates use the same one. The
//! first node creates it with the defaults. If it is absent or cannot be read, nothing is removed.

use std::time::Duration;

use crate::budget::{BUCKETS, MAX_RECORDS, MAX_RETENTION, MIN_RETENTION};
use crate::duration::DurationText;
use crate::group::End;
use crate::job::Verdict;
use crate::time::WallMillis;

/// The shortest time for which a record is kept. Clients cannot set less than [`MIN_RETENTION`], but an operator can
/// write the znode directly. The id of a removed record can be used again, so all knowledge of the earlier job must
/// be outdated before: messages between the actors of a node, and requests in flight, are younger than this.
pub const KEPT_AT_LEAST: Duration = Duration::from_secs(5);

/// A time that is ahead of the reader's clock by more than this is considered wrong and ignored.
const WRONG_AHEAD: Duration = Duration::from_secs(3600);

const DAY: Duration = Duration::from_secs(24 * 3600);

// A new field also belongs into the request `RetentionChange` and the answer `RetentionDocument`.
/// How long records of terminal jobs are kept, by how they ended, and how many in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
#[non_exhaustive]
pub struct Retention {
    /// For succeeded jobs. Default 1 day.
    pub succeeded: Duration,
    /// For cancelled jobs. Default 7 days.
    pub cancelled: Duration,
    /// For dead jobs, which an operator may want to inspect or retry. Default 30 days.
    pub dead: Duration,
    /// Most records of terminal jobs in the namespace, not counting records of the last minute; above it, the jobs that ended first
    /// are removed. Default 640,000: less than 1 GB in each server.
    pub records: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { succeeded: DAY, cancelled: 7 * DAY, dead: 30 * DAY, records: 640_000 }
    }
}

impl Retention {
    /// Sets how long records of succeeded jobs are kept: 1 minute to 3650 days.
    pub fn succeeded(self, time: Duration) -> Self {
        Self { succeeded: time, ..self }
    }

    /// Sets how long records of cancelled jobs are kept: 1 minute to 3650 days.
    pub fn cancelled(self, time: Duration) -> Self {
        Self { cancelled: time, ..self }
    }

    /// Sets how long records of dead jobs are kept: 1 minute to 3650 days.
    pub fn dead(self, time: Duration) -> Self {
        Self { dead: time, ..self }
    }

    /// Sets how many records of terminal jobs are kept, whatever their age: at most [`MAX_RECORDS`].
    pub fn records(self, records: u32) -> Self {
        Self { records, ..self }
    }
}

/// A setting is outside its bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RetentionError {
    /// A time is too short or too long.
    #[error(
        "retention of {field} jobs must be {} to {}, not {}: after a lost reply a client reads the \
         record, and would submit a removed job again",
        DurationText(MIN_RETENTION),
        DurationText(MAX_RETENTION),
        DurationText(*given)
    )]
    Time {
        /// The setting.
        field: &'static str,
        /// The given value.
        given: Duration,
    },
    /// The count is too large.
    #[error(
        "retention must keep 0 to {MAX_RECORDS} records, not {given}: this is the capacity of a namespace"
    )]
    TooMany {
        /// The given value.
        given: u32,
    },
}

impl Retention {
    /// Checks every bound.
    ///
    /// # Errors
    /// The first setting that is outside its bounds.
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

    /// How long the record of a job with this verdict is kept.
    #[doc(hidden)]
    #[must_use]
    pub fn of(&self, verdict: &Verdict) -> Duration {
        let set = match verdict {
            Verdict::Succeeded(_) => self.succeeded,
            Verdict::Cancelled => self.cancelled,
            Verdict::Dead => self.dead,
        };
        set.max(KEPT_AT_LEAST)
    }

    /// As [`Retention::of`], for a job of a group with this end.
    #[must_use]
    pub(crate) fn of_end(&self, end: End) -> Duration {
        let set = match end {
            End::Succeeded => self.succeeded,
            End::Cancelled => self.cancelled,
            End::Dead => self.dead,
        };
        set.max(KEPT_AT_LEAST)
    }

    /// The shortest time for which any record is kept.
    #[must_use]
    pub fn shortest(&self) -> Duration {
        self.succeeded.min(self.cancelled).min(self.dead).max(KEPT_AT_LEAST)
    }

    /// How long a record is kept even if there are too many records.
    #[must_use]
    pub fn at_least(&self) -> Duration {
        self.shortest().min(MIN_RETENTION)
    }

    /// The share of one bucket. Ids are spread by a hash, so some buckets exceed their share before the namespace
    /// reaches the setting: the limit is enforced per bucket.
    #[must_use]
    pub fn per_bucket(&self) -> usize {
        self.records.div_ceil(u32::from(BUCKETS)) as usize
    }
}

/// Decides when a job ended, from two clocks: `at` is stored in its record, by the wall clock of the process that ended it;
/// `modified` is the record's modification time, by ZooKeeper's clock. The later one counts, so that a clock that is behind
/// does not shorten the retention; but not one that is an hour or more ahead of `now`, so that a clock far ahead does not
/// keep a record forever.
#[must_use]
pub fn ended(at: WallMillis, modified: WallMillis, now: WallMillis) -> WallMillis {
    let (early, late) = (at.min(modified), at.max(modified));
    if late > now + WRONG_AHEAD { early } else { late }
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
    fn a_retention_error_names_the_setting_and_its_bounds() {
        for refused in [MAX_RETENTION + DAY, MIN_RETENTION - Duration::from_millis(1)] {
            let said =
                Retention { cancelled: refused, ..Retention::default() }.check().unwrap_err().to_string();
            assert!(said.starts_with("retention of cancelled jobs must be 1m to 3650d, not "), "{said}");
        }
        let many = Retention { records: MAX_RECORDS + 1, ..Retention::default() };
        let said = many.check().unwrap_err().to_string();
        assert!(said.starts_with("retention must keep 0 to 20480000 records, not 20480001"), "{said}");
    }

    #[test]
    fn every_record_is_kept_for_the_minimum_time() {
        let none = Retention { succeeded: Duration::ZERO, ..Retention::default() };
        assert_eq!((none.of(&Verdict::Cancelled), none.shortest()), (7 * DAY, KEPT_AT_LEAST));
        let succeeded = Verdict::Succeeded(crate::job::Payload::json(*b"1").unwrap());
        assert_eq!((none.of(&succeeded), none.of_end(End::Succeeded)), (KEPT_AT_LEAST, KEPT_AT_LEAST));
    }

    #[test]
    fn the_later_of_two_clocks_counts_unless_it_is_far_ahead() {
        let (now, year) = (WallMillis(1_000_000_000), 365 * 24 * 3_600_000);
        let past = WallMillis(now.0 - 5);
        assert_eq!(ended(past, now, now), now);
        assert_eq!(ended(now, past, now), now);
        assert_eq!(ended(WallMillis(now.0 + year), past, now), past, "the worker's clock is wrong");
        assert_eq!(ended(past, WallMillis(now.0 + year), now), past, "ZooKeeper's clock is wrong");
        assert_eq!(ended(WallMillis(1), now, now), now, "the worker's clock was reset");
        let latest = now + WRONG_AHEAD;
        assert_eq!(ended(latest, now, now), latest);
        assert_eq!(ended(WallMillis(latest.0 + 1), now, now), now);
    }

    #[test]
    fn settings_at_their_bounds_are_accepted() {
        let most = Retention {
            succeeded: MIN_RETENTION,
            dead: MAX_RETENTION,
            records: MAX_RECORDS,
            ..Retention::default()
        };
        assert_eq!(most.check(), Ok(()));
    }
}
