//! What is remembered of a bucket: enough to tell whether something in it can be due, without reading it.

use std::time::Duration;

use crate::retention::Retention;
use crate::time::WallMillis;

/// The slack is this part of the shortest retention: a record is read about so often while it is kept, and goes at most
/// that much late.
const PARTS: u32 = 8;

/// Bounds of the slack: one that is shorter would save nothing, one that is longer would be noticed by people.
const SLACK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));

/// How often a bucket with more records than its share is looked at, although it does not grow: its jobs may have ended.
const OVERFULL: Duration = Duration::from_secs(60);

/// Each look that removes nothing doubles that, up to about an hour.
const MOST_BARREN: u32 = 6;

/// See the [module](self).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Facts {
    count: usize,
    looked: Option<Looked>,
    /// Looks in a row that removed nothing.
    barren: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Looked {
    /// When it was looked at.
    at: WallMillis,
    /// Records that it had after that.
    left: usize,
    /// Nothing in it goes by its age before.
    due: WallMillis,
}

impl Facts {
    pub(super) fn counted(&mut self, count: usize) {
        self.count = count;
        if count == 0 {
            self.looked = None;
        }
    }

    pub(super) fn forget(&mut self) {
        self.looked = None;
    }

    /// It was looked at; `due` is when the first of what is left of it is, as far as that is known.
    pub(super) fn looked(
        &mut self,
        left: usize,
        due: Option<WallMillis>,
        removed: bool,
        retention: &Retention,
        at: WallMillis,
    ) {
        self.barren = if removed { 0 } else { self.barren + 1 };
        let shortest = retention.shortest();
        // What is open, or not there yet, ends later than now.
        let first = due.map_or(at + shortest, |due| due.min(at + shortest)).max(at);
        let due = first + (shortest / PARTS).clamp(SLACK.0, SLACK.1);
        self.count = left;
        self.looked = Some(Looked { at, left, due });
    }

    /// Whether something in it may be due by its age.
    pub(super) fn has_aged(&self, wall: WallMillis) -> bool {
        // A clock that was set back says nothing about what was due by it.
        let aged = |looked: &Looked| wall >= looked.due || wall < looked.at;
        self.count > 0 && self.looked.as_ref().is_none_or(aged)
    }

    pub(super) fn is_due(&self, retention: &Retention, wall: WallMillis) -> bool {
        let Some(looked) = &self.looked else { return self.count > 0 };
        let share = retention.per_bucket();
        let grown = self.count >= looked.left + 1 + share / PARTS as usize;
        // Of jobs that all wait nothing goes: looking is not worth it so often.
        let often = OVERFULL * 2_u32.pow(self.barren.saturating_sub(1).min(MOST_BARREN));
        let overfull = self.count > share && (grown || wall.since(looked.at) >= often);
        overfull || self.has_aged(wall)
    }

    /// How many records a bucket is brought down to when it has more than its share: somewhat fewer, so that it is read
    /// once for many that come, not for each.
    pub(super) fn target(retention: &Retention) -> usize {
        let share = retention.per_bucket();
        share - share / PARTS as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallMillis = WallMillis(1_000_000_000);

    fn facts(count: usize, left: usize, due: Option<WallMillis>) -> Facts {
        let mut facts = Facts::default();
        facts.looked(left, due, true, &Retention::default(), NOW);
        facts.counted(count);
        facts
    }

    fn due_after(facts: &Facts, wait: Duration) -> bool {
        facts.is_due(&Retention::default(), NOW + wait)
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_bucket_is_looked_at_once_and_then_when_something_in_it_can_be_due() {
        assert!(Facts { count: 1, ..Facts::default() }.is_due(&Retention::default(), NOW));
        let open = facts(10, 10, None);
        assert!(!due_after(&open, 24 * HOUR), "what ends now is kept for a day, and an hour more");
        assert!(due_after(&open, 25 * HOUR));
        let soon = facts(10, 10, Some(NOW + 2 * HOUR));
        assert!(!due_after(&soon, 2 * HOUR) && due_after(&soon, 3 * HOUR));
    }

    #[test]
    fn an_empty_bucket_is_never_due() {
        assert!(!due_after(&facts(0, 10, Some(NOW)), 100 * HOUR));
    }

    #[test]
    fn a_bucket_above_its_share_is_looked_at_when_it_has_grown_and_once_a_minute() {
        let minute = Duration::from_secs(60);
        assert!(!due_after(&facts(2_600, 2_500, None), minute / 2), "a hundred more are not worth a read");
        assert!(due_after(&facts(2_600, 2_500, None), minute), "those that were open may have ended");
        assert!(due_after(&facts(2_813, 2_500, None), Duration::ZERO));
        assert!(!due_after(&facts(2_500, 100, None), minute), "within its share");
    }

    #[test]
    fn a_bucket_above_its_share_of_which_nothing_goes_is_looked_at_less_and_less() {
        let mut facts = facts(2_600, 2_500, None);
        for (barren, minutes) in [(1, 1), (2, 2), (3, 4), (4, 8)] {
            facts.looked(2_600, None, false, &Retention::default(), NOW);
            facts.counted(2_600);
            let minutes = Duration::from_secs(60 * minutes);
            assert!(!due_after(&facts, minutes - Duration::from_millis(1)), "{barren}");
            assert!(due_after(&facts, minutes), "{barren}");
        }
    }

    #[test]
    fn a_clock_that_was_set_back_starts_over() {
        assert!(facts(1, 1, None).is_due(&Retention::default(), WallMillis(NOW.0 - 1)));
    }
}
