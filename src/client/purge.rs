//! Removing records of ended jobs by hand, before their retention ends.
//!
//! Each record is removed at the version that was read. So a job that is retried concurrently is either kept, or
//! removed before the retry. Memory is bounded by the names in a few buckets and a page of records.

use std::time::Duration;

use bellwether_core::budget::{MAX_READ_BATCH, MIN_RETENTION};
use bellwether_core::group::End;
use bellwether_core::job::{JobRecord, JobState, Verdict};
use bellwether_core::name::{JobId, Kind};
use bellwether_core::path::{self, Bucket};
use bellwether_core::time::WallMillis;
use bellwether_core::txn;
use bellwether_core::wire;
use bellwether_zk::Node;

use super::Client;
use super::error::{Error, Subject};
use super::runtime::Zk;
use super::session::Written;

/// Buckets whose names are held in memory together: 8 full ones have 40,000 names.
const BUCKETS_AT_ONCE: usize = 8;

/// Limit of attempts for a page whose jobs change concurrently.
const TRIES: u32 = 16;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ended {
    /// It returned a result.
    Succeeded,
    /// A client cancelled it.
    Cancelled,
    /// It is dead: it reached the limit of failures or losses, expired, or could never succeed.
    #[default]
    Dead,
}

impl Ended {
    pub(super) fn of(end: End) -> Self {
        match end {
            End::Succeeded => Self::Succeeded,
            End::Cancelled => Self::Cancelled,
            End::Dead => Self::Dead,
        }
    }
}

/// Selects the records to purge. Default: those of dead jobs. Jobs that have not ended cannot be purged: cancel them
/// first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Purge {
    /// How the jobs ended.
    pub ended: Ended,
    /// Only jobs of this kind.
    pub kind: Option<Kind>,
    /// Only jobs that ended at least this long ago, by the clock of the process that ended them.
    pub older_than: Duration,
}

impl Purge {
    /// Selects the records of jobs that ended in this way.
    #[must_use]
    pub fn of(ended: Ended) -> Self {
        Self { ended, ..Self::default() }
    }

    /// Selects only jobs of this kind.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<Option<Kind>>) -> Self {
        self.kind = kind.into();
        self
    }

    /// Selects only jobs that ended at least this long ago, by the clock of the process that ended them. Default: all.
    #[must_use]
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = age;
        self
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
    pub young: u64,
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
    /// Removes the records of ended jobs. Their ids can be used again. Calls `progress` about every hundred records.
    ///
    /// A record that cannot be read is kept. The record of a job in a group is kept too: it is removed with its
    /// group.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each page;
    /// [`Error::Contended`] if records change repeatedly. The removals that `progress` reported last are done. Purging again is safe.
    ///
    /// # Cancellation
    /// A dropped call has removed what `progress` reported, and at most one more page.
    pub async fn purge(&self, purge: &Purge, progress: impl FnMut(Purged)) -> Result<Purged, Error> {
        self.walk(purge, true, progress).await
    }

    /// Like [`Client::purge`], but removes nothing.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each page.
    pub async fn would_purge(&self, purge: &Purge, progress: impl FnMut(Purged)) -> Result<Purged, Error> {
        self.walk(purge, false, progress).await
    }

    async fn walk(
        &self,
        purge: &Purge,
        remove: bool,
        mut progress: impl FnMut(Purged),
    ) -> Result<Purged, Error> {
        let mut done = Purged::default();
        let parents = Bucket::all().map(Bucket::jobs).collect::<Vec<_>>();
        for few in parents.chunks(BUCKETS_AT_ONCE) {
            let lists = self.0.session.read(self.by(), |zk| zk.children_many(few.to_vec())).await?;
            // Other znodes are ignored: their names are not job ids.
            let jobs = lists.into_iter().flatten().flatten().filter_map(|name| JobId::new(name).ok());
            let jobs = jobs.collect::<Vec<_>>();
            for page in jobs.chunks(MAX_READ_BATCH) {
                self.page(purge, remove, page, &mut done).await?;
                progress(done);
            }
            done.buckets += few.len();
            progress(done);
        }
        Ok(done)
    }

    async fn page(
        &self,
        purge: &Purge,
        remove: bool,
        page: &[JobId],
        done: &mut Purged,
    ) -> Result<(), Error> {
        // The jobs of a removal whose reply was lost.
        let mut sent = Vec::new();
        for attempt in 0..TRIES {
            let by = self.by();
            let paths = page.iter().map(path::record).collect::<Vec<_>>();
            // A lagging server might return the record of an earlier job with the same id.
            let read = |zk: &Zk| {
                let (synced, read) = (zk.sync(path::JOBS.to_owned()), zk.get_many(paths.clone()));
                async move {
                    synced.await?;
                    read.await
                }
            };
            let nodes = self.0.session.read(by, read).await?;
            let gone = page.iter().zip(&nodes).filter(|(job, node)| node.is_none() && sent.contains(job));
            done.note(gone.count());
            let mut found = Vec::new();
            for (job, node) in page.iter().zip(nodes) {
                match node.and_then(|node| matches(purge, &node, self.0.session.wall())) {
                    Some((version, false)) => found.push((job, version)),
                    Some((_, true)) if attempt == 0 => done.young += 1,
                    Some((_, true)) | None => {}
                }
            }
            if !remove || found.is_empty() {
                done.matched += found.len() as u64;
                return Ok(());
            }
            let ops = found.iter().map(|(job, version)| txn::remove_record(job, *version)).collect();
            match self.0.session.commit(by, ops).await? {
                Written::Applied => {
                    done.note(found.len());
                    return Ok(());
                }
                // A job was retried, or removed by another client: it is not selected again.
                Written::Rejected => sent.clear(),
                Written::Unknown => sent = found.into_iter().map(|(job, _)| job).collect(),
            }
        }
        Err(Error::Contended { subject: Subject::Page, tries: TRIES })
    }
}

/// Returns the version of a record that the purge selects, and whether it ended within the last minute.
fn matches(purge: &Purge, node: &Node, now: WallMillis) -> Option<(i32, bool)> {
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
    let is_meant = ended == purge.ended
        && purge.kind.as_ref().is_none_or(|kind| *kind == record.kind)
        && now.since(*at) >= purge.older_than;
    // By ZooKeeper's clock: the clock of the process that ended the job may be behind.
    is_meant.then(|| (node.version, now.since(node.modified) < MIN_RETENTION))
}
