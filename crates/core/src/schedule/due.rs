//! Decides whether a tick, missed ticks or nothing is due.
//!
//! Everything up to the *cursor* is decided permanently. A tick is on time for a while after its instant (the
//! *grace*), which covers a change of leader. Older ticks were missed, and the [`Misfire`] policy decides what
//! happens to them. One step decides one tick and the skipped ticks before it. So a step is one transaction, and its
//! work is bounded regardless of how long no leader was active.

use std::time::Duration;

use super::Calendar;
use crate::time::{WallMillis, as_millis};

/// Most missed ticks that are made up.
pub const MAX_CATCH_UP: u32 = 100;

/// Skipped ticks of a cron expression are counted up to this number, with one search each, so that a year of missed
/// seconds costs no more. The skipped ticks of an interval are computed by a division.
pub const MAX_COUNTED: u32 = 100;

/// What happens to missed ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Misfire {
    /// No missed tick is made up.
    Skip,
    /// The last missed tick is made up, on behalf of all.
    #[default]
    Once,
    /// The last missed ticks are made up, in order.
    CatchUp {
        /// How many, 1 to [`MAX_CATCH_UP`].
        limit: u32,
        /// How old they may be.
        within: Duration,
    },
}

/// Consecutive ticks that get no job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Missed {
    /// The first of them.
    pub from: WallMillis,
    /// The last of them.
    pub through: WallMillis,
    /// Their number. For a cron expression, [`MAX_COUNTED`] means that many or more.
    pub count: u32,
}

/// The decision about the time after the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Due {
    /// Nothing is due before this instant; `None` if nothing will ever be due.
    Later(Option<WallMillis>),
    /// A tick, after skipping the missed ticks before it.
    Tick {
        /// Its instant.
        at: WallMillis,
        /// The skipped ticks.
        missed: Option<Missed>,
    },
    /// Only missed ticks, which are skipped.
    Skip(Missed),
}

/// Computes the next step at `now` if everything up to `cursor` is decided.
#[must_use]
pub fn due(
    calendar: &Calendar,
    misfire: Misfire,
    grace: Duration,
    cursor: WallMillis,
    now: WallMillis,
) -> Due {
    let Some(first) = calendar.next_after(cursor) else { return Due::Later(None) };
    if first > now {
        return Due::Later(Some(first));
    }
    let on_time = WallMillis(now.0.saturating_sub(as_millis(grace)));
    if first >= on_time {
        return Due::Tick { at: first, missed: None };
    }
    let through = WallMillis(on_time.0 - 1);
    let last = calendar.last_through(through).unwrap_or(first);
    let made_up = match misfire {
        Misfire::Skip => None,
        Misfire::Once => Some(last),
        Misfire::CatchUp { limit, within } => {
            let oldest = first.max(WallMillis(now.0.saturating_sub(as_millis(within))));
            oldest_of(calendar, last, limit, oldest)
        }
    };
    match made_up {
        Some(at) if at <= first => Due::Tick { at: first, missed: None },
        Some(at) => {
            let before = WallMillis(at.0 - 1);
            let through = calendar.last_through(before).unwrap_or(first);
            Due::Tick { at, missed: Some(missed(calendar, first, through)) }
        }
        None => Due::Skip(missed(calendar, first, last)),
    }
}

/// All ticks from the tick `first` to `through`.
#[must_use]
pub fn missed(calendar: &Calendar, first: WallMillis, through: WallMillis) -> Missed {
    let count = calendar.interval().map_or_else(
        || {
            let rest = calendar.ticks_after(first).take_while(|at| *at <= through);
            1 + rest.take(MAX_COUNTED as usize - 1).count() as u64
        },
        |interval| 1 + through.0.saturating_sub(first.0) / interval,
    );
    Missed { from: first, through, count: u32::try_from(count).unwrap_or(u32::MAX) }
}

/// The first of the last `limit` ticks up to `last` that is at or after `oldest`.
fn oldest_of(calendar: &Calendar, last: WallMillis, limit: u32, oldest: WallMillis) -> Option<WallMillis> {
    let before = |at: &WallMillis| calendar.last_through(WallMillis(at.0.checked_sub(1)?));
    std::iter::successors(Some(last), before)
        .take_while(|at| *at >= oldest)
        .take(limit.min(MAX_CATCH_UP) as usize)
        .last()
}

#[cfg(test)]
mod tests;
