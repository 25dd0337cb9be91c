//! Slices: members of a segment in a worker's inbox.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Members, SegmentId, number};
use crate::time::WallMillis;

/// The name of a slice in an inbox. Epoch and number occur once in a namespace, so its versions do not alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SliceName {
    /// The segment.
    pub segment: SegmentId,
    /// The leader's epoch.
    pub epoch: i32,
    /// Counts the slices of an epoch, from a random start.
    pub seq: u64,
}

impl fmt::Display for SliceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.segment, self.epoch, self.seq)
    }
}

impl FromStr for SliceName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, ',');
        let mut next = || parts.next().ok_or(());
        let (segment, epoch, seq) =
            (next()?.parse()?, number(next()?).ok_or(())?, number(next()?).ok_or(())?);
        Ok(Self { segment, epoch, seq })
    }
}

/// Members that a worker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slice {
    /// The members that were assigned. It never grows; members that are given back are removed.
    pub given: Members,
    /// Those that have ended or were extracted.
    pub over: Members,
    /// Those that a client asked to cancel.
    pub cancel: Members,
    /// The worker begins only members below this number. It only grows.
    pub begun: u8,
    /// When it was assigned, by the leader's wall clock.
    pub assigned_at: WallMillis,
    /// The time after the last change of this znode after which the leader considers the worker hung.
    pub lease: Duration,
}

impl Slice {
    /// The members that are assigned here.
    #[must_use]
    pub fn open(&self) -> Members {
        self.given.without(self.over)
    }

    /// The open members that the worker may have begun.
    #[must_use]
    pub fn may_have_begun(&self) -> Members {
        self.open().within(Members::below(self.begun))
    }

    /// The open members that the worker has not begun.
    #[must_use]
    pub fn unbegun(&self) -> Members {
        self.open().without(Members::below(self.begun))
    }

    /// The members that a client asked to cancel before the worker began them.
    #[must_use]
    pub fn cancelled_unbegun(&self) -> Members {
        self.unbegun().within(self.cancel)
    }

    /// The slice after these members have ended or were extracted; `None` if no member is left.
    #[must_use]
    pub fn after(self, over: Members) -> Option<Self> {
        let after = Self { over: self.over.with(over.within(self.given)), ..self };
        (!after.open().is_empty()).then_some(after)
    }

    /// The slice without these members; `None` if no open member is left.
    #[must_use]
    pub fn without(self, back: Members) -> Option<Self> {
        let after = Self { given: self.given.without(back), cancel: self.cancel.without(back), ..self };
        (!after.open().is_empty()).then_some(after)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::budget::DEFAULT_LEASE;

    fn slice() -> Slice {
        Slice {
            given: Members::below(4),
            over: Members::one(0),
            cancel: Members::NONE,
            begun: 2,
            assigned_at: WallMillis(1),
            lease: DEFAULT_LEASE,
        }
    }

    #[test]
    fn members_below_the_begun_number_may_have_begun() {
        assert_eq!(slice().open().iter().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(slice().may_have_begun(), Members::one(1));
        assert_eq!(slice().unbegun().iter().collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn a_slice_ends_with_its_last_open_member() {
        let rest = slice().after(Members::below(3)).unwrap();
        assert_eq!(rest.open(), Members::one(3));
        assert_eq!(rest.after(Members::one(3)), None);
        let kept = slice().without(slice().unbegun()).unwrap();
        assert_eq!((kept.given, kept.open()), (Members::below(2), Members::one(1)));
        assert_eq!(kept.without(Members::one(1)), None);
    }

    #[test]
    fn a_name_reads_back_and_a_foreign_one_is_refused() {
        let segment = SegmentId::new(Uuid::from_u128(7), 4, 1_000).unwrap();
        let name = SliceName { segment, epoch: 7, seq: 1 << 40 };
        assert_eq!(name.to_string().parse(), Ok(name));
        for bad in
            ["", "a,1,2", &format!("{segment},1"), &format!("{segment},1,2,3"), &format!("{segment},+1,2")]
        {
            assert_eq!(bad.parse::<SliceName>(), Err(()), "{bad:?}");
        }
    }
}
