//! Two clocks that must not be mixed.
//!
//! [`Millis`] is monotonic and local to a process; deadlines and leases are measured with it. [`WallMillis`] is the
//! Unix time by ZooKeeper's clock ([`clock`](crate::clock)); it is shown to users and decides when a job starts, expires or is
//! retried. Safety does not depend on it.

use std::fmt;
use std::ops::Add;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds on this process's monotonic clock, from an origin of the caller's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub u64);

impl Millis {
    /// The duration from `earlier` to this instant; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Millis {
    type Output = Self;
    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(as_millis(wait)))
    }
}

/// Milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WallMillis(pub u64);

impl WallMillis {
    /// The minute that contains this instant: the bucket of `/delayed`.
    #[must_use]
    pub const fn minute(self) -> u64 {
        self.0 / 60_000
    }

    /// The duration from `earlier` to this instant; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for WallMillis {
    type Output = Self;
    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(as_millis(wait)))
    }
}

/// An instant before 1970 becomes zero.
impl From<SystemTime> for WallMillis {
    fn from(at: SystemTime) -> Self {
        Self(at.duration_since(UNIX_EPOCH).map_or(0, as_millis))
    }
}

impl From<WallMillis> for SystemTime {
    fn from(at: WallMillis) -> Self {
        UNIX_EPOCH + Duration::from_millis(at.0)
    }
}

/// RFC 3339 in UTC with milliseconds: `2026-11-21T11:33:00.123Z`.
impl fmt::Display for WallMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MILLIS_PER_DAY: u64 = 86_400_000;
        let (days, millis) = (self.0 / MILLIS_PER_DAY, self.0 % MILLIS_PER_DAY);
        let (year, month, day) = civil(days);
        let (hour, minute) = (millis / 3_600_000, millis / 60_000 % 60);
        let (second, milli) = (millis / 1_000 % 60, millis % 1_000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

/// Year, month and day of a number of days since 1970-01-01 (H. Hinnant, *chrono-Compatible Low-Level Date
/// Algorithms*). Internally years begin in March, so that the leap day is the last day.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468;
    const DAYS_PER_ERA: u64 = 146_097;
    let days = days + DAYS_TO_1970;
    let (era, of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Whole milliseconds of a duration, saturating.
#[must_use]
pub fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_displayed_as_rfc3339() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_609_459_199_999, "2020-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_795_260_780_123, "2026-11-21T11:33:00.123Z"),
        ] {
            assert_eq!(WallMillis(millis).to_string(), text);
        }
    }

    #[test]
    fn an_instant_is_converted_to_the_time_of_the_system_and_back() {
        let at = UNIX_EPOCH + Duration::from_millis(1_500);
        assert_eq!(WallMillis::from(at), WallMillis(1_500));
        assert_eq!(SystemTime::from(WallMillis(1_500)), at);
        assert_eq!(WallMillis::from(UNIX_EPOCH - Duration::from_secs(1)), WallMillis(0));
    }
}
