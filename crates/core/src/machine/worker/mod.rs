//! The worker's machines: an attempt's way from the inbox to its closing transaction.
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
//! **No attempt runs twice.** A job is *handed* from the inbox to the executor at most once until its closing
//! transaction is known to be applied: [`inbox_watcher`] gives a job out again only from a read that was sent after
//! that. Whatever breaks this memory (a dead actor, a new session) ends the incarnation, and the assignments of
//! an incarnation that has ended are closed by the leader.

pub mod executor_pool;
pub mod inbox_watcher;
pub mod status_reporter;
pub mod wing;

use std::time::Duration;

use crate::budget::MIN_RETENTION;
use crate::job::{Assignment, Ending, JobRecord};
use crate::name::JobId;
use crate::time::Millis;
use crate::wire::{self, Stored};

/// For how long it is believed that an attempt's record is the one that was read. The record of a job that is over stays
/// for [`MIN_RETENTION`] at least, and then versions begin anew under its id; so for half of that no other job can have the
/// id, nor while what was sent by then is on its way. A worker that hangs for longer reads again before it acts.
pub const BELIEVED: Duration = Duration::from_secs(MIN_RETENTION.as_secs() / 2);

/// An attempt that may start, with all that its end needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Start {
    /// Which job.
    pub job: JobId,
    /// What the leader wrote into the inbox.
    pub assignment: Assignment,
    /// Its version: tells whether the cancel flag was set since.
    pub assignment_version: i32,
    /// The job.
    pub record: JobRecord,
    /// The record's version: the attempt's fencing token.
    pub version: i32,
    /// When the read was sent that showed all this, by this worker's clock.
    pub asked: Millis,
}

/// An attempt that has ended here and is not closed yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finished {
    /// What was started.
    pub start: Start,
    /// How it ended.
    pub ending: Ending,
    /// How long the handler ran; nothing when it never did.
    pub ran: Option<Duration>,
}

/// Whether the worker is connected to ZooKeeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Connectivity {
    Up,
    Down,
}

/// What a read found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Look<T> {
    /// No such znode.
    Absent,
    /// A value and its version.
    There(T, i32),
    /// Bytes that this build cannot read.
    Unreadable {
        /// Why.
        why: String,
        /// Whether a newer build may read them.
        newer: bool,
        /// The znode's version.
        version: i32,
    },
}

impl<T: Stored> Look<T> {
    /// Decodes a znode's data and version.
    #[must_use]
    pub fn of(znode: Option<(&[u8], i32)>) -> Self {
        let Some((data, version)) = znode else {
            return Self::Absent;
        };
        match wire::decode(data) {
            Ok(value) => Self::There(value, version),
            Err(error) => Self::Unreadable { why: error.to_string(), newer: error.is_newer(), version },
        }
    }
}

/// What stands in ZooKeeper about a job of the inbox. Read assignment first, record second: a record is never
/// older than the assignment beside it then.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Found {
    /// Its assignment to this worker.
    pub assignment: Look<Assignment>,
    /// Its record.
    pub record: Look<JobRecord>,
}

#[cfg(test)]
mod fixture;
