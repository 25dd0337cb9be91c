//! Entries of segments that wait.

use std::fmt;
use std::str::FromStr;

use super::{SegmentId, SliceName, number};

/// The name of an entry in a slot of `/ready`: the milliseconds in the slot's minute, and the segment. A segment's first entry
/// has no nonce. An entry that a give-back or a recovery creates has one, so that no name occurs twice: a late delete of the first entry
/// must not find the later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryName {
    /// Milliseconds in the minute: orders the entries of a slot.
    pub millis: u16,
    /// The segment whose members wait.
    pub segment: SegmentId,
    /// What created it, unless it is the first.
    pub nonce: Option<Nonce>,
}

/// The write that created an entry: a slice at a version. A slice is written at a version once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce {
    /// The leader's epoch of the slice.
    pub epoch: i32,
    /// The slice's number in that epoch.
    pub seq: u64,
    /// The slice's version that the write replaced.
    pub version: i32,
}

impl Nonce {
    /// The nonce of a write that replaces or deletes a slice.
    #[must_use]
    pub fn of(slice: SliceName, version: i32) -> Self {
        Self { epoch: slice.epoch, seq: slice.seq, version }
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:05}{}", self.millis, self.segment)?;
        match self.nonce {
            Some(Nonce { epoch, seq, version }) => write!(f, ",{epoch}.{seq}.{version}"),
            None => Ok(()),
        }
    }
}

impl FromStr for EntryName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (millis, rest) = text.split_at_checked(5).ok_or(())?;
        let millis = millis.parse::<u16>().map_err(|_| ())?;
        let (segment, nonce) = match rest.split_once(',') {
            Some((segment, nonce)) => (segment, Some(parse(nonce).ok_or(())?)),
            None => (rest, None),
        };
        let name = Self { millis, segment: segment.parse()?, nonce };
        (millis < 60_000 && name.to_string() == text).then_some(name).ok_or(())
    }
}

fn parse(nonce: &str) -> Option<Nonce> {
    let (epoch, rest) = nonce.split_once('.')?;
    let (seq, version) = rest.split_once('.')?;
    Some(Nonce { epoch: number(epoch)?, seq: number(seq)?, version: number(version)? })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_name_reads_back_and_a_foreign_one_is_refused() {
        let segment = SegmentId::new(Uuid::from_u128(7), 4, 1_000).unwrap();
        let first = EntryName { millis: 59_999, segment, nonce: None };
        let again = EntryName { nonce: Some(Nonce { epoch: 3, seq: 1 << 40, version: 2 }), ..first };
        for name in [first, again] {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        let good = first.to_string();
        for bad in [
            format!("6{}", &good[1..]),
            format!("{good},"),
            format!("{good},1.2"),
            format!("{good},1.02.3"),
            "é".repeat(3),
        ] {
            assert_eq!(bad.parse::<EntryName>(), Err(()), "{bad:?}");
        }
    }
}
