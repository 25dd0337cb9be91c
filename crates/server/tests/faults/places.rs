//! The places of jobs at one point in time.

use std::collections::BTreeSet;

use bellwether::{JobId, WorkerId};
use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::job::JobRecord;
use bellwether_core::path::{self, Bucket};
use bellwether_core::ready::{ReadyEntry, Shard};
use bellwether_core::segment::{ChunkEnd, Chunks, MemberId, Segment, SegmentId};
use bellwether_core::wire;
use bellwether_testkit::eventually;
use bellwether_zk::{Node, Zk};

use crate::stage::{SOON, Stage};

/// Returns the places of each job, read with one multi-read for as many jobs as fit into it. Returns `None` if a worker
/// joined or left, or a record or a segment changed, in the meantime: the read may have missed an inbox or a delayed entry.
pub(crate) async fn places(zk: &Zk, jobs: &[JobId]) -> Option<Vec<Vec<&'static str>>> {
    let workers = inboxes(zk).await;
    let per_job = 3 + workers.len();
    let mut places = Vec::new();
    for jobs in jobs.chunks(MAX_READ_BATCH / per_job) {
        let before = stored(zk, jobs).await?;
        let paths = jobs.iter().zip(&before).flat_map(|(job, before)| {
            let (waits, ready, delay) = match before {
                Stored::Record { record, .. } => {
                    (job.clone(), ReadyEntry::of_record(job, record), record.delay())
                }
                Stored::Segment { id, segment, .. } => (id.job(), segment.waits_at(*id), None),
            };
            // For a job that is not delayed, a path that does not exist.
            let delayed =
                delay.map_or_else(|| path::delayed_minute(0), |delay| path::delayed_entry(delay, job));
            let assigned = workers.iter().map(|worker| path::assignment(*worker, &waits)).collect::<Vec<_>>();
            [path::record(job), path::ready_entry(&ready), delayed].into_iter().chain(assigned)
        });
        let nodes = zk.get_many(paths.collect()).await.unwrap();
        if stored(zk, jobs).await? != before {
            return None;
        }
        for (of_job, before) in nodes.chunks(per_job).zip(before) {
            let held = |at: usize, name| of_job[at].is_some().then_some(name);
            let open = [held(1, "queue"), held(2, "delayed")].into_iter();
            let open = open.chain((3..per_job).map(|at| held(at, "inbox"))).flatten();
            places.push(match before {
                // The segment may still have other members that wait.
                Stored::Segment { ended: true, .. } => vec!["terminal"],
                Stored::Record { record, .. } if record.is_terminal() => {
                    ["terminal"].into_iter().chain(open).collect()
                }
                Stored::Segment { .. } | Stored::Record { .. } => open.collect(),
            });
        }
    }
    (workers == inboxes(zk).await).then_some(places)
}

/// Where a job's data is.
#[derive(Debug, PartialEq)]
enum Stored {
    Record { record: Box<JobRecord>, version: i32 },
    Segment { id: SegmentId, segment: Box<Segment>, ended: bool },
}

/// Returns where each job is stored; `None` if a member was extracted between two of the reads.
async fn stored(zk: &Zk, jobs: &[JobId]) -> Option<Vec<Stored>> {
    let mut stored = Vec::new();
    for (job, node) in jobs.iter().zip(zk.get_many(jobs.iter().map(path::record).collect()).await.unwrap()) {
        if let Some(Node { data, version, .. }) = node {
            stored.push(Stored::Record { record: Box::new(wire::decode(&data).unwrap()), version });
            continue;
        }
        let MemberId { segment: id, number } =
            MemberId::of_job(job).expect("a job without a record is a member");
        let names = zk.children(path::segment(id)).await.unwrap().unwrap();
        let chunk = Chunks::of_names(names.iter().map(String::as_str)).of(number);
        if chunk.is_some_and(|chunk| chunk.end == ChunkEnd::Extracted) {
            return None;
        }
        let segment = zk.get(path::segment(id)).await.unwrap().unwrap();
        stored.push(Stored::Segment {
            id,
            segment: Box::new(wire::decode(&segment.data).unwrap()),
            ended: chunk.is_some(),
        });
    }
    Some(stored)
}

async fn inboxes(zk: &Zk) -> BTreeSet<WorkerId> {
    let names = zk.children(path::ASSIGNMENTS.into()).await.unwrap().unwrap();
    names.iter().filter_map(|name| WorkerId::parse(name)).collect()
}

impl Stage {
    /// Waits until finished jobs have left no znodes: no entries, no turns in lanes, and as many inboxes as live
    /// workers.
    pub(crate) async fn settled(&self, workers: usize) {
        eventually("every place is empty", SOON, async || {
            let mut parents = slots(&self.zk).await;
            let inboxes = inboxes(&self.zk).await;
            parents.extend(inboxes.iter().map(|worker| path::inbox(*worker)));
            let minutes = self.zk.children(path::DELAYED.into()).await.unwrap().unwrap();
            parents
                .extend(minutes.iter().filter_map(|minute| Some(path::delayed_minute(minute.parse().ok()?))));
            let lanes = Bucket::all().map(Bucket::lanes).collect::<Vec<_>>();
            for buckets in lanes.chunks(MAX_READ_BATCH) {
                let lists = self.zk.children_many(buckets.to_vec()).await.unwrap();
                let lanes = buckets.iter().zip(lists).flat_map(|(bucket, lanes)| {
                    lanes.into_iter().flatten().map(move |lane| format!("{bucket}/{lane}"))
                });
                parents.extend(lanes);
            }
            let mut left = 0;
            for parents in parents.chunks(MAX_READ_BATCH) {
                let lists = self.zk.children_many(parents.to_vec()).await.unwrap();
                left += lists.into_iter().flatten().flatten().count();
            }
            left == 0 && inboxes.len() == workers
        })
        .await;
    }
}

/// The slots of all classes.
async fn slots(zk: &Zk) -> Vec<String> {
    let mut paths = Shard::all().map(path::ready_shard).collect::<Vec<_>>();
    for _ in 0..2 {
        let lists = zk.children_many(paths.clone()).await.unwrap();
        let below = paths.iter().zip(lists).flat_map(|(parent, names)| {
            names.unwrap_or_default().into_iter().map(move |name| format!("{parent}/{name}"))
        });
        paths = below.collect();
    }
    paths
}
