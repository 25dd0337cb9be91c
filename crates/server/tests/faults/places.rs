//! The places of jobs at one point in time.

use std::collections::BTreeSet;

use bellwether::{JobId, WorkerId};
use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::job::JobRecord;
use bellwether_core::path::{self, Bucket};
use bellwether_core::ready::{ReadyEntry, Shard};
use bellwether_core::wire;
use bellwether_testkit::eventually;
use bellwether_zk::{Node, Zk};

use crate::stage::{SOON, Stage};

/// Returns the places of each job, read with one multi-read for as many jobs as fit into it. Returns `None` if a worker
/// joined or left, or a record changed, in the meantime: the read may have missed an inbox or a delayed entry.
pub(crate) async fn places(zk: &Zk, jobs: &[JobId]) -> Option<Vec<Vec<&'static str>>> {
    let workers = inboxes(zk).await;
    let per_job = 3 + workers.len();
    let mut places = Vec::new();
    for jobs in jobs.chunks(MAX_READ_BATCH / per_job) {
        let before = zk.get_many(jobs.iter().map(path::record).collect()).await.unwrap();
        let before = before.into_iter().map(Option::unwrap).collect::<Vec<_>>();
        let paths = jobs.iter().zip(&before).flat_map(|(job, before)| {
            let delay = record(before).delay().map(|delay| path::delayed_entry(delay, job));
            // For a job that is not delayed, a path that does not exist.
            let delayed = delay.unwrap_or_else(|| path::delayed_minute(0));
            let assigned = workers.iter().map(move |worker| path::assignment(*worker, job));
            let ready = path::ready_entry(&ReadyEntry::of_record(job, &record(before)));
            [path::record(job), ready, delayed].into_iter().chain(assigned)
        });
        let nodes = zk.get_many(paths.collect()).await.unwrap();
        for (of_job, before) in nodes.chunks(per_job).zip(before) {
            let now = of_job[0].as_ref().unwrap();
            if now.version != before.version {
                return None;
            }
            let held = |at: usize, name| of_job[at].is_some().then_some(name);
            let mut holders = Vec::from_iter(record(now).is_terminal().then_some("terminal"));
            holders.extend(held(1, "queue"));
            holders.extend(held(2, "delayed"));
            holders.extend((3..per_job).filter_map(|at| held(at, "inbox")));
            places.push(holders);
        }
    }
    (workers == inboxes(zk).await).then_some(places)
}

fn record(node: &Node) -> JobRecord {
    wire::decode(&node.data).unwrap()
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
