//! The current time, limited by what ZooKeeper's clock confirms.

use super::{Event, Found, FoundSegment};
use crate::time::{Millis, WallMillis};

/// The latest time read from ZooKeeper's clock, and the monotonic time at which it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct SeenTime {
    latest: WallMillis,
    at: Millis,
}

impl SeenTime {
    /// Returns the wall time, limited by what ZooKeeper's clock confirms.
    pub(super) fn trusted(&self, now: Millis, wall: WallMillis) -> WallMillis {
        wall.min(self.latest + now.since(self.at))
    }

    /// Learns ZooKeeper's time from recent writes: first from the leader's own claim, then from every end that is read.
    pub(super) fn see(&mut self, now: Millis, event: &Event) {
        let latest = match event {
            Event::Settings(Ok((_, claimed))) => *claimed,
            Event::Read(_, Ok(found)) => {
                let modified = |found: &Found| match found {
                    Found::Over { modified, .. } => Some(*modified),
                    Found::Absent | Found::Left => None,
                };
                found.iter().filter_map(modified).max()
            }
            Event::Segments(_, Ok(found)) => {
                let modified = found.iter().flat_map(|found| match found {
                    FoundSegment::Over(ends) => ends.as_slice(),
                    FoundSegment::Absent | FoundSegment::Left => &[],
                });
                modified.map(|(_, modified)| *modified).max()
            }
            Event::Groups(_, Ok(found)) => found.iter().flatten().map(|(_, _, modified)| *modified).max(),
            Event::Settings(Err(()))
            | Event::Read(_, Err(()))
            | Event::Segments(_, Err(()))
            | Event::Groups(_, Err(()))
            | Event::Go
            | Event::Counted(..)
            | Event::Listed(..)
            | Event::Names(_)
            | Event::Stats(_)
            | Event::Committed(..) => None,
        };
        if let Some(latest) = latest.filter(|latest| *latest > self.trusted(now, WallMillis(u64::MAX))) {
            (self.latest, self.at) = (latest, now);
        }
    }
}
