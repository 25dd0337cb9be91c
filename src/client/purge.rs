//! Removing records of jobs that are over, by hand and before their retention ends.
//!
//! Each is removed at the version that was read. So a job that is retried at the same moment stays, or is gone before it
//! could be retried. Memory is bounded by the names of a few buckets and a page of records.

use std::time::Duration;

use bellwether_core::budget::{MAX_READ_BATCH, MIN_RETENTION};
use bellwether_core::job::{JobRecord, JobState, Verdict};
use bellwether_core::name::{JobId, Kind};
use bellwether_core::path::{self, Bucket};
use bellwether_core::time::WallMillis;
use bellwether_core::txn;
use bellwether_core::wire;
use bellwether_zk::Node;

use super::Client;
use super::error::Error;
use super::link::Written;
use super::runtime::Zk;

/// Buckets whose names are held at once: 8 full ones are 40,000 names.
const BUCKETS_AT_ONCE: usize = 8;

/// How often a page whose jobs change under our hands is tried.
const TRIES: u32 = 16;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ended {
    /// With a result.
    Succeeded,
    /// By a client's wish.
    Cancelled,
    /// By its failures or its workers' losses.
    #[default]
    Dead,
}

/// Which records to purge. By default those of dead jobs. Jobs that are not over cannot be purged: cancel them first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purge {
    /// How they ended.
    pub ended: Ended,
    /// Only those of this kind.
    pub kind: Option<Kind>,
    /// Only those that ended so long ago, by the clock of whoever ended them.
    pub older_than: Duration,
}

/// What a purge has done, so far or in the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    /// How much of the namespace was gone through, of 256.
    pub buckets: usize,
    /// Records that the purge is about.
    pub matched: u64,
    /// How many of them were removed.
    pub removed: u64,
    /// Records that it would be about, and that ended within the last minute: those stay, because a client that lost the
    /// reply to its submission may look for them yet.
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
    /// Removes the records of jobs that are over. Their ids are free again. Calls `progress` for every hundred records or so.
    ///
    /// A record that cannot be read stays, and so does that of a job of a group: it goes with its group.
    ///
    /// # Errors
    /// When ZooKeeper does not answer within the client's deadline, which is for each page; [`Error::Busy`] when
    /// records change again and again. What `progress` told last is done. Purging again is safe.
    ///
    /// # Cancellation
    /// A dropped call has removed what `progress` told, and at most a page more.
    pub async fn purge(&self, purge: &Purge, progress: impl FnMut(Purged)) -> Result<Purged, Error> {
        self.walk(purge, true, progress).await
    }

    /// As [`Client::purge`], and removes nothing.
    ///
    /// # Errors
    /// When ZooKeeper does not answer within the client's deadline, which is for each page.
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
            let lists = self.0.link.read(self.by(), |zk| zk.children_many(few.to_vec())).await?;
            // A name that is not an id is not a job's.
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
        // Those that a removal whose reply was lost was about.
        let mut sent = Vec::new();
        for attempt in 0..TRIES {
            let by = self.by();
            let paths = page.iter().map(path::record).collect::<Vec<_>>();
            // A server that lags might show a record of an earlier job of its id.
            let read = |zk: &Zk| {
                let (synced, read) = (zk.sync(path::JOBS.to_owned()), zk.get_many(paths.clone()));
                async move {
                    synced.await?;
                    read.await
                }
            };
            let nodes = self.0.link.read(by, read).await?;
            let gone = page.iter().zip(&nodes).filter(|(job, node)| node.is_none() && sent.contains(job));
            done.note(gone.count());
            let mut found = Vec::new();
            for (job, node) in page.iter().zip(nodes) {
                match node.and_then(|node| matches(purge, &node, self.0.link.wall())) {
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
            match self.0.link.commit(by, ops).await? {
                Written::Applied => {
                    done.note(found.len());
                    return Ok(());
                }
                // One was retried, or removed by another: it is not found again.
                Written::Lost => sent.clear(),
                Written::Unknown => sent = found.into_iter().map(|(job, _)| job).collect(),
            }
        }
        Err(Error::Busy { what: "a page of records", tries: TRIES })
    }
}

/// The version of a record that the purge is about, and whether it ended just now.
fn matches(purge: &Purge, node: &Node, now: WallMillis) -> Option<(i32, bool)> {
    let record = wire::decode::<JobRecord>(&node.data).ok()?;
    let JobState::Terminal { verdict, at } = &record.state else { return None };
    // Its group, or that of its sub-jobs, may yet read it, and goes with all of them.
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
    // By ZooKeeper's clock: that of whoever ended it may be behind.
    is_meant.then(|| (node.version, now.since(node.modified) < MIN_RETENTION))
}
