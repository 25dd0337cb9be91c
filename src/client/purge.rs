//! Removing records of ended jobs by hand, before their retention ends.
//!
//! Each record is removed at the version that was read. So a job that is retried concurrently is either kept, or
//! removed before the retry. Each removal also counts in its bucket ([`txn::count_removal`]), so a removal that arrives late
//! does not touch another job that was submitted with the id of a removed one.
//!
//! Ages are measured by ZooKeeper's clock: the purge sets `/jobs` and reads the time of that write. A client whose clock is
//! wrong removes no record early.
//!
//! Segments are removed as a whole: see `segments`.
//!
//! Memory is bounded by the names in a few buckets and a page of records.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellwether_core::budget::{MAX_READ_BATCH, MIN_RETENTION};
use bellwether_core::change::{Change, ChangeKind};
use bellwether_core::duration::DurationText;
use bellwether_core::group::End;
use bellwether_core::job::{JobRecord, JobState, Verdict};
use bellwether_core::name::{JobId, Kind};
use bellwether_core::path::{self, Bucket, SubBucket};
use bellwether_core::remedy::ErrorClass;
use bellwether_core::retention;
use bellwether_core::segment::SegmentId;
use bellwether_core::time::{Millis, WallMillis};
use bellwether_core::txn::{self, Op};
use bellwether_core::wire;
use bellwether_zk::Node;
use serde::{Deserialize, Deserializer, Serialize};

use super::Client;
use super::error::{Error, Subject};
use super::runtime::Zk;
use super::segments::job_or_segment;
use super::session::Written;
use segments::SEGMENTS;

mod segments;

/// Buckets whose names are held in memory together: 2 full ones have 160,000 names.
const BUCKETS_AT_ONCE: usize = 2;

/// Records per page. The read also returns the buckets of the page.
const PAGE: usize = MAX_READ_BATCH - BUCKETS_AT_ONCE;

/// Records per page of given jobs, each of which may be in its own bucket.
const SCATTERED_PAGE: usize = MAX_READ_BATCH / 2;

/// Limit of attempts for a page whose jobs change concurrently.
const TRIES: u32 = 16;

/// The time of ZooKeeper's clock, as a lower bound: it was at least `time` when a read was answered at `read`, by this
/// process's monotonic clock.
#[derive(Debug, Clone, Copy)]
struct ServerClock {
    time: WallMillis,
    read: Millis,
}

impl ServerClock {
    fn at(self, now: Millis) -> WallMillis {
        self.time + now.since(self.read)
    }
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
pub enum Ended {
    /// The job succeeded.
    Succeeded,
    /// The job was cancelled.
    Cancelled,
    /// The job failed or lost its workers too often, can never succeed, or expired.
    #[default]
    Dead,
}

bellwether_core::impl_deserialize_by_name!(Ended);

bellwether_core::impl_names!(Ended {
    Succeeded = "succeeded",
    Cancelled = "cancelled",
    Dead = "dead",
});

impl Ended {
    pub(super) fn of(end: End) -> Self {
        match end {
            End::Succeeded => Self::Succeeded,
            End::Cancelled => Self::Cancelled,
            End::Dead => Self::Dead,
        }
    }
}

/// Which records of ended jobs to remove: of given jobs, or of all jobs with a state, kind and age.
///
/// Jobs that have not ended cannot be purged: cancel them first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "describe", derive(clap::Args, utoipa::ToSchema), schema(as = NewPurge))]
#[serde(deny_unknown_fields)]
#[must_use]
pub struct Purge {
    /// Only these jobs, in any final state. Without them, the jobs are selected by state, kind and age.
    #[cfg_attr(
        feature = "describe",
        arg(value_name = "JOB", conflicts_with_all = ["state", "kind", "older_than"]),
        schema(value_type = Vec<JobId>, required = false, min_items = 1, max_items = 1000)
    )]
    #[serde(default, deserialize_with = "not_null")]
    jobs: Option<Vec<JobId>>,
    /// Final state of the jobs. Default: dead.
    #[cfg_attr(
        feature = "describe",
        arg(long),
        schema(value_type = Ended, required = false, default = "dead")
    )]
    #[serde(default, deserialize_with = "not_null")]
    state: Option<Ended>,
    /// Only jobs of this kind.
    #[cfg_attr(feature = "describe", arg(long), schema(value_type = Kind, required = false))]
    #[serde(default, deserialize_with = "not_null")]
    kind: Option<Kind>,
    /// Only jobs that ended at least this long ago. Default: 0s.
    #[cfg_attr(
        feature = "describe",
        arg(long, value_name = "DURATION"),
        schema(value_type = DurationText, required = false, default = "0s")
    )]
    #[serde(default, deserialize_with = "not_null")]
    older_than: Option<DurationText>,
    /// Whether to remove the records. Without this they are only counted.
    #[cfg_attr(feature = "describe", arg(long))]
    #[serde(default)]
    remove: bool,
}

