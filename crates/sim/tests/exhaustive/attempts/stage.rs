//! The names and the first state of the job, its workers and its leaders.

use bellwether_core::backoff::Backoff;
use bellwether_core::job::{JobRecord, Payload, Policy};
use bellwether_core::name::{JobId, Kind, NodeId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Bucket};
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{self, Lifetime, Op};
use bellwether_core::worker::WorkerInfo;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;
use uuid::Uuid;

use crate::zookeeper::ZooKeeper;

pub(crate) const WALL: WallMillis = WallMillis(600_000);

/// Sessions: of clients and leaders, who own nothing here, and of the workers.
pub(crate) const NOBODY: i64 = 1;

/// A backoff that begins at [`WALL`] ends in this minute.
pub(crate) const MINUTE: u64 = 10;

pub(crate) fn session(worker: usize) -> i64 {
    10 + i64::try_from(worker).expect("few workers")
}

pub(crate) fn job() -> JobId {
    JobId::new("job").expect("a name")
}

pub(crate) fn worker(n: usize) -> WorkerId {
    WorkerId::new(Uuid::from_u128(n as u128 + 1))
}

fn info() -> WorkerInfo {
    WorkerInfo {
        node: NodeId::new("n").expect("a name"),
        host: "h".into(),
        kinds: vec![Kind::new("k").expect("a name")],
        leases: BTreeMap::new(),
        slots: 1,
        tags: vec![],
        codec: 1,
        started_at: WallMillis(0),
        draining: false,
    }
}

fn record(policy: Policy) -> JobRecord {
    JobRecord {
        policy,
        ..JobRecord::new(
            Kind::new("k").expect("a name"),
            Payload::json(*b"1").expect("small"),
            Uuid::nil(),
            WallMillis(0),
        )
    }
}

/// One job waits, the workers are registered, and nobody has claimed an epoch.
pub(crate) fn zookeeper(workers: usize) -> ZooKeeper {
    let job = job();
    let bucket = Bucket::of(&job);
    let parents = path::PARENTS.map(str::to_owned).into_iter();
    let own = [path::EPOCH.to_owned(), bucket.jobs(), bucket.queue(), path::delayed_minute(MINUTE)];
    let mut zk = ZooKeeper::with(parents.chain(own));
    let backoff = Backoff { initial: Duration::from_secs(1), max: Duration::from_secs(1) };
    let policy = Policy { max_attempts: 2, max_losses: 2, backoff, ..Policy::default() };
    let mut commit = |session, ops: Vec<Op>| {
        assert_eq!(zk.commit(session, &ops), Outcome::Applied(()), "{ops:?}");
    };
    commit(NOBODY, txn::submit(&job, &record(policy), 0));
    for n in 0..workers {
        commit(session(n), txn::register(worker(n), &info()));
    }
    for n in 0..2 {
        let lifetime = Lifetime::Persistent;
        commit(NOBODY, vec![Op::Create { path: candidate(n), data: Vec::new(), lifetime }]);
    }
    zk
}

/// Where the job stands while it waits out a backoff. Spelt once: it is looked up in every state.
pub(crate) static DELAYED: LazyLock<String> = LazyLock::new(|| path::delayed_entry(MINUTE, &job()));

/// A leader's candidate stands all the time: losing it is the election's matter.
pub(crate) fn candidate(leader: usize) -> String {
    path::candidate(&format!("{leader}"))
}
