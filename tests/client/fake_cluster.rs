//! Plays the leader and the workers, one transaction at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether::{Client, JobId, Kind, WorkerId};
use bellwether_core::change::Noted;
use bellwether_core::job::{Assignment, Attempt, Ending, JobRecord, Payload};
use bellwether_core::name::{NodeId, Tag};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::ready::{ReadyEntry, Shard};
use bellwether_core::txn::{self, Op};
use bellwether_core::wire::{SCHEMA, decode, encode};
use bellwether_core::worker::{EpochRecord, WorkerInfo};
use bellwether_host::clock;
use bellwether_zk::{Node, Zk, connect};
use uuid::Uuid;

pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A ZooKeeper session of the test in the namespace of a client.
pub(crate) struct FakeCluster {
    pub(crate) zk: Zk,
}

pub(crate) async fn client(to: &str) -> Client {
    Client::connect(to).await.unwrap()
}

pub(crate) fn id(id: &str) -> JobId {
    JobId::new(id).unwrap()
}

impl FakeCluster {
    pub(crate) async fn new(to: &str) -> Self {
        Self { zk: connect(&to.parse().unwrap(), Duration::from_secs(10)).await.unwrap() }
    }

    pub(crate) async fn apply(&self, ops: Vec<Op>) {
        assert_eq!(self.zk.commit(ops).await, Outcome::Applied(()));
    }

    pub(crate) async fn read(&self, path: String) -> Node {
        self.zk.get(path).await.unwrap().expect("the znode exists")
    }

    pub(crate) async fn record(&self, job: &JobId) -> (JobRecord, i32) {
        let node = self.read(path::record(job)).await;
        (decode(&node.data).unwrap(), node.version)
    }

    /// The path of the entry of a job that is ready.
    pub(crate) async fn entry(&self, job: &JobId) -> String {
        path::ready_entry(&ReadyEntry::of_record(job, &self.record(job).await.0))
    }

    /// The jobs that are ready.
    pub(crate) async fn ready(&self) -> Vec<JobId> {
        let mut paths = Shard::all().map(path::ready_shard).collect::<Vec<_>>();
        for _ in 0..3 {
            let mut below = Vec::new();
            for parent in paths {
                let names = self.zk.children(parent.clone()).await.unwrap().unwrap_or_default();
                below.extend(names.into_iter().map(|name| format!("{parent}/{name}")));
            }
            paths = below;
        }
        let job = |path: String| match path::parse(&path) {
            path::Place::Ready(entry) => entry.name.job,
            other => panic!("{path} is {other:?}"),
        };
        paths.into_iter().map(job).collect()
    }

    pub(crate) async fn overwrite(&self, path: String, data: Vec<u8>) {
        let version = self.read(path.clone()).await.version;
        self.apply(vec![Op::Set { path, data, version }]).await;
    }

    pub(crate) async fn worker(&self, kinds: &[&str], slots: u32, tags: &[&str]) -> WorkerId {
        let id = WorkerId::new(Uuid::now_v7());
        let info = WorkerInfo {
            node: NodeId::new("by-hand").unwrap(),
            host: "here".into(),
            kinds: kinds.iter().map(|kind| Kind::new(kind).unwrap()).collect(),
            leases: BTreeMap::new(),
            slots,
            tags: tags.iter().map(|tag| Tag::new(tag).unwrap()).collect(),
            codec: SCHEMA,
            started_at: clock::local(),
            former: vec![],
            owner: None,
            draining: false,
            settings: Noted::default(),
        };
        self.apply(txn::register(id, &info)).await;
        id
    }

    /// Claims the epoch for this session, which is also a candidate.
    pub(crate) async fn lead(&self) {
        let candidate = format!("{}/{}-n-", path::ELECTION, Uuid::now_v7());
        assert!(matches!(self.zk.create_sequential(candidate, Vec::new()).await, Outcome::Applied(_)));
        let epoch = EpochRecord {
            node: NodeId::new("by-hand").unwrap(),
            session: self.zk.session_id(),
            token: Uuid::now_v7(),
            since: clock::local(),
        };
        self.overwrite(path::EPOCH.into(), encode(&epoch)).await;
    }

    pub(crate) async fn assign(&self, job: &JobId, worker: WorkerId) {
        let (record, _) = self.record(job).await;
        let attempt = record.attempts + 1;
        let isolation = record.isolation();
        let assignment = Assignment { isolation, ..Assignment::new(attempt, 0, clock::local()) };
        let entry = ReadyEntry::of_record(job, &record);
        self.apply(txn::assign(&entry, worker, &assignment, record.turn().as_ref())).await;
    }

    pub(crate) async fn close(&self, job: &JobId, worker: WorkerId, ending: Ending) {
        let (record, version) = self.record(job).await;
        let attempt = Attempt { number: record.attempts + 1, worker };
        let (record, next) = record.close(attempt, ending, clock::local(), 0);
        self.apply(txn::close(job, worker, version, None, &record, &next)).await;
    }

    /// Loses an attempt with its worker and ends the backoff.
    pub(crate) async fn lose(&self, job: &JobId, worker: WorkerId) {
        self.assign(job, worker).await;
        self.close(job, worker, Ending::Lost).await;
        let (record, version) = self.record(job).await;
        let delay = record.delay().expect("a loss backs off");
        self.apply(txn::promote(job, delay, &record.entry(version))).await;
    }

    /// Quarantines a job, as a worker or the leader does with bytes that it cannot read.
    pub(crate) async fn set_aside(&self, job: &JobId, worker: WorkerId) {
        self.apply(txn::quarantine(job, worker, "assignment unreadable")).await;
    }

    /// Creates a note about a job that is not quarantined, as an operator might.
    pub(crate) async fn note(&self, job: &JobId) {
        let (path, data) = (path::quarantine(job), b"by hand".to_vec());
        self.apply(vec![Op::Create { path, data, lifetime: txn::Lifetime::Persistent }]).await;
    }

    pub(crate) async fn succeed(&self, job: &JobId, worker: WorkerId, result: &str) {
        self.assign(job, worker).await;
        self.close(job, worker, Ending::Succeeded(Payload::json(result.as_bytes()).unwrap())).await;
    }
}