/// Reads a value that may be left out, but not be null: a program that failed to compute it would select more jobs.
fn not_null<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl Purge {
    /// Selects the records of jobs that ended in this way.
    pub fn of(state: Ended) -> Self {
        Self { state: Some(state), ..Self::default() }
    }

    /// Selects the records of these jobs, however they ended. Other jobs are kept and not counted, and so are succeeded jobs that are
    /// stored together with others. [`Purged::buckets`] stays 0.
    pub fn jobs(jobs: impl IntoIterator<Item = JobId>) -> Self {
        Self { jobs: Some(jobs.into_iter().collect()), ..Self::default() }
    }

    /// Selects only jobs of this kind.
    pub fn kind(mut self, kind: impl Into<Option<Kind>>) -> Self {
        self.kind = kind.into();
        self
    }

    /// Selects only jobs that ended at least this long ago. Default: all. The time of the end is the later one of two clocks:
    /// the clock of the process that ended the job, and ZooKeeper's clock. The present time is ZooKeeper's.
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age.into());
        self
    }

    /// Sets whether the records are removed. Default: no, they are only counted.
    pub fn remove(self, remove: bool) -> Self {
        Self { remove, ..self }
    }

    /// Whether the records are removed.
    #[must_use]
    pub fn removes(&self) -> bool {
        self.remove
    }

    /// The given jobs; `None` if they are selected by state, kind and age.
    #[must_use]
    pub fn job_ids(&self) -> Option<&[JobId]> {
        self.jobs.as_deref()
    }
}

/// A purge failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PurgeError {
    /// It selects jobs in two ways. Nothing was sent.
    #[error("give either jobs, or state, kind and older_than")]
    TwoSelections,
    /// ZooKeeper did not answer, or records change repeatedly. What the last progress reported is done.
    #[error(transparent)]
    Client(#[from] Error),
}

impl PurgeError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::TwoSelections => ErrorClass::Invalid,
            Self::Client(error) => error.class(),
        }
    }
}

bellwether_core::impl_remedy!(PurgeError);

/// The ended jobs of a page that are meant.
#[derive(Debug, Clone, Copy)]
enum Selection<'a> {
    /// All.
    Any,
    /// Those that a purge selects.
    Of(&'a Purge),
}

impl Selection<'_> {
    fn lets(self, ended: Ended, kind: &Kind, age: Duration) -> bool {
        match self {
            Self::Any => true,
            Self::Of(purge) => {
                ended == purge.state.unwrap_or_default()
                    && purge.kind.as_ref().is_none_or(|only| only == kind)
                    && purge.older_than.is_none_or(|DurationText(least)| age >= least)
            }
        }
    }
}

/// The progress or the result of a purge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Purged {
    /// How many of the namespace's 256 buckets are done.
    pub buckets: usize,
    /// Selected records.
    pub matched: u64,
    /// Removed records.
    pub removed: u64,
    /// Records that would be selected but ended within the last minute. They are kept, because a client that lost the
    /// reply to its submission may still look for them.
    pub too_recent: u64,
}

impl Purged {
    /// The parts of a namespace: [`buckets`](Self::buckets) of a purge that has ended.
    pub const BUCKETS: usize = bellwether_core::budget::BUCKETS as usize;

