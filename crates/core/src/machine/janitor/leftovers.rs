//! Leftovers: quarantine notes without a record, and containers that were never used.
//!
//! ZooKeeper removes a container after its last child is deleted, but never a container that had no child. This build
//! creates containers together with a child, so only an operator or an earlier build leaves one. It is considered unused
//! when it is empty and [`UNUSED`] old. If a session is about to use a container that is removed, it creates it again, as
//! after ZooKeeper's own removal. The delete of a container with a child is rejected.
//!
//! A note is deleted together with a check that its record is absent, so that a job resubmitted under the same id
//! keeps its note.
//!
//! **One list per round of each machine.** Every [`SHARED`] such lists it is that of the notes or of the delayed minutes, in
//! turn; otherwise it is the list of a bucket of lanes. So notes are checked about every 20 seconds, and each bucket
//! of lanes about every 6 minutes. That list is the only memory used.

use std::collections::VecDeque;
use std::time::Duration;

use super::READ;
use super::group::Removals;
use crate::budget::BUCKETS;
use crate::name::JobId;
use crate::path::{self, Bucket};
use crate::time::WallMillis;
use crate::txn::{self, Op};

/// Age after which an empty container is unused: a client of an earlier build has long given up, or has created it again.
pub const UNUSED: Duration = Duration::from_secs(3_600);

/// One of this many lists is not for lanes, which have 256 buckets.
const SHARED: usize = 8;

/// Result of a stat: when the znode was created or last set, by ZooKeeper's clock, and its number of children.
pub type Stat = (WallMillis, usize);

/// The place that a round searches for leftovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Leftovers {
    Delayed,
    Notes,
    Lanes(Bucket),
}

impl Leftovers {
    /// Returns the place of the n-th list.
    pub(super) fn nth(n: usize) -> Self {
        let (turn, within) = (n / SHARED, n % SHARED);
        match (within, turn % 2) {
            (0, 0) => Self::Notes,
            (0, _) => Self::Delayed,
            (_, _) => {
                let of_lanes = (n - turn) % usize::from(BUCKETS);
                Bucket::all().nth(of_lanes).map_or(Self::Notes, Self::Lanes)
            }
        }
    }

    pub(super) fn path(self) -> String {
        match self {
            Self::Delayed => path::DELAYED.to_owned(),
            Self::Notes => path::QUARANTINE.to_owned(),
            Self::Lanes(bucket) => bucket.lanes(),
        }
    }
}

/// The scan of one place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LeftoverScan {
    leftovers: Leftovers,
    left: VecDeque<String>,
    asked: Vec<String>,
}

impl LeftoverScan {
    pub(super) fn new(leftovers: Leftovers) -> Self {
        Self { leftovers, left: VecDeque::new(), asked: Vec::new() }
    }

    pub(super) fn listed(&mut self, names: Vec<String>) {
        self.left = names.into();
    }

    /// Returns the next paths to stat, at most [`READ`]: containers, or the records of notes. `None` when the scan
    /// is finished.
    pub(super) fn next(&mut self) -> Option<Vec<String>> {
        self.asked = self.left.drain(..self.left.len().min(READ)).collect();
        let leftovers = self.leftovers;
        let of = |name: &String| match leftovers {
            Leftovers::Delayed | Leftovers::Lanes(_) => Some(format!("{}/{name}", leftovers.path())),
            // A name that is not a job id belongs to another application.
            Leftovers::Notes => JobId::new(name).ok().map(|job| path::record(&job)),
        };
        self.asked.retain(|name| of(name).is_some());
        let paths = self.asked.iter().filter_map(of).collect::<Vec<_>>();
        match (paths.is_empty(), self.left.is_empty()) {
            (true, true) => None,
            (true, false) => self.next(),
            (false, _) => Some(paths),
        }
    }

    pub(super) fn seen(&mut self, stats: Vec<Option<Stat>>, wall: WallMillis) -> Removals {
        let asked = std::mem::take(&mut self.asked).into_iter().zip(stats);
        let leftovers = self.leftovers;
        let removal = |(name, stat): (String, Option<Stat>)| {
            let path = format!("{}/{name}", leftovers.path());
            match (leftovers, stat) {
                (Leftovers::Delayed | Leftovers::Lanes(_), Some((made, 0))) if wall.since(made) >= UNUSED => {
                    Some((path.clone(), vec![Op::Delete { path, version: None }]))
                }
                (Leftovers::Delayed | Leftovers::Lanes(_), Some(_) | None) | (Leftovers::Notes, Some(_)) => {
                    None
                }
                (Leftovers::Notes, None) => Some((path, txn::remove_note(&JobId::new(name).ok()?))),
            }
        };
        asked.filter_map(removal).collect()
    }
}
