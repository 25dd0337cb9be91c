//! Chunks: which members have left a segment, and how.

use std::fmt;
use std::str::FromStr;

use super::Members;
use crate::job::Payload;
use crate::name::WorkerId;
use crate::time::WallMillis;

/// How members left the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChunkEnd {
    /// They succeeded; the chunk has their [`Results`].
    Succeeded,
    /// They have records. If both ends name a member, which no transaction does, the record counts.
    Extracted,
}

/// The name of a chunk below its segment: a list of the children shows where each member is. A member leaves a segment once and is
/// extracted once, so no name occurs twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkName {
    /// How its members left.
    pub end: ChunkEnd,
    /// Its members.
    pub members: Members,
}

impl fmt::Display for ChunkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.end {
            ChunkEnd::Succeeded => 's',
            ChunkEnd::Extracted => 'x',
        };
        write!(f, "{letter}{}", self.members)
    }
}

impl FromStr for ChunkName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (end, members) = match text.split_at_checked(1).ok_or(())? {
            ("s", members) => (ChunkEnd::Succeeded, members),
            ("x", members) => (ChunkEnd::Extracted, members),
            (_, _) => return Err(()),
        };
        let members = members.parse::<Members>()?;
        (!members.is_empty()).then_some(Self { end, members }).ok_or(())
    }
}

/// The data of a chunk of succeeded members.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Results {
    /// The worker that ran them.
    pub worker: WorkerId,
    /// When the segment was assigned, by the leader's wall clock.
    pub assigned_at: WallMillis,
    /// The number of each, when it ended by the worker's wall clock, and its result.
    pub results: Vec<(u8, WallMillis, Payload)>,
}

impl Results {
    /// Its members.
    #[must_use]
    pub fn members(&self) -> Members {
        self.results.iter().map(|(number, _, _)| *number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_back() {
        for end in [ChunkEnd::Succeeded, ChunkEnd::Extracted] {
            for members in [Members::one(0), Members::below(100)] {
                let name = ChunkName { end, members };
                assert_eq!(name.to_string().parse(), Ok(name));
            }
        }
    }

    #[test]
    fn a_foreign_name_is_refused() {
        for bad in ["", "s", "s0", "q1", "s1,", "sF", "s01", "é1", "x"] {
            assert_eq!(bad.parse::<ChunkName>(), Err(()), "{bad:?}");
        }
    }
}
