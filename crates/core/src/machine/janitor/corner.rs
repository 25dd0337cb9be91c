//! What is left in the corners: notes of quarantine whose record is gone, and containers that nobody used.
//!
//! ZooKeeper removes a container once its last child has gone, and passes over one that never had a child: that of a client
//! which ended between making it and submitting. Such a one is empty after [`UNUSED`]. A container that is removed while
//! somebody is about to use it is made again, as after ZooKeeper's own removal; one that has a child is refused.
//!
//! A note goes with the assertion that there is no record, so that a job that was submitted anew under its id keeps it.
//!
//! **One corner a round**, so that each has one list more: the notes and the delayed minutes in turn every [`SHARED`] rounds, a
//! bucket of lanes in the others. So notes are looked at about every eighty seconds, and lanes about every 25 minutes. Memory
//! is that list.

use std::collections::VecDeque;
use std::time::Duration;

use super::READ;
use super::group::Removals;
use crate::budget::BUCKETS;
use crate::name::JobId;
use crate::path::{self, Bucket};
use crate::time::WallMillis;
use crate::txn::{self, Op};

/// A container without children is not in use after that: its client has long given up, or made it again.
pub const UNUSED: Duration = Duration::from_secs(3_600);

/// Of so many rounds one is not for lanes, of which there are 256 buckets.
const SHARED: usize = 8;

/// What a stat tells: when a znode was made or last set, by ZooKeeper's clock, and how many children it has.
pub type Stat = (WallMillis, usize);

/// Which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Corner {
    Delayed,
    Notes,
    Lanes(Bucket),
}

impl Corner {
    /// That of the n-th round.
    pub(super) fn nth(n: usize) -> Self {
        let (turn, within) = (n / SHARED, n % SHARED);
        match (within, turn % 2) {
            (0, 0) => Self::Notes,
            (0, _) => Self::Delayed,
            (_, _) => {
                let of_lanes = (n - turn - 1) % usize::from(BUCKETS);
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

/// A look at one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Tidying {
    corner: Corner,
    left: VecDeque<String>,
    asked: Vec<String>,
}

impl Tidying {
    pub(super) fn new(corner: Corner) -> Self {
        Self { corner, left: VecDeque::new(), asked: Vec::new() }
    }

    pub(super) fn listed(&mut self, names: Vec<String>) {
        self.left = names.into();
    }

    /// What is to be looked at next, at most [`READ`]: containers, or the records that notes are about. `None` when it is
    /// over.
    pub(super) fn next(&mut self) -> Option<Vec<String>> {
        self.asked = self.left.drain(..self.left.len().min(READ)).collect();
        let corner = self.corner;
        let of = |name: &String| match corner {
            Corner::Delayed | Corner::Lanes(_) => Some(format!("{}/{name}", corner.path())),
            // What is no job's is somebody's own.
            Corner::Notes => JobId::new(name).ok().map(|job| path::record(&job)),
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
        let corner = self.corner;
        let removal = |(name, stat): (String, Option<Stat>)| {
            let path = format!("{}/{name}", corner.path());
            match (corner, stat) {
                (Corner::Delayed | Corner::Lanes(_), Some((made, 0))) if wall.since(made) >= UNUSED => {
                    Some((path.clone(), vec![Op::Delete { path, version: None }]))
                }
                (Corner::Delayed | Corner::Lanes(_), Some(_) | None) | (Corner::Notes, Some(_)) => None,
                (Corner::Notes, None) => Some((path, txn::remove_note(&JobId::new(name).ok()?))),
            }
        };
        asked.filter_map(removal).collect()
    }
}
