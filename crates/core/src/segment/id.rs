//! Names of segments and of their members.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use super::members::{MAX_PACKED, Members};
use crate::name::JobId;
use crate::ready::number;
use crate::time::WallMillis;

/// The digits of the unique part: base 32 (Crockford), so that names sort by the time of the UUID.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Digits of the unique part: 128 bits.
const UNIQUE: usize = 26;

/// Digits of a name: the unique part, two of the number of members, and one of the size.
const LEN: usize = UNIQUE + 3;

/// Begins the id of a segment, and separates the segment from the number in the id of a member.
const MARK: char = '@';

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

    /// When the client generated it, by the client's clock. `None` if its unique part is no UUIDv7.
    #[must_use]
    pub fn generated_at(self) -> Option<WallMillis> {
        JobId::from_uuid(self.unique).generated_at()
    }

    /// Fewer bytes than this are in its znode.
    #[must_use]
    pub fn bytes_below(self) -> usize {
        2_usize << self.size
    }

    /// The id under which the segment itself waits and is assigned. No user can choose such an id ([`JobId::plain`]).
    #[must_use]
    pub fn job(self) -> JobId {
        JobId::new(format!("{MARK}{self}")).expect("digits and '@' are valid in a job id")
    }

    /// The segment with this [id](Self::job); `None` for the id of a job.
    #[must_use]
    pub fn of_job(id: &JobId) -> Option<Self> {
        id.as_str().strip_prefix(MARK)?.parse().ok()
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |number: u128| DIGITS[usize::try_from(number % 32).expect("five bits")];
        let mut text = [0; LEN];
        for (byte, at) in text.iter_mut().zip((0..UNIQUE).rev()) {
            *byte = digit(self.unique.as_u128() >> (5 * at));
        }
        let count = u128::from(self.count);
        text[UNIQUE..].copy_from_slice(&[digit(count / 16), digit(count % 16), digit(self.size.into())]);
        f.write_str(std::str::from_utf8(&text).expect("the digits are ASCII"))
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
        let text = <&[u8; LEN]>::try_from(text.as_bytes()).map_err(|_| ())?;
        let value =
            |byte: &u8| DIGITS.iter().position(|digit| digit == byte).and_then(|at| u8::try_from(at).ok());
        let [unique @ .., high, low, size] = text;
        // 26 digits have two bits more than a UUID.
        if value(&unique[0]).is_none_or(|first| first >= 8) {
            return Err(());
        }
        let add = |sum: u128, byte: &u8| Some((sum << 5) | u128::from(value(byte)?));
        let unique = Uuid::from_u128(unique.iter().try_fold(0, add).ok_or(())?);
        let hex = |byte| value(byte).filter(|digit| *digit < 16);
        let (high, low, size) = (hex(high).ok_or(())?, hex(low).ok_or(())?, value(size).ok_or(())?);
        Self::of(unique, 16 * high + low, size).ok_or(())
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
    /// The id of the job. No user can choose such an id ([`JobId::plain`]).
    #[must_use]
    pub fn job(self) -> JobId {
        JobId::new(self.to_string()).expect("digits and '@' are valid in a job id")
    }

    /// The member with this id; `None` for another job.
    #[must_use]
    pub fn of_job(id: &JobId) -> Option<Self> {
        id.as_str().parse().ok()
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{MARK}{}", self.segment, self.number)
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
        let (segment, member) = text.split_once(MARK).ok_or(())?;
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
    fn a_name_has_room_for_sizes_of_32_bits() {
        let named = |bytes| SegmentId::new(Uuid::nil(), 4, bytes).is_some();
        assert_eq!([1 << 31, (1 << 32) - 1, 1 << 32].map(named), [true, true, false]);
    }

    #[test]
    fn the_debug_text_is_the_name() {
        let segment = SegmentId::new(Uuid::from_u128(1), 4, 1).unwrap();
        let member = MemberId { segment, number: 3 };
        assert_eq!(format!("{segment:?} {member:?}"), format!("{segment} {member}"));
    }

    #[test]
    fn a_name_tells_when_it_was_generated() {
        let unique = Uuid::from_u128(1_700_000_000_123 << 80 | 7 << 76 | 2 << 62);
        let generated = |unique| SegmentId::new(unique, 4, 1).unwrap().generated_at();
        assert_eq!(generated(unique), Some(WallMillis(1_700_000_000_123)));
        assert_eq!(generated(Uuid::nil()), None);
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
            good.replace("040", "0g0"),
            good.replace("040", "g40"),
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
            prop_assert_eq!(SegmentId::of_job(&segment.job()), Some(segment));
            let member = MemberId { segment, number: count - 1 };
            prop_assert_eq!(member.to_string().parse(), Ok(member));
            prop_assert_eq!(MemberId::of_job(&member.job()), Some(member));
            prop_assert_eq!((SegmentId::of_job(&member.job()), MemberId::of_job(&segment.job())), (None, None));
        }

        #[test]
        fn names_sort_by_time(early in any::<u64>(), later in any::<u64>()) {
            let named = |time: u64| SegmentId::new(Uuid::from_u128(u128::from(time) << 64), 4, 1).unwrap().to_string();
            prop_assert_eq!(early.cmp(&later), named(early).cmp(&named(later)));
        }
    }
}
