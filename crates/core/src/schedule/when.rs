//! When a schedule ticks: by the calendar of a zone, at an interval, or once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::calendar::Calendar;
use super::{CronExpression, SpecError, instant};
use crate::duration::DurationText;
use crate::time::{WallMillis, as_millis};

/// Shortest interval: a tick is a transaction and a job.
pub const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Longest interval: a leap year. Use a cron expression for rarer ticks.
pub const MAX_INTERVAL: Duration = Duration::from_secs(366 * 24 * 3600);

/// When a schedule ticks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum When {
    /// At the local times in a zone that match an expression.
    Cron {
        /// The expression.
        expression: CronExpression,
        /// The zone.
        zone: Zone,
    },
    /// At the anchor and every interval after it.
    Every {
        /// The distance between ticks, [`MIN_INTERVAL`] to [`MAX_INTERVAL`].
        interval: Duration,
        /// The first tick. With the Unix epoch as anchor, an interval of an hour ticks at the full hours of UTC.
        anchor: WallMillis,
    },
    /// At one instant.
    At(WallMillis),
}

impl When {
    /// Creates a cron rule in a zone.
    ///
    /// # Errors
    /// As [`When::check`], and for an invalid expression or an unknown zone.
    pub fn cron(expression: &str, zone: &str) -> Result<Self, SpecError> {
        let when = Self::Cron { expression: CronExpression::new(expression)?, zone: Zone::new(zone)? };
        when.check()?;
        Ok(when)
    }

    /// Creates an interval that is anchored at the Unix epoch.
    ///
    /// # Errors
    /// If the interval is outside its bounds.
    pub fn every(interval: Duration) -> Result<Self, SpecError> {
        let when = Self::Every { interval, anchor: WallMillis::default() };
        when.check()?;
        Ok(when)
    }

    /// Checks every bound, and that there is at least one tick.
    ///
    /// # Errors
    /// The first violated bound.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::Cron { expression, .. } => {
                if self.calendar()?.next_after(WallMillis::default()).is_none() {
                    return Err(SpecError::Never(expression.clone()));
                }
            }
            Self::Every { interval, anchor } => {
                if !(MIN_INTERVAL..=MAX_INTERVAL).contains(interval)
                    || as_millis(*interval) * 1_000_000 != nanos(*interval)
                {
                    return Err(SpecError::Bound {
                        field: "every",
                        allowed: "1s to 366d in whole milliseconds".to_owned(),
                        given: format!("{interval:?}"),
                    });
                }
                within_calendar("anchor", *anchor)?;
            }
            Self::At(at) => within_calendar("at", *at)?,
        }
        Ok(())
    }

    /// Returns the calendar that computes its ticks. For cron this takes some microseconds: reuse the calendar.
    ///
    /// # Errors
    /// For an expression or a zone that this build does not know, which only a record of another build can contain.
    pub fn calendar(&self) -> Result<Calendar, SpecError> {
        Calendar::new(self)
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron { expression, zone } => write!(f, "{expression} ({zone})"),
            Self::Every { interval, .. } => write!(f, "every {}", DurationText(*interval)),
            Self::At(at) => write!(f, "once at {}", instant::text(*at)),
        }
    }
}

fn nanos(interval: Duration) -> u64 {
    u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)
}

fn within_calendar(field: &'static str, at: WallMillis) -> Result<(), SpecError> {
    if at >= instant::END {
        let allowed = format!("before {}", instant::text(instant::END));
        return Err(SpecError::Bound { field, allowed, given: at.to_string() });
    }
    Ok(())
}

/// An IANA time zone, by its name in the compiled-in database.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Zone(Arc<str>);

impl Zone {
    /// Looks up a zone, ignoring case.
    ///
    /// # Errors
    /// If the compiled-in database has no such zone.
    pub fn new(given: &str) -> Result<Self, SpecError> {
        let zone = lookup(given)?;
        Ok(Self(Arc::from(zone.iana_name().ok_or_else(|| unknown(given))?)))
    }

    /// UTC.
    #[must_use]
    pub fn utc() -> Self {
        Self(Arc::from("UTC"))
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn rules(&self) -> Result<TimeZone, SpecError> {
        lookup(&self.0)
    }
}

/// Uses only the compiled-in database: with the files of a machine two nodes could disagree.
fn lookup(name: &str) -> Result<TimeZone, SpecError> {
    // The database returns a zone for this name, which means "unknown".
    if name.eq_ignore_ascii_case("Etc/Unknown") {
        return Err(unknown(name));
    }
    TimeZoneDatabase::bundled().get(name).map_err(|_| unknown(name))
}

fn unknown(given: &str) -> SpecError {
    SpecError::Zone { given: given.chars().take(64).collect() }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Zone {
    type Err = SpecError;

    fn from_str(given: &str) -> Result<Self, SpecError> {
        Self::new(given)
    }
}

crate::text::impl_serde!(Zone, "the name of a zone");

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_that_never_ticks_is_refused() {
        let refused = |expression| When::cron(expression, "UTC").unwrap_err().to_string();
        assert_eq!(
            refused("0 0 31 2 *"),
            "cron expression \"0 0 31 2 *\" never ticks: no day until 2500 matches it"
        );
        assert!(refused("0 0 30 2 *").contains("never ticks"));
        assert!(refused("0 0 31 4,6,9,11 ?").contains("never ticks"));
        assert!(When::cron("0 0 29 2 *", "UTC").is_ok(), "every fourth year");
        assert!(When::cron("0 0 29 2 +MON", "UTC").is_ok(), "about every 28 years");
    }

    #[test]
    fn zone_names_ignore_case_and_unknown_zones_are_refused() {
        assert_eq!(Zone::new("europe/berlin").unwrap().as_str(), "Europe/Berlin");
        assert_eq!(Zone::new("utc").unwrap(), Zone::utc());
        for given in ["Europe/Atlantis", "", "CEST", "+01:00", "Etc/Unknown", "../etc/passwd"] {
            let error = Zone::new(given).unwrap_err().to_string();
            assert_eq!(
                error,
                format!(
                    "zone {given:?} is not an IANA zone that this build knows: give one such as Europe/Berlin or UTC"
                )
            );
        }
    }

    #[test]
    fn intervals_and_instants_have_bounds() {
        const YEAR: Duration = Duration::from_secs(366 * 86_400);
        for interval in [
            Duration::ZERO,
            Duration::from_millis(999),
            YEAR + Duration::from_millis(1),
            Duration::MAX,
            Duration::from_micros(1_000_001),
        ] {
            let error = When::every(interval).unwrap_err().to_string();
            assert_eq!(error, format!("every must be 1s to 366d in whole milliseconds, not {interval:?}"));
        }
        assert!(When::every(MIN_INTERVAL).is_ok() && When::every(YEAR).is_ok());
        let late = When::At(instant::END).check().unwrap_err().to_string();
        assert_eq!(late, "at must be before 2500-01-01T00:00:00Z, not 2500-01-01T00:00:00.000Z");
    }

    #[test]
    fn each_kind_of_schedule_is_printed() {
        let every = When::every(Duration::from_secs(90)).unwrap();
        let cron = When::cron("0 2 * * *", "europe/berlin").unwrap();
        let printed = [cron, every, When::At(WallMillis(0))].map(|when| when.to_string());
        assert_eq!(printed, ["0 2 * * * (Europe/Berlin)", "every 90s", "once at 1970-01-01T00:00:00Z"]);
        assert_eq!(format!("{:?}", Zone::utc()), "UTC");
    }
}
