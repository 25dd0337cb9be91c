//! Ranks and slots.

use std::fmt;
use std::str::FromStr;

use super::number;
use crate::budget::AGEING;
use crate::job::Priority;
use crate::time::{WallMillis, as_millis};

/// Milliseconds in a slot.
const SLOT: i64 = 60_000;

/// The order of waiting jobs: the lowest is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub i64);

/// The rank of a job that has waited since this time: the time minus [`AGEING`] for each step of its priority.
///
/// It never changes, so nothing is sorted again while jobs age: a job that has waited [`AGEING`] longer has the rank of the next
/// priority. So no job starves: a job submitted more than nine steps later always comes after it.
#[must_use]
pub fn rank(priority: Priority, waits_since: WallMillis) -> Rank {
    let start = as_millis(AGEING).saturating_mul(u64::from(priority.get()));
    Rank(signed(waits_since.0) - signed(start))
}

fn signed(millis: u64) -> i64 {
    // At most half the range, so that no difference overflows.
    i64::try_from(millis).unwrap_or(i64::MAX).min(i64::MAX / 2)
}

impl Rank {
    /// The rank of an entry in a slot.
    #[must_use]
    pub fn at(slot: Slot, millis: u16) -> Self {
        Self(slot.minute.saturating_mul(SLOT).saturating_add(i64::from(millis)))
    }

    /// The time since which a job with this rank and this priority waits.
    #[must_use]
    pub fn waits_since(self, priority: Priority) -> WallMillis {
        let start = as_millis(AGEING).saturating_mul(u64::from(priority.get()));
        WallMillis(u64::try_from(self.0.saturating_add(signed(start))).unwrap_or(0))
    }

    /// The minute that contains it.
    #[must_use]
    pub fn minute(self) -> i64 {
        self.0.div_euclid(SLOT)
    }

    /// Milliseconds since the start of the minute.
    #[must_use]
    pub fn millis(self) -> u16 {
        u16::try_from(self.0.rem_euclid(SLOT)).expect("a minute has 60,000 milliseconds")
    }
}

/// A slot of a class: the entries whose rank is in one minute. When a client submits many of them, it uses further parts, in
/// the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The minute of the rank.
    pub minute: i64,
    /// 0 for the first part.
    pub part: u16,
}

impl Slot {
    /// The slot of a rank.
    #[must_use]
    pub fn of(rank: Rank, part: u16) -> Self {
        Self { minute: rank.minute(), part }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            0 => write!(f, "{}", self.minute),
            part => write!(f, "{}.{part}", self.minute),
        }
    }
}

impl FromStr for Slot {
    type Err = ();

    /// Parses the name of a slot. An operator may create any znode, so a foreign name is an error.
    fn from_str(name: &str) -> Result<Self, ()> {
        let (minute, part) = match name.split_once('.') {
            Some((minute, part)) => (minute, number(part).filter(|part| *part != 0).ok_or(())?),
            None => (name, 0),
        };
        Ok(Self { minute: number(minute).ok_or(())?, part })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_priority_is_worth_an_hour_of_waiting() {
        let at = |hours: u64| WallMillis(1_000_000_000 + hours * 3_600_000);
        let of = |priority: u8, hours| rank(Priority::new(priority).unwrap(), at(hours));
        assert_eq!(of(5, 0), of(6, 1));
        assert!(of(9, 0) < of(0, 0) && of(0, 0) < of(9, 10), "nine steps are the longest advantage");
        for at in [WallMillis(0), WallMillis(1_700_000_000_000)] {
            assert_eq!(rank(Priority::HIGHEST, at).waits_since(Priority::HIGHEST), at);
        }
        assert_eq!(rank(Priority::HIGHEST, WallMillis(u64::MAX)).0, i64::MAX / 2 - 9 * 3_600_000);
    }

    #[test]
    fn minute_and_milliseconds_give_the_rank_back() {
        for at in [0, 1, 59_999, 60_000, 1_700_000_000_123, -1, -60_000, -60_001] {
            let rank = Rank(at);
            assert!(rank.millis() < 60_000);
            assert_eq!(Rank::at(Slot::of(rank, 3), rank.millis()), rank);
        }
    }

    #[test]
    fn the_name_of_a_slot_reads_back_and_a_foreign_one_is_refused() {
        for (minute, part) in [(0, 0), (28_333_333, 0), (28_333_333, 12), (-540, 3)] {
            let slot = Slot { minute, part };
            assert_eq!(slot.to_string().parse(), Ok(slot));
        }
        for foreign in
            ["", ".", "7.", ".7", "7.0", "7.01", "07", "+7", "-0", "7.1.1", "7.65536", "seven", "7 "]
        {
            assert_eq!(foreign.parse::<Slot>(), Err(()), "{foreign:?}");
        }
    }

    #[test]
    fn slots_are_ordered_by_their_minute() {
        let slot = |rank, part| Slot::of(Rank(rank), part);
        assert!(slot(59_999, 9) < slot(60_000, 0) && slot(-1, 0) < slot(0, 0) && slot(0, 0) < slot(0, 1));
    }
}
