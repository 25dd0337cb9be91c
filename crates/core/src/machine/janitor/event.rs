//! Events and effects of the janitor. It has one request in flight, so each answer belongs to the last effect.

use std::time::Duration;

use super::{BucketKind, Found, FoundGroup, FoundSegment, Stat};
use crate::name::{GroupId, JobId};
use crate::outcome::Outcome;
use crate::path::Bucket;
use crate::retention::Retention;
use crate::segment::{Chunks, SegmentId};
use crate::time::WallMillis;
use crate::txn::Batch;

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The delay of the last [`Effect::Rest`] or [`Effect::Idle`] has passed, or the session is usable again.
    Go,
    /// The settings were read, together with the modification time of `/epoch` by ZooKeeper's clock. `None`: absent
    /// or unreadable. `Err`: no answer.
    Settings(Result<(Option<Retention>, Option<WallMillis>), ()>),
    /// The numbers of records in these buckets; 0 for an absent bucket.
    Counted(BucketKind, Vec<Bucket>, Result<Vec<usize>, ()>),
    /// The version of a bucket, and the names in it, which were read after the version.
    Listed(BucketKind, Bucket, Result<(i32, Vec<String>), ()>),
    /// Records were read, in the order of the request.
    Read(Vec<JobId>, Result<Vec<Found>, ()>),
    /// Segments with these chunks were read, in the order of the request.
    Segments(Vec<(SegmentId, Chunks)>, Result<Vec<FoundSegment>, ()>),
    /// Groups were read, in the order of the request.
    Groups(Vec<GroupId>, Result<Vec<FoundGroup>, ()>),
    /// Children were listed, in the order of the request.
    Names(Result<Vec<Option<Vec<String>>>, ()>),
    /// The stats of znodes were read, in the order of the request; `None` is absent.
    Stats(Result<Vec<Option<Stat>>, ()>),
    /// The outcome of a batch.
    Committed(Batch<String>, Outcome<()>),
}

/// Output of the machine, carried out by the leader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Send [`Event::Go`] after this time.
    Rest(Duration),
    /// The round is over: send [`Event::Go`] after [`ROUND`](super::ROUND), or when the session is usable again.
    Idle,
    /// Read the settings and `/epoch`, after a sync with the ZooKeeper leader.
    Settings,
    /// Count the records of these buckets. They have at most [`MAX_STAT_BATCH`](crate::budget::MAX_STAT_BATCH) parents
    /// ([`BucketKind::parents`]).
    Count(BucketKind, Vec<Bucket>),
    /// List a bucket.
    List(BucketKind, Bucket),
    /// Read these records, at most [`RECORDS`](super::RECORDS).
    Read(Vec<JobId>),
    /// Read these segments and these chunks of them, at most 16 segments.
    Segments(Vec<(SegmentId, Chunks)>),
    /// Read these groups, at most [`READ`](super::READ).
    Groups(Vec<GroupId>),
    /// List the children of these znodes, at most [`READ`](super::READ).
    Names(Vec<String>),
    /// Stat these znodes, at most [`READ`](super::READ).
    Stat(Vec<String>),
    /// Commit this batch and return it with its outcome.
    Commit(Batch<String>),
    /// The records of this many jobs were removed.
    Removed(usize),
    /// Another leader has claimed the epoch.
    FencedOut,
}
