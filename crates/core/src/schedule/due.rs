//! What is due: a tick, ticks that nobody was there for, or nothing yet.
//!
//! Everything up to the *cursor* is decided for good. A tick is on time for a while after its instant (the *grace*),
//! which covers a change of leader; what is older was missed, and the [`Misfire`] policy says what becomes of it. One
//! step decides one tick and whatever is passed over before it, so that a step is one transaction and its work is
//! bounded however long nobody was there.

use std::time::Duration;

use super::Calendar;
use crate::time::{WallMillis, as_millis};

/// Most missed ticks that are made up.
pub const MAX_CATCH_UP: u32 = 100;

/// Ticks of a calendar are counted up to here when they are passed over, one search each, so that a year of missed seconds
/// costs no more. Those of an interval are divided.
pub const MAX_COUNTED: u32 = 100;

/// The most searches of its calendar that a step takes, for ticks that are made up and for those that are counted.
pub const MAX_SEARCHES: usize = (MAX_CATCH_UP + MAX_COUNTED) as usize + 4;

/// What becomes of ticks that were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Misfire {
    /// Nothing.
    Skip,
    /// The last one is made up for all of them.
    #[default]
    Once,
    /// The last ones are made up, in order.
    CatchUp {
        /// How many, 1 to [`MAX_CATCH_UP`].
        at_most: u32,
        /// How old they may be.
        within: Duration,
    },
}

/// Ticks that follow one another, and become nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Missed {
    /// The first of them.
    pub from: WallMillis,
    /// The last of them.
    pub through: WallMillis,
    /// How many they are. Of a cron expression, [`MAX_COUNTED`] stands for that many or more.
    pub count: u32,
}

/// What comes next after the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Due {
    /// Nothing before this instant; `None` is never again.
    Later(Option<WallMillis>),
    /// A tick, after passing over what was missed before it.
    Tick {
        /// Its instant.
        at: WallMillis,
        /// What is passed over.
        missed: Option<Missed>,
    },
    /// Only ticks that were missed.
    PassOver(Missed),
}

/// What is due at `now` when everything up to `cursor` is decided.
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
        Misfire::CatchUp { at_most, within } => {
            let oldest = first.max(WallMillis(now.0.saturating_sub(as_millis(within))));
            oldest_of(calendar, last, at_most, oldest)
        }
    };
    match made_up {
        Some(at) if at <= first => Due::Tick { at: first, missed: None },
        Some(at) => {
            let before = WallMillis(at.0 - 1);
            let through = calendar.last_through(before).unwrap_or(first);
            Due::Tick { at, missed: Some(missed(calendar, first, through)) }
        }
        None => Due::PassOver(missed(calendar, first, last)),
    }
}

/// All ticks from `first`, which is one, to `through`.
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

/// The first of the last `at_most` ticks up to `last` that is not before `oldest`.
fn oldest_of(calendar: &Calendar, last: WallMillis, at_most: u32, oldest: WallMillis) -> Option<WallMillis> {
    let before = |at: &WallMillis| calendar.last_through(WallMillis(at.0.checked_sub(1)?));
    std::iter::successors(Some(last), before)
        .take_while(|at| *at >= oldest)
        .take(at_most.min(MAX_CATCH_UP) as usize)
        .last()
}

#[cfg(test)]
mod tests;
