//! The ticks of a [`When`], as pure functions of an instant.

use croner::Cron;
use jiff::Zoned;
use jiff::tz::TimeZone;

use super::{SpecError, When, instant};
use crate::time::{WallMillis, as_millis};

/// Computes ticks. No tick is at or after [`instant::END`].
#[derive(Debug, Clone)]
pub struct Calendar(Rule);

#[derive(Debug, Clone)]
enum Rule {
    Cron { pattern: Box<Cron>, zone: TimeZone },
    Every { interval: u64, anchor: u64 },
    At(WallMillis),
}

impl Calendar {
    pub(super) fn new(when: &When) -> Result<Self, SpecError> {
        Ok(Self(match when {
            When::Cron { expression, zone } => {
                Rule::Cron { pattern: Box::new(expression.pattern()?), zone: zone.rules()? }
            }
            When::Every { interval, anchor } => {
                Rule::Every { interval: as_millis(*interval).max(1), anchor: anchor.0 }
            }
            When::At(at) => Rule::At(*at),
        }))
    }

    /// The first tick after an instant; `None` if there is none.
    #[must_use]
    pub fn next_after(&self, after: WallMillis) -> Option<WallMillis> {
        if after >= instant::END {
            return None;
        }
        let next = match &self.0 {
            Rule::Cron { pattern, zone } => {
                // Its only errors are the end of the search range and of the calendar.
                wall(&pattern.find_next_occurrence(&zoned(after, zone), false).ok()?)?
            }
            Rule::Every { interval, anchor } => WallMillis(match after.0.checked_sub(*anchor) {
                None => *anchor,
                Some(since) => anchor.saturating_add((since / interval + 1).saturating_mul(*interval)),
            }),
            Rule::At(at) => Some(*at).filter(|at| *at > after)?,
        };
        debug_assert!(next > after, "{next:?} after {after:?}");
        Some(next).filter(|next| *next < instant::END)
    }

    /// The last tick at or before an instant.
    #[must_use]
    pub fn last_through(&self, through: WallMillis) -> Option<WallMillis> {
        match &self.0 {
            // Its expression has no year after the end.
            Rule::Cron { pattern, zone } => {
                wall(&pattern.find_previous_occurrence(&zoned(through, zone), true).ok()?)
            }
            Rule::Every { interval, anchor } => {
                let since = through.0.min(instant::END.0 - 1).checked_sub(*anchor)?;
                Some(WallMillis(anchor + since / interval * interval))
            }
            Rule::At(at) => Some(*at).filter(|at| *at <= through),
        }
    }

    /// The distance between its ticks in milliseconds, if it is constant.
    pub(super) fn interval(&self) -> Option<u64> {
        match &self.0 {
            Rule::Every { interval, .. } => Some(*interval),
            Rule::Cron { .. } | Rule::At(_) => None,
        }
    }

    /// All ticks after an instant, in order.
    pub fn ticks_after(&self, after: WallMillis) -> impl Iterator<Item = WallMillis> + '_ {
        std::iter::successors(self.next_after(after), |at| self.next_after(*at))
    }
}

/// Truncates to whole seconds: cron has no fractions, and its search starts at the next second.
fn zoned(at: WallMillis, zone: &TimeZone) -> Zoned {
    instant::stamp(WallMillis(at.0 / 1_000 * 1_000)).to_zoned(zone.clone())
}

fn wall(at: &Zoned) -> Option<WallMillis> {
    u64::try_from(at.timestamp().as_millisecond()).ok().map(WallMillis)
}

#[cfg(test)]
mod dst_tests;
#[cfg(test)]
mod tests;
