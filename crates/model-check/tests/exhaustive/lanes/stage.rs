//! Names, and two waiting jobs of one lane.

use std::sync::LazyLock;

use bellwether_core::job::{JobRecord, Payload, Placement};
use bellwether_core::name::{JobId, Lane, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Bucket, SubBucket};
use bellwether_core::ready::Shard;
use bellwether_core::time::WallMillis;
use bellwether_core::txn;
use bellwether_core::worker::WorkerInfo;
use uuid::Uuid;

use crate::fixture;
pub(crate) use crate::fixture::{MINUTE, WALL, delayed, ready};
use crate::zookeeper::ZooKeeper;

/// The epoch of both leaders, so that no fence keeps them apart.
pub(crate) const EPOCH: i32 = 0;

pub(crate) const SESSION: i64 = 1;

pub(crate) const JOBS: usize = 3;

/// The possible paths of a job. Computed once, because every state looks them up.
pub(crate) struct Paths {
    pub(crate) record: String,
    pub(crate) assigned: String,
}

pub(crate) fn paths(n: usize) -> &'static Paths {
    static PATHS: LazyLock<[Paths; JOBS]> = LazyLock::new(|| {
        std::array::from_fn(job)
            .map(|job| Paths { record: path::record(&job), assigned: path::assignment(worker(), &job) })
    });
    &PATHS[n]
}

pub(crate) fn job(n: usize) -> JobId {
    JobId::new(["b", "a", "c"][n]).expect("a valid name")
}

pub(crate) fn lane() -> Lane {
    Lane::new("l").expect("a valid name")
}

pub(crate) fn worker() -> WorkerId {
    fixture::worker(0)
}

/// Returns a worker with room for all jobs at the same time.
pub(crate) fn info() -> WorkerInfo {
    fixture::info(8)
}

pub(crate) fn record() -> JobRecord {
    let payload = Payload::json(*b"1").expect("small");
    let record = JobRecord::new(fixture::kind(), payload, Uuid::nil(), WallMillis(0));
    let placement = Placement { lane: Some(lane()), ..Placement::default() };
    JobRecord { policy: fixture::policy(2), placement, ..record }
}

/// Creates the initial state: two jobs were submitted in one multi, and the order of their names is reversed.
pub(crate) fn zookeeper() -> ZooKeeper {
    let mut parents = path::PARENTS.map(str::to_owned).to_vec();
    parents.extend([path::EPOCH.to_owned(), path::delayed_minute(MINUTE)]);
    parents.extend([Bucket::of_lane(&lane()).lanes(), path::lane(&lane())]);
    parents.extend((0..JOBS).map(|n| SubBucket::of(&job(n))).map(SubBucket::path));
    parents.extend(Shard::all().map(path::ready_shard));
    let mut zk = ZooKeeper::with(parents);
    let jobs = [txn::submit(&job(0), &record(), 0), txn::submit(&job(1), &record(), 1)].concat();
    for ops in [txn::register(worker(), &info()), jobs] {
        assert_eq!(zk.commit(SESSION, &ops), Outcome::Applied(()), "{ops:?}");
    }
    zk
}
