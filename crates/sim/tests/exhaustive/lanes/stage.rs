//! The names, and two jobs of one lane that wait.

use std::collections::BTreeMap;

use std::sync::LazyLock;
use std::time::Duration;

use bellwether_core::backoff::Backoff;
use bellwether_core::job::{JobRecord, Payload, Placement, Policy};
use bellwether_core::name::{JobId, Kind, Lane, NodeId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Bucket};
use bellwether_core::time::WallMillis;
use bellwether_core::txn;
use bellwether_core::worker::WorkerInfo;
use uuid::Uuid;

use crate::zookeeper::ZooKeeper;

pub(crate) const WALL: WallMillis = WallMillis(600_000);

/// A backoff that begins at [`WALL`] ends in this minute.
pub(crate) const MINUTE: u64 = 10;

/// That of both leaders: no fence keeps them apart.
pub(crate) const EPOCH: i32 = 0;

pub(crate) const SESSION: i64 = 1;

pub(crate) const JOBS: usize = 3;

/// Where a job may stand. Spelt once: these are looked up in every state.
pub(crate) struct Paths {
    pub(crate) record: String,
    pub(crate) queued: String,
    pub(crate) delayed: String,
    pub(crate) assigned: String,
}

pub(crate) fn paths(n: usize) -> &'static Paths {
    static PATHS: LazyLock<[Paths; JOBS]> = LazyLock::new(|| {
        std::array::from_fn(job).map(|job| Paths {
            record: path::record(&job),
            queued: path::queue_entry(&job),
            delayed: path::delayed_entry(MINUTE, &job),
            assigned: path::assignment(worker(), &job),
        })
    });
    &PATHS[n]
}

pub(crate) fn job(n: usize) -> JobId {
    JobId::new(["b", "a", "c"][n]).expect("a name")
}

pub(crate) fn lane() -> Lane {
    Lane::new("l").expect("a name")
}

pub(crate) fn worker() -> WorkerId {
    WorkerId::new(Uuid::from_u128(1))
}

pub(crate) fn info() -> WorkerInfo {
    WorkerInfo {
        node: NodeId::new("n").expect("a name"),
        host: "h".into(),
        kinds: vec![Kind::new("k").expect("a name")],
        leases: BTreeMap::new(),
        // Room for all of them at once.
        slots: 8,
        tags: vec![],
        codec: 1,
        started_at: WallMillis(0),
        draining: false,
    }
}

pub(crate) fn record() -> JobRecord {
    let backoff = Backoff { initial: Duration::from_secs(1), max: Duration::from_secs(1) };
    JobRecord {
        policy: Policy { max_attempts: 2, max_losses: 2, backoff, ..Policy::default() },
        placement: Placement { lane: Some(lane()), ..Placement::default() },
        ..JobRecord::new(
            Kind::new("k").expect("a name"),
            Payload::json(*b"1").expect("small"),
            Uuid::nil(),
            WallMillis(0),
        )
    }
}

/// The two were submitted in one multi, and their names are in the other order.
pub(crate) fn zookeeper() -> ZooKeeper {
    let mut parents = path::PARENTS.map(str::to_owned).to_vec();
    parents.extend([path::EPOCH.to_owned(), path::delayed_minute(MINUTE)]);
    parents.extend([Bucket::of_lane(&lane()).lanes(), path::lane(&lane())]);
    parents.extend((0..JOBS).map(|n| Bucket::of(&job(n))).flat_map(|bucket| [bucket.jobs(), bucket.queue()]));
    let mut zk = ZooKeeper::with(parents);
    let jobs = [txn::submit(&job(0), &record(), 0), txn::submit(&job(1), &record(), 1)].concat();
    for ops in [txn::register(worker(), &info()), jobs] {
        assert_eq!(zk.commit(SESSION, &ops), Outcome::Applied(()), "{ops:?}");
    }
    zk
}
