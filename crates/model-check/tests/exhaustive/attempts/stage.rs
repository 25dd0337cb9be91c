//! Names, and the initial state of the job, its workers and its leaders.

use std::sync::LazyLock;

use bellwether_core::job::{JobRecord, Payload};
use bellwether_core::name::JobId;
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Bucket, SubBucket};
use bellwether_core::ready::ReadyEntry;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{self, Lifetime, Op};
use bellwether_core::worker::WorkerInfo;
use uuid::Uuid;

use crate::fixture;
pub(crate) use crate::fixture::{MINUTE, WALL, delayed, worker};
use crate::zookeeper::ZooKeeper;

/// Just after the expiry.
pub(crate) const EXPIRED: WallMillis = WallMillis(WALL.0 + 1);

/// Sessions of clients and leaders, which own no znodes here, and of the workers.
pub(crate) const NOBODY: i64 = 1;

pub(crate) fn session(worker: usize) -> i64 {
    10 + i64::try_from(worker).expect("there are few workers")
}

pub(crate) const JOB: &str = "job";

pub(crate) fn job() -> JobId {
    JobId::new(JOB).expect("a valid name")
}

/// Returns the job, as submitted by the owner of this token.
pub(crate) fn record(token: u128) -> JobRecord {
    let payload = Payload::json(*b"1").expect("small");
    let record = JobRecord::new(fixture::kind(), payload, Uuid::from_u128(token), WallMillis(0));
    JobRecord { policy: fixture::policy(2), ..record }
}

/// Creates the initial state: the workers are registered, and no epoch is claimed.
pub(crate) fn zookeeper(workers: usize) -> ZooKeeper {
    let job = job();
    let bucket = Bucket::of(&job);
    let parents = path::PARENTS.map(str::to_owned).into_iter();
    let own = [
        path::EPOCH.to_owned(),
        path::LEADING.to_owned(),
        bucket.jobs(),
        SubBucket::of(&job).path(),
        path::ready_shard(ReadyEntry::of_record(&job, &record(0)).class.shard()),
        path::delayed_minute(MINUTE),
    ];
    let mut zk = ZooKeeper::with(parents.chain(own));
    let mut commit = |session, ops: Vec<Op>| {
        assert_eq!(zk.commit(session, &ops), Outcome::Applied(()), "{ops:?}");
    };
    for n in 0..workers {
        commit(session(n), txn::register(worker(n), &fixture::info(1)));
    }
    for n in 0..2 {
        let lifetime = Lifetime::Persistent;
        commit(NOBODY, vec![Op::Create { path: candidate(n), data: Vec::new(), lifetime }]);
    }
    zk
}

/// Returns whether the first worker's registration is marked as draining.
pub(crate) fn drains(zk: &ZooKeeper) -> bool {
    zk.value::<WorkerInfo>(&FIRST).is_some_and(|(info, _)| info.draining)
}

static FIRST: LazyLock<String> = LazyLock::new(|| path::worker(worker(0)));

pub(crate) static RECORD: LazyLock<String> = LazyLock::new(|| path::record(&job()));

/// A leader's candidate always exists; losing it is covered by the election model.
pub(crate) fn candidate(leader: usize) -> String {
    path::candidate(&format!("{leader}"))
}