    fn note(&mut self, removed: usize) {
        self.removed += removed as u64;
        self.matched += removed as u64;
    }
}

impl Client {
    /// Removes the selected records of ended jobs if the purge [removes](Purge::remove) them, and otherwise counts them. The ids of
    /// removed records can be used again. Calls `progress` about every hundred records.
    ///
    /// A record that cannot be read is kept. The record of a job in a group is kept too: it is removed with its
    /// group. Jobs that were submitted together may be stored together: those that succeeded are removed when all of them have ended
    /// and are selected. A count writes once, to learn ZooKeeper's time.
    ///
    /// # Errors
    /// [`PurgeError::TwoSelections`] if jobs are given and selected. Otherwise fails if ZooKeeper does not answer within the client's
    /// deadline, which applies to each page; [`Error::Contended`] if records change repeatedly. The removals that `progress` reported
    /// last are done. Purging again is safe.
    ///
    /// # Cancellation
    /// A dropped call has removed what `progress` reported, and at most one more page.
    pub async fn purge(&self, purge: &Purge, progress: impl FnMut(Purged)) -> Result<Purged, PurgeError> {
        Ok(match &purge.jobs {
            None => self.walk(purge, progress).await?,
            Some(_) if purge.state.is_some() || purge.kind.is_some() || purge.older_than.is_some() => {
                return Err(PurgeError::TwoSelections);
            }
            Some(jobs) => self.walk_jobs(jobs, purge.remove, progress).await?,
        })
    }

    async fn walk_jobs(
        &self,
        jobs: &[JobId],
        remove: bool,
        mut progress: impl FnMut(Purged),
    ) -> Result<Purged, Error> {
        let mut done = Purged::default();
        let clock = self.server_clock().await?;
        // A transaction can remove a record only once.
        let jobs = jobs.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
        for page in jobs.chunks(SCATTERED_PAGE) {
            self.page(Selection::Any, remove, page, clock, &mut done).await?;
            progress(done);
        }
        Ok(done)
    }

    async fn walk(&self, purge: &Purge, mut progress: impl FnMut(Purged)) -> Result<Purged, Error> {
        let mut done = Purged::default();
        let clock = self.server_clock().await?;
        let buckets = Bucket::all().collect::<Vec<_>>();
        for few in buckets.chunks(BUCKETS_AT_ONCE) {
            let parents = few.iter().flat_map(|bucket| bucket.sub_buckets().map(SubBucket::path));
            let parents = parents.collect::<Vec<_>>();
            let lists = self.0.session.read(self.by(), |zk| zk.children_many(parents.clone())).await?;
            // Other znodes are ignored: their names are not job ids.
            let names = lists.into_iter().flatten().flatten().filter_map(|name| job_or_segment(&name));
            let (segments, jobs): (Vec<_>, Vec<_>) = names.partition(|id| SegmentId::of_job(id).is_some());
            let segments = segments.iter().filter_map(SegmentId::of_job).collect::<Vec<_>>();
            for page in jobs.chunks(PAGE) {
                self.page(Selection::Of(purge), purge.remove, page, clock, &mut done).await?;
                progress(done);
            }
            for page in segments.chunks(SEGMENTS) {
                self.segment_page(purge, page, clock, &mut done).await?;
                progress(done);
            }
            done.buckets += few.len();
            progress(done);
        }
        Ok(done)
    }

    /// Reads ZooKeeper's clock. After a lost reply it writes again, unless ZooKeeper does not answer the read either.
    async fn server_clock(&self) -> Result<ServerClock, Error> {
        for _ in 0..TRIES {
            let written = self.0.session.commit(self.by(), vec![txn::read_clock()]).await?;
            // A session sees its own write.
            let read = |zk: &Zk| zk.get(path::JOBS.to_owned());
            if let (Written::Applied, Some(jobs)) = (written, self.0.session.read(self.by(), read).await?) {
                return Ok(ServerClock { time: jobs.modified, read: self.0.session.now() });
            }
        }
        Err(Error::Contended { subject: Subject::Page, tries: TRIES })
    }

