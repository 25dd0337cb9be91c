//! State machines of the worker: from the inbox to the closing transaction of an attempt.
//!
//! ```text
//!  ZooKeeper ──▶ inbox_watcher ──Start──▶ executor_pool ──Finished──▶ beats ──▶ reporter ──▶ ZooKeeper
//!                   ▲                       │ ▲ ▲ └────Begun────────▶ │ │          │
//!                   └───────Closed──────────┘ │ └──lapsed, cancelled──┘ └──▶ ZooKeeper
//!                                             └───────────────Closed───────────────┘
//!
//!  wing: registers the incarnation, starts and stops the others, drains, retires
//! ```
//!
//! **No attempt runs twice.** Until the closing transaction of an attempt is known to be applied, its job is *handed*
//! from the inbox to the executor at most once: [`inbox_watcher`] hands a job out again only from a read that was sent
//! after that. If this state is lost (an actor died, the session is new), the incarnation ends, and the leader closes
//! its assignments.

pub mod executor_pool;
pub mod inbox_watcher;
pub mod status_reporter;
pub mod wing;

use std::sync::Arc;
use std::time::Duration;

use crate::budget::MIN_RETENTION;
use crate::job::{Assignment, Ending, JobRecord};
use crate::name::JobId;
use crate::segment::{MemberId, Segment, SegmentId};
use crate::time::Millis;
use crate::wire::{self, Stored};

/// How long the record that was read is assumed to be the record of the same job. The record of a terminal job is kept
/// for at least [`MIN_RETENTION`]; after that the id can be reused with versions that start from zero. So for half of
/// that time the id cannot belong to another job, including requests still in flight. A worker that hangs for longer
/// reads again before it acts.
pub const BELIEVED: Duration = Duration::from_secs(MIN_RETENTION.as_secs() / 2);

/// The segment of an attempt's job, as the worker began it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Packed {
    /// Its id.
    pub id: SegmentId,
    /// Its data.
    pub segment: Segment,
    /// Its assignment.
    pub assignment: Assignment,
    /// The version of the assignment.
    pub version: i32,
    /// When the read of these data was sent, by this worker's monotonic clock.
    pub asked: Millis,
}

impl Packed {
    /// The attempts of its members.
    pub fn starts(self) -> impl Iterator<Item = Start> {
        let packed = Arc::new(self);
        packed.id.members().iter().filter_map(move |number| {
            let Packed { id, segment, assignment, asked, .. } = &*packed;
            Some(Start {
                job: MemberId { segment: *id, number }.job(),
                assignment: assignment.clone(),
                assignment_version: 0,
                record: Box::new(segment.record(number)?),
                version: 0,
                asked: *asked,
                packed: Some(Arc::clone(&packed)),
            })
        })
    }
}

/// An attempt that may start, with all data needed to close it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Start {
    /// The job.
    pub job: JobId,
    /// The assignment that the leader wrote into the inbox.
    pub assignment: Assignment,
    /// The assignment's version: shows whether the cancel flag was set since the read.
    pub assignment_version: i32,
    /// The job's record. An attempt is moved often, and the record is large.
    pub record: Box<JobRecord>,
    /// The record's version: the attempt's fencing token.
    pub version: i32,
    /// When the read of these data was sent, by this worker's monotonic clock.
    pub asked: Millis,
    /// The segment of the job, if it was assigned with one. Record and assignment are then as its extraction writes them.
    pub packed: Option<Arc<Packed>>,
}

/// An attempt that has ended in this worker and is not closed yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finished {
    /// The attempt that was started.
    pub start: Start,
    /// How the attempt ended.
    pub ending: Ending,
}

/// Whether the worker is connected to ZooKeeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Connectivity {
    Up,
    Down,
}

/// The result of a read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Lookup<T> {
    /// The znode is absent.
    Absent,
    /// A value and its version.
    Found(T, i32),
    /// The data cannot be decoded by this build.
    Unreadable {
        /// The decoding error.
        why: String,
        /// Whether a newer build may be able to decode the data.
        newer: bool,
        /// The znode's version.
        version: i32,
    },
}

impl<T> Lookup<T> {
    /// Maps the value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Lookup<U> {
        match self {
            Self::Absent => Lookup::Absent,
            Self::Found(value, version) => Lookup::Found(f(value), version),
            Self::Unreadable { why, newer, version } => Lookup::Unreadable { why, newer, version },
        }
    }
}

impl<T: Stored> Lookup<T> {
    /// Decodes a znode's data and version.
    #[must_use]
    pub fn of(znode: Option<(&[u8], i32)>) -> Self {
        let Some((data, version)) = znode else {
            return Self::Absent;
        };
        match wire::decode(data) {
            Ok(value) => Self::Found(value, version),
            Err(error) => Self::Unreadable { why: error.to_string(), newer: error.is_newer(), version },
        }
    }
}

/// The stored state of a job in the inbox. The assignment is read before the record, so the record is never older than
/// the assignment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Found {
    /// The job's assignment to this worker.
    pub assignment: Lookup<Assignment>,
    /// The job's record.
    pub record: Lookup<JobRecord>,
}

#[cfg(test)]
mod fixture;
