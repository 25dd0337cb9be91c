//! Sets of members.

use std::fmt;
use std::str::FromStr;

use crate::budget::MAX_TXN_BYTES;

/// Most members of a segment: a transaction of a hundred jobs is the fastest on ZooKeeper.
pub const MAX_PACKED: u8 = 100;

/// Most bytes of a segment: half of a multi, because an extraction writes all of its jobs in one, with what a segment stores once
/// in the record and the entry of each.
pub const MAX_PACKED_BYTES: usize = MAX_TXN_BYTES / 2;

/// Fewest members of a segment: below that, records cost less than the reads of a segment.
pub const MIN_PACKED: u8 = 4;

/// A set of members of one segment, which are numbered from 0.
///
/// As text it is a hexadecimal number whose lowest bit is member 0, without leading zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Members(u128);

impl Members {
    /// No member.
    pub const NONE: Self = Self(0);

    /// The members below a number: `below(3)` is 0, 1 and 2.
    #[must_use]
    pub const fn below(number: u8) -> Self {
        if number >= 128 { Self(u128::MAX) } else { Self((1 << number) - 1) }
    }

    /// One member.
    #[must_use]
    pub const fn one(number: u8) -> Self {
        Self(1 << (number % 128))
    }

    /// The set with these bits, if it has no member that a segment cannot have.
    #[must_use]
    pub fn from_bits(bits: u128) -> Option<Self> {
        (bits & !Self::below(MAX_PACKED).0 == 0).then_some(Self(bits))
    }

    /// Its bits; the lowest is member 0.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The number of members in it.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether it has this member.
    #[must_use]
    pub const fn contains(self, number: u8) -> bool {
        number < 128 && self.0 & (1 << number) != 0
    }

    /// Whether it has all of these members.
    #[must_use]
    pub const fn includes(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// The members in either set.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// The members in both sets.
    #[must_use]
    pub const fn within(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// The members that are not in the other set.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Its members, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..MAX_PACKED).filter(move |number| self.contains(*number))
    }
}

impl FromIterator<u8> for Members {
    fn from_iter<I: IntoIterator<Item = u8>>(numbers: I) -> Self {
        numbers.into_iter().fold(Self::NONE, |all, number| all.with(Self::one(number)))
    }
}

impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromStr for Members {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let bits = u128::from_str_radix(text, 16).map_err(|_| ())?;
        Self::from_bits(bits).filter(|members| members.to_string() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_member_of_a_segment_is_the_99th() {
        assert_eq!(Members::below(MAX_PACKED).len(), 100);
        assert_eq!(Members::from_bits(1 << 99), Some(Members::one(99)));
        assert_eq!(Members::from_bits(1 << 100), None);
        assert_eq!(Members::below(200).bits(), u128::MAX);
    }

    #[test]
    fn a_segment_takes_at_most_half_of_a_multi() {
        assert_eq!(MAX_PACKED_BYTES, 128 * 1024);
    }

    #[test]
    fn the_debug_text_lists_the_members() {
        let members = Members::from_bits(0b101).unwrap();
        assert_eq!(format!("{members:?}"), "{0, 2}");
    }

    #[test]
    fn a_text_names_one_set_and_a_set_has_one_text() {
        for members in [Members::NONE, Members::one(0), Members::one(99), Members::below(100)] {
            assert_eq!(members.to_string().parse(), Ok(members));
        }
        for text in ["", "0f", "F", "+1", "-1", "g", " 1", "10000000000000000000000000"] {
            assert_eq!(text.parse::<Members>(), Err(()), "{text:?}");
        }
    }

    #[test]
    fn sets_are_combined_member_by_member() {
        let (low, odd) = (Members::below(4), [1, 3, 5].into_iter().collect::<Members>());
        assert_eq!(low.with(odd).iter().collect::<Vec<_>>(), [0, 1, 2, 3, 5]);
        assert_eq!(low.within(odd).iter().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(low.without(odd).iter().collect::<Vec<_>>(), [0, 2]);
        assert!(low.includes(low.within(odd)) && !low.includes(odd) && low.contains(3) && !low.contains(4));
        assert!(!Members::below(100).contains(130));
        let all = Members::below(200);
        assert!(all.contains(127) && !all.contains(128));
    }
}
