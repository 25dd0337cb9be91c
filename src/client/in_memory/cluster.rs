//! The leader and the workers, played by the test one transaction at a time.

use std::collections::BTreeMap;

use bellwether_core::change::Noted;
use bellwether_core::job::{Assignment, Attempt, Ending, JobRecord, Payload};
use bellwether_core::name::{JobId, Kind, NodeId, Tag, WorkerId};
use bellwether_core::path;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::txn;
use bellwether_core::wire::{self, SCHEMA};
use bellwether_core::worker::{EpochRecord, WorkerInfo};
use uuid::Uuid;

use super::World;
use super::tree::SESSION;

pub(in crate::client) fn id(id: impl AsRef<str>) -> JobId {
    JobId::new(id).unwrap()
}

pub(in crate::client) fn kind(kind: &str) -> Kind {
    Kind::new(kind).unwrap()
}

impl World {
    /// Returns a registration with a handler for each of these kinds.
    pub(in crate::client) fn registration(kinds: &[&str], slots: u32, tags: &[&str]) -> WorkerInfo {
        WorkerInfo {
            node: NodeId::new("by-hand").unwrap(),
            host: "here".into(),
            kinds: kinds.iter().map(|name| kind(name)).collect(),
            leases: BTreeMap::new(),
            slots,
            tags: tags.iter().map(|tag| Tag::new(tag).unwrap()).collect(),
            codec: SCHEMA,
            started_at: super::BEGINNING,
            former: vec![],
            owner: None,
            draining: false,
            settings: Noted::default(),
        }
    }

    pub(in crate::client) fn worker(&self, number: u128, info: &WorkerInfo) -> WorkerId {
        let worker = WorkerId::new(Uuid::from_u128(1 << 100 | number));
        self.apply(&txn::register(worker, info));
        worker
    }

    pub(in crate::client) fn record(&self, job: &JobId) -> JobRecord {
        self.tree().decoded(&path::record(job))
    }

    pub(in crate::client) fn assign(&self, job: &JobId, worker: WorkerId) {
        let record = self.record(job);
        let assignment = Assignment::new(record.attempts + 1, 0, self.wall());
        let entry = ReadyEntry::of_record(job, &record);
        self.apply(&txn::assign(&entry, worker, &assignment, record.turn().as_ref()));
    }

    pub(in crate::client) fn close(&self, job: &JobId, worker: WorkerId, ending: Ending) {
        let version = self.tree().get(&path::record(job)).unwrap().version;
        let record = self.record(job);
        let attempt = Attempt { number: record.attempts + 1, worker };
        let assignment: Assignment = self.tree().decoded(&path::assignment(worker, job));
        let (record, next) = record.carry(&assignment).close(attempt, ending, self.wall(), 0);
        self.apply(&txn::close(job, worker, version, None, &record, &next));
    }

    pub(in crate::client) fn succeed(&self, job: &JobId, worker: WorkerId, result: &str) {
        self.assign(job, worker);
        self.close(job, worker, Ending::Succeeded(Payload::json(result.as_bytes()).unwrap()));
    }

    /// A leader claims the epoch.
    pub(in crate::client) fn lead(&self) {
        let (node, token) = (NodeId::new("by-hand").unwrap(), Uuid::nil());
        let epoch = EpochRecord { node, session: SESSION, token, since: self.wall() };
        let mut tree = self.tree();
        tree.put(path::EPOCH, wire::encode(&epoch));
        tree.put(path::LEADER, Vec::new());
        tree.stat(path::LEADER, |node| node.owner = SESSION);
    }
}