    async fn page(
        &self,
        which: Selection<'_>,
        remove: bool,
        page: &[JobId],
        clock: ServerClock,
        done: &mut Purged,
    ) -> Result<(), Error> {
        // The jobs of removals whose replies were lost, until a read does not find them. ZooKeeper may reject a copy because it
        // applied an earlier one after the read.
        let mut sent = BTreeSet::new();
        for attempt in 0..TRIES {
            let by = self.by();
            let buckets = page.iter().map(Bucket::of).collect::<BTreeSet<_>>();
            let paths = buckets.iter().map(|bucket| bucket.jobs()).chain(page.iter().map(path::record));
            let paths = paths.collect::<Vec<_>>();
            // A lagging server might return the record of an earlier job with the same id.
            let read = |zk: &Zk| {
                let (synced, read) = (zk.sync(path::JOBS.to_owned()), zk.get_many(paths.clone()));
                async move {
                    synced.await?;
                    read.await
                }
            };
            let mut nodes = self.0.session.read(by, read).await?;
            let records = nodes.split_off(buckets.len());
            let removals = buckets.into_iter().zip(nodes);
            let removals = removals.map(|(bucket, node)| (bucket, node.map_or(0, |node| node.version)));
            let removals = removals.collect::<BTreeMap<_, _>>();
            let now = clock.at(self.0.session.now());
            let gone = page.iter().zip(&records).filter(|(job, node)| node.is_none() && sent.remove(job));
            done.note(gone.count());
            let mut found = Vec::new();
            for (job, node) in page.iter().zip(records) {
                match node.and_then(|node| matches(which, &node, now)) {
                    Some((version, false)) => found.push((job, version)),
                    Some((_, true)) if attempt == 0 => done.too_recent += 1,
                    Some((_, true)) | None => {}
                }
            }
            if !remove || found.is_empty() {
                done.matched += found.len() as u64;
                return Ok(());
            }
            let ops = removal(&found, &removals, self.change(ChangeKind::Removed).as_ref());
            match self.0.session.commit(by, ops).await? {
                Written::Applied => {
                    done.note(found.len());
                    return Ok(());
                }
                // A job was retried, or another process removed records of a bucket.
                Written::Rejected => {}
                Written::Unknown => sent.extend(found.into_iter().map(|(job, _)| job)),
            }
        }
        Err(Error::Contended { subject: Subject::Page, tries: TRIES })
    }
}

fn removal(found: &[(&JobId, i32)], removals: &BTreeMap<Bucket, i32>, change: Option<&Change>) -> Vec<Op> {
    let buckets = found.iter().map(|(job, _)| Bucket::of(job)).collect::<BTreeSet<_>>();
    // Every bucket of the page was read with its records.
    let counts =
        buckets.iter().filter_map(|bucket| Some(txn::count_removal(*bucket, *removals.get(bucket)?, change)));
    counts.chain(found.iter().map(|(job, version)| txn::remove_record(job, *version))).collect()
}

/// Returns the version of a record that is selected, and whether it ended within the last minute. `now` is by ZooKeeper's
/// clock.
fn matches(which: Selection<'_>, node: &Node, now: WallMillis) -> Option<(i32, bool)> {
    let record = wire::decode::<JobRecord>(&node.data).ok()?;
    let JobState::Terminal { verdict, at } = &record.state else { return None };
    // The job's group, or the group of its sub-jobs, may still read the record, and removes it later.
    if record.membership.is_some() || record.spawned {
        return None;
    }
    let ended = match verdict {
        Verdict::Succeeded(_) => Ended::Succeeded,
        Verdict::Cancelled => Ended::Cancelled,
        Verdict::Dead => Ended::Dead,
    };
    let ended_at = retention::ended(*at, node.modified, now);
    which
        .lets(ended, &record.kind, now.since(ended_at))
        .then(|| (node.version, now.since(node.modified) < MIN_RETENTION))
}

#[cfg(test)]
mod tests;
