//! Names of segments and of their members.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use super::members::{MAX_PACKED, Members};
use super::number;
use crate::name::JobId;

/// The digits of the unique part: base 32 (Crockford), so that names sort by the time of the UUID.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Digits of the unique part: 128 bits.
const UNIQUE: usize = 26;

/// Buckets of segments: with ten million waiting jobs, one holds 25 segments.
const BUCKETS: u64 = 4_096;

/// The name of a segment: a UUIDv7, which names the call that submitted it, the number of its members, and about how many
/// bytes it has. So its time, count and size are known without a read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId {
    unique: Uuid,
    count: u8,
    size: u8,
}

impl SegmentId {
    /// Names a segment of `bytes` bytes. `None` unless the count is within 1 and [`MAX_PACKED`].
    #[must_use]
    pub fn new(unique: Uuid, count: u8, bytes: usize) -> Option<Self> {
        let size = u8::try_from(bytes.max(1).ilog2()).ok()?;
        Self::of(unique, count, size)
    }

    fn of(unique: Uuid, count: u8, size: u8) -> Option<Self> {
        ((1..=MAX_PACKED).contains(&count) && usize::from(size) < DIGITS.len()).then_some(Self {
            unique,
            count,
            size,
        })
    }

    /// The number of its members.
    #[must_use]
    pub fn count(self) -> u8 {
        self.count
    }

    /// All of its members.
    #[must_use]
    pub fn members(self) -> Members {
        Members::below(self.count)
    }

    /// Fewer bytes than this are in its znode.
    #[must_use]
    pub fn bytes_below(self) -> usize {
        2_usize << self.size
    }

    /// The bucket of its znode. It never changes, because it is part of the path.
    #[must_use]
    pub fn bucket(self) -> u16 {
        let bucket = xxh3_64(self.to_string().as_bytes()) % BUCKETS;
        u16::try_from(bucket).expect("4096 buckets fit 16 bits")
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |number: u128| char::from(DIGITS[usize::try_from(number % 32).expect("five bits")]);
        let unique = (0..UNIQUE).rev().map(|at| digit(self.unique.as_u128() >> (5 * at)));
        let unique = unique.collect::<String>();
        write!(f, "{unique}{:02x}{}", self.count, digit(self.size.into()))
    }
}

impl fmt::Debug for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SegmentId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let value = |byte: u8| DIGITS.iter().position(|digit| *digit == byte);
        let [unique @ .., high, low, size] = text.as_bytes() else { return Err(()) };
        if unique.len() != UNIQUE {
            return Err(());
        }
        let add = |sum: u128, byte: &u8| Some((sum << 5) | u128::try_from(value(*byte)?).ok()?);
        let unique = Uuid::from_u128(unique.iter().try_fold(0, add).ok_or(())?);
        let count = [*high, *low];
        let count =
            std::str::from_utf8(&count).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok()).ok_or(())?;
        let size = value(*size).and_then(|size| u8::try_from(size).ok()).ok_or(())?;
        Self::of(unique, count, size).filter(|id| id.to_string() == text).ok_or(())
    }
}

/// One member of a segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    /// Its segment.
    pub segment: SegmentId,
    /// Its number.
    pub number: u8,
}

impl MemberId {
    /// The id of the job, unless its submission gave it another. No user can choose such an id ([`JobId::plain`]).
    #[must_use]
    pub fn job(self) -> JobId {
        JobId::new(self.to_string()).expect("digits and '@' are valid in a job id")
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.segment, self.number)
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MemberId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (segment, member) = text.split_once('@').ok_or(())?;
        let (segment, number) = (segment.parse::<SegmentId>()?, number::<u8>(member).ok_or(())?);
        (number < segment.count()).then_some(Self { segment, number }).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_has_29_characters_and_tells_count_and_size() {
        let id = SegmentId::new(Uuid::from_u128(1), 100, 12_900).unwrap();
        assert_eq!(id.to_string(), "0000000000000000000000000164d");
        assert_eq!((id.count(), id.members().len()), (100, 100));
        assert!((12_901..=25_800).contains(&id.bytes_below()), "{}", id.bytes_below());
    }

    #[test]
    fn a_segment_has_1_to_100_members() {
        let named = |count| SegmentId::new(Uuid::nil(), count, 1).is_some();
        assert_eq!([0, 1, 100, 101].map(named), [false, true, true, false]);
    }

    #[test]
    fn foreign_names_are_refused() {
        let good = SegmentId::new(Uuid::from_u128(u128::MAX), 4, 1).unwrap().to_string();
        assert!(good.parse::<SegmentId>().is_ok());
        let bad = [
            good.to_uppercase(),
            good[1..].to_owned(),
            format!("z{}", &good[1..]),
            good.replace("040", "650"),
            good.replace("040", "+40"),
            String::new(),
            "é".repeat(29),
        ];
        for name in bad {
            assert_eq!(name.parse::<SegmentId>(), Err(()), "{name:?}");
        }
        for member in ["@", "@4", "@04", "@-1", "@1@1"] {
            assert_eq!(format!("{good}{member}").parse::<MemberId>(), Err(()), "{member}");
        }
    }

    proptest! {
        #[test]
        fn names_read_back_as_they_were_written(unique in any::<u128>(), count in 1_u8..=100, bytes in 1_usize..1 << 20) {
            let segment = SegmentId::new(Uuid::from_u128(unique), count, bytes).unwrap();
            prop_assert_eq!(segment.to_string().parse(), Ok(segment));
            prop_assert!(segment.bytes_below() > bytes && segment.bytes_below() <= 2 * bytes);
            prop_assert!(u64::from(segment.bucket()) < BUCKETS);
            let member = MemberId { segment, number: count - 1 };
            prop_assert_eq!(member.to_string().parse(), Ok(member));
            prop_assert_eq!(member.job().to_string(), member.to_string());
        }

        #[test]
        fn names_sort_by_time(early in any::<u64>(), later in any::<u64>()) {
            let named = |time: u64| SegmentId::new(Uuid::from_u128(u128::from(time) << 64), 4, 1).unwrap().to_string();
            prop_assert_eq!(early.cmp(&later), named(early).cmp(&named(later)));
        }
    }
}
