//! Chunks: how members of a segment ended.

use std::fmt;
use std::str::FromStr;

use super::{Members, SliceName, number};
use crate::job::Payload;
use crate::time::WallMillis;

/// How the members of a chunk left the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChunkEnd {
    /// They succeeded; the chunk has their results.
    Succeeded,
    /// A client cancelled them.
    Cancelled,
    /// They expired before they began.
    Expired,
    /// They have records. Takes precedence over another end.
    Extracted,
}

impl ChunkEnd {
    const ALL: [(Self, char); 4] =
        [(Self::Succeeded, 's'), (Self::Cancelled, 'c'), (Self::Expired, 'd'), (Self::Extracted, 'x')];

    fn letter(self) -> char {
        match self {
            Self::Succeeded => 's',
            Self::Cancelled => 'c',
            Self::Expired => 'd',
            Self::Extracted => 'x',
        }
    }
}

/// The name of a chunk below its segment: a list of the children shows how each member ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkName {
    /// How its members ended.
    pub end: ChunkEnd,
    /// Its members.
    pub members: Members,
    /// The epoch and number of the slice that the members left; `None` for members that were waiting, and for an ended member that
    /// is opened again: that chunk is named by its member alone, so a second one meets the first.
    pub slice: Option<(i32, u64)>,
}

impl ChunkName {
    /// The chunk of members that leave a slice.
    #[must_use]
    pub fn of_slice(end: ChunkEnd, members: Members, slice: SliceName) -> Self {
        Self { end, members, slice: Some((slice.epoch, slice.seq)) }
    }

    /// The chunk of members that were in no slice.
    #[must_use]
    pub fn alone(end: ChunkEnd, members: Members) -> Self {
        Self { end, members, slice: None }
    }
}

impl fmt::Display for ChunkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.end.letter(), self.members)?;
        match self.slice {
            Some((epoch, seq)) => write!(f, ",{epoch},{seq}"),
            None => Ok(()),
        }
    }
}

impl FromStr for ChunkName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let letter = text.chars().next().ok_or(())?;
        let (end, _) = *ChunkEnd::ALL.iter().find(|(_, known)| *known == letter).ok_or(())?;
        let mut parts = text[1..].splitn(3, ',');
        let members = parts.next().ok_or(())?.parse::<Members>()?;
        let slice = match (parts.next(), parts.next()) {
            (None, None) => None,
            (Some(epoch), Some(seq)) => Some(number(epoch).zip(number(seq)).ok_or(())?),
            (None, Some(_)) | (Some(_), None) => return Err(()),
        };
        (!members.is_empty()).then_some(Self { end, members, slice }).ok_or(())
    }
}

/// The data of a chunk of succeeded members: the number of each, when it ended by the worker's wall clock, and its result.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Results(pub Vec<(u8, WallMillis, Payload)>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_back() {
        for (end, _) in ChunkEnd::ALL {
            for slice in [None, Some((0, 0)), Some((7, u64::MAX))] {
                let name = ChunkName { end, members: Members::below(100), slice };
                assert_eq!(name.to_string().parse(), Ok(name));
            }
        }
    }

    #[test]
    fn a_foreign_name_is_refused() {
        for bad in ["", "s", "s0", "q1", "s1,", "s1,2", "s1,2,3,4", "s1,02,3", "sF", "é1"] {
            assert_eq!(bad.parse::<ChunkName>(), Err(()), "{bad:?}");
        }
    }
}
