//! What the janitor hears and what it wants done. It has one request in flight, so each answer is that of the last
//! effect.

use std::time::Duration;

use super::{Found, FoundGroup, Shelf, Stat};
use crate::name::{GroupId, JobId};
use crate::outcome::Outcome;
use crate::path::Bucket;
use crate::retention::Retention;
use crate::time::WallMillis;
use crate::txn::Batch;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The time of the last [`Effect::Rest`] or [`Effect::Idle`] is over, or the session serves again.
    Go,
    /// The settings were read, and when `/epoch` was set by ZooKeeper's clock: `None` for what is absent or cannot be
    /// read; `Err` was not answered.
    Settings(Result<(Option<Retention>, Option<WallMillis>), ()>),
    /// How many children these buckets have; 0 for one that is not there.
    Counted(Shelf, Vec<Bucket>, Result<Vec<usize>, ()>),
    /// The names in a bucket.
    Listed(Shelf, Bucket, Result<Vec<String>, ()>),
    /// Records were read, in the order in which they were asked for.
    Read(Vec<JobId>, Result<Vec<Found>, ()>),
    /// Groups were read, in the order in which they were asked for.
    Groups(Vec<GroupId>, Result<Vec<FoundGroup>, ()>),
    /// Children were listed, in the order in which they were asked for.
    Names(Result<Vec<Option<Vec<String>>>, ()>),
    /// Znodes were looked at, in the order in which they were asked for; `None` is absent.
    Stats(Result<Vec<Option<Stat>>, ()>),
    /// A batch was answered.
    Committed(Batch<String>, Outcome<()>),
}

/// What the leader shall do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Say [`Event::Go`] after this time.
    Rest(Duration),
    /// The round is over: say [`Event::Go`] after [`ROUND`](super::ROUND), or when the session serves again.
    Idle,
    /// Read the settings and `/epoch`, after the server has caught up with the ensemble.
    Settings,
    /// Count the children of these buckets, at most [`MAX_READ_BATCH`](crate::budget::MAX_READ_BATCH).
    Count(Shelf, Vec<Bucket>),
    /// List a bucket.
    List(Shelf, Bucket),
    /// Read these records, at most [`READ`](super::READ).
    Read(Vec<JobId>),
    /// Read these groups, at most [`READ`](super::READ).
    Groups(Vec<GroupId>),
    /// List the children of these, at most two.
    Names(Vec<String>),
    /// Look at these znodes, at most [`READ`](super::READ).
    Stat(Vec<String>),
    /// Commit this and hand it back with its outcome.
    Commit(Batch<String>),
    /// So many records were removed.
    Removed(usize),
    /// Another leader has claimed.
    FencedOut,
}
