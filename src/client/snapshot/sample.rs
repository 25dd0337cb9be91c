//! How many jobs of each kind there are.
//!
//! The class of a waiting job contains its kind, so waiting jobs are counted. The oldest one is searched among the first
//! [`SAMPLE_SIZE`] in the leader's order. Running jobs are sampled from many workers, because workers run different kinds. If
//! at most [`SAMPLE_SIZE`] jobs run, all are read and their numbers are exact.

use std::collections::BTreeMap;
use std::time::SystemTime;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::job::JobRecord;
use bellwether_core::name::{JobId, Kind};
use bellwether_core::path;
use bellwether_core::ready::{ClassName, ReadyEntry, RecordEntry, Slot};
use bellwether_core::segment::{MemberId, Segment, SegmentId};
use bellwether_core::time::WallMillis;
use bellwether_core::wire;
use bellwether_zk::ReadResult;
use futures::future::try_join_all;

use crate::client::cluster::Registered;
use crate::client::runtime::Zk;
use crate::client::segments::{is_job_or_segment, job_or_segment, jobs_of};

/// The size of the sample: the share of a kind with a tenth of the jobs is mostly accurate to two percentage points.
pub const SAMPLE_SIZE: usize = 200;

/// How many names of running jobs are listed, of which [`SAMPLE_SIZE`] are read: about 100 KiB.
const NAMES: usize = 2_000;

/// How many records are read in one request: each may hold 64 KiB of payload and 64 KiB of result.
const RECORDS: usize = 25;

/// No further records are read after this number of bytes.
const ENOUGH: usize = 256 * 1024;

/// How far the sample moves between snapshots; odd, so that it reaches every bucket.
const STRIDE: usize = 37;

/// The kinds in a sample of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KindSample {
    /// How many sampled jobs have each kind. All members of a sampled segment are sampled.
    pub seen: BTreeMap<Kind, usize>,
    /// How many jobs were sampled.
    pub sampled: usize,
    /// How many jobs there are.
    pub all: usize,
}

/// An estimated number of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Estimate {
    /// The number.
    pub count: usize,
    /// Whether all jobs were sampled.
    pub exact: bool,
}

/// The job that has waited longest for a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OldestQueued {
    /// Its id.
    pub id: JobId,
    /// Since when it could run: its submission, or the end of its delay.
    pub since: SystemTime,
    /// Whether all queued jobs were read. If not, it is the oldest of the most urgent jobs, and another may have waited longer.
    pub exact: bool,
}

impl KindSample {
    pub(super) fn unsampled(all: usize) -> Self {
        Self { all, ..Self::default() }
    }

    /// Estimates how many jobs have this kind; `None` if there are jobs but none was sampled.
    #[must_use]
    pub fn of(&self, kind: &Kind) -> Option<Estimate> {
        let seen = self.seen.get(kind).copied().unwrap_or_default();
        match (self.sampled, self.all) {
            (sampled, all) if sampled >= all => Some(Estimate { count: seen, exact: true }),
            (0, _) => None,
            (sampled, all) => Some(Estimate { count: (seen * all).div_ceil(sampled), exact: false }),
        }
    }

    fn count(&mut self, kind: Option<Kind>, jobs: usize) {
        self.sampled += jobs;
        if let Some(kind) = kind {
            *self.seen.entry(kind).or_default() += jobs;
        }
    }
}

