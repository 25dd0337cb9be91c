//! Shared by the models: names, a policy, a worker.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_core::backoff::Backoff;
use bellwether_core::change::Noted;
use bellwether_core::job::{Delay, Policy};
use bellwether_core::name::{JobId, Kind, NodeId, WorkerId};
use bellwether_core::path;
use bellwether_core::ready::{ReadyEntry, Waiting};
use bellwether_core::time::WallMillis;
use bellwether_core::worker::WorkerInfo;
use uuid::Uuid;

use crate::zookeeper::ZooKeeper;

/// The wall-clock time, where it does not matter.
pub(crate) const WALL: WallMillis = WallMillis(600_000);

/// A backoff that starts at [`WALL`] ends in this minute.
pub(crate) const MINUTE: u64 = 10;

pub(crate) fn worker(n: usize) -> WorkerId {
    WorkerId::new(Uuid::from_u128(n as u128 + 1))
}

pub(crate) fn kind() -> Kind {
    Kind::new("k").expect("a valid name")
}

/// Returns a worker of that kind.
pub(crate) fn info(slots: u32) -> WorkerInfo {
    WorkerInfo {
        node: NodeId::new("n").expect("a valid name"),
        host: "h".into(),
        kinds: vec![kind()],
        leases: BTreeMap::new(),
        slots,
        tags: vec![],
        codec: 1,
        started_at: WallMillis(0),
        former: vec![],
        owner: None,
        draining: false,
        settings: Noted::default(),
    }
}

/// Returns where the job waits out a backoff.
pub(crate) fn delayed(zk: &ZooKeeper, job: &JobId) -> Option<Delay> {
    let minute = path::delayed_minute(MINUTE);
    let mut entries = zk.names(&minute).filter_map(|(name, _)| path::parse_delayed(MINUTE, name));
    entries.find_map(|(delay, id)| (id == *job).then_some(delay))
}

/// Returns the entry of a job that is ready.
pub(crate) fn ready(zk: &ZooKeeper, job: &JobId) -> Option<ReadyEntry> {
    entries(zk).find(|entry| entry.job() == job)
}

/// Returns the entries of all jobs that are ready.
pub(crate) fn entries(zk: &ZooKeeper) -> impl Iterator<Item = ReadyEntry> {
    let below = zk.znodes.range(format!("{}/", path::READY)..).map(|(path, _)| path);
    let below = below.take_while(|path| path.starts_with(path::READY));
    below.filter_map(|path| match path::parse(path) {
        path::Place::Ready(entry) => Some(entry),
        _ => None,
    })
}

/// Reads an entry.
pub(crate) fn waiting(zk: &ZooKeeper, at: ReadyEntry) -> Option<Waiting> {
    let path = path::ready_entry(&at);
    zk.get(&path)?;
    let entry = at.plain().or_else(|| Some(zk.value(&path)?.0))?;
    Some(Waiting { at, entry })
}

/// Returns a policy with this many failures and losses, and a backoff that stays in [`MINUTE`].
pub(crate) fn policy(most: u32) -> Policy {
    let backoff = Backoff { initial: Duration::from_secs(1), max: Duration::from_secs(1) };
    Policy { max_attempts: most, max_losses: most, backoff, ..Policy::default() }
}