/// Counts the jobs that wait for a worker, by kind, and finds the oldest of those that the leader assigns first. `counts` has
/// the number in each slot.
pub(super) async fn queued(
    zk: &Zk,
    counts: &[(ClassName, Slot, usize)],
) -> ReadResult<(KindSample, Option<OldestQueued>)> {
    let mut sample = KindSample::default();
    let mut filled = counts.iter().filter(|(_, _, size)| *size > 0).collect::<Vec<_>>();
    for (class, _, size) in &filled {
        sample.all += size;
        sample.sampled += size;
        *sample.seen.entry(class.kind()).or_default() += size;
    }
    filled.sort_unstable_by_key(|(_, slot, _)| *slot);
    let first = enough(filled.into_iter().take(MAX_READ_BATCH), |(_, _, size)| *size, SAMPLE_SIZE);
    if first.is_empty() {
        return Ok((sample, None));
    }
    let lists =
        zk.children_many(first.iter().map(|(class, slot, _)| path::ready_slot(class, *slot)).collect());
    let mut oldest: Option<(WallMillis, JobId)> = None;
    let mut seen = 0;
    for ((class, slot, _), names) in first.iter().zip(lists.await?) {
        let names = names.into_iter().flatten().filter_map(|name| name.parse::<RecordEntry>().ok());
        for name in names.filter(|name| is_job_or_segment(&name.job)) {
            seen += jobs_of(&name.job);
            let at = ReadyEntry { class: class.clone(), slot: *slot, name };
            let since = at.waits_since();
            if oldest.as_ref().is_none_or(|(oldest, _)| since < *oldest) {
                oldest = Some((since, at.name.job));
            }
        }
    }
    let exact = seen >= sample.all;
    // The members of a segment have waited for the same time.
    let first = |id| SegmentId::of_job(&id).map_or(id, |segment| MemberId { segment, number: 0 }.job());
    let oldest = oldest.map(|(since, id)| (since, first(id)));
    let oldest = oldest.map(|(since, id)| OldestQueued { id, since: since.into(), exact });
    Ok((sample, oldest))
}

/// Samples the jobs on live workers. An assignment does not contain the kind, so the records are read.
pub(super) async fn running(zk: &Zk, workers: &[Registered], turn: usize) -> ReadResult<KindSample> {
    let first = turn.wrapping_mul(STRIDE) % workers.len().max(1);
    let busy = workers.iter().cycle().skip(first).take(workers.len()).filter(|worker| worker.assigned > 0);
    let inboxes =
        enough(busy, |worker| worker.assigned, NAMES).into_iter().map(|worker| path::inbox(worker.id));
    let ids = names(zk, inboxes).await?;
    let few = ids.iter().step_by(ids.len().div_ceil(SAMPLE_SIZE).max(1)).collect::<Vec<_>>();
    let mut sample = KindSample::unsampled(workers.iter().map(|worker| worker.assigned).sum());
    let mut bytes = 0;
    for few in few.chunks(RECORDS) {
        // The path of a segment is that of the record of its id.
        let nodes = zk.get_many(few.iter().map(|id| path::record(id)).collect()).await?;
        for (id, node) in few.iter().zip(nodes) {
            let Some(node) = node else { continue };
            bytes += node.data.len();
            let kind = match SegmentId::of_job(id) {
                Some(_) => wire::decode::<Segment>(&node.data).ok().map(|segment| segment.head.kind),
                None => wire::decode::<JobRecord>(&node.data).ok().map(|record| record.kind),
            };
            sample.count(kind, jobs_of(id));
        }
        if bytes >= ENOUGH {
            break;
        }
    }
    Ok(sample)
}

/// Returns the first parents that together have at least `most` children. Each parent has at least one child.
fn enough<T>(parents: impl Iterator<Item = T>, size: impl Fn(&T) -> usize, most: usize) -> Vec<T> {
    let mut so_far = 0;
    let mut taken = Vec::new();
    for parent in parents.take(SAMPLE_SIZE) {
        if so_far >= most {
            break;
        }
        so_far += size(&parent);
        taken.push(parent);
    }
    taken
}

async fn names(zk: &Zk, parents: impl Iterator<Item = String>) -> ReadResult<Vec<JobId>> {
    let parents = parents.collect::<Vec<_>>();
    let lists = parents.chunks(MAX_READ_BATCH).map(|parents| zk.children_many(parents.to_vec()));
    let lists = try_join_all(lists).await?.into_iter().flatten().flatten();
    Ok(lists.flatten().filter_map(|name| job_or_segment(&name)).collect())
}

#[cfg(test)]
mod tests;
