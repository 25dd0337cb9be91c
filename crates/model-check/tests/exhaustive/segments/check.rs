//! What must hold after each transaction.

use bellwether_core::job::{Assignment, JobRecord};
use bellwether_core::path;
use bellwether_core::segment::{ChunkEnd, Members};
use bellwether_sim::history::segments;

use super::model::Invariant;
use super::requests::{Request, SESSION, Stage, WORKERS};
use crate::fixture::{delayed, ready, worker};
use crate::zookeeper::{Znode, ZooKeeper};

/// The namespace in which each member was submitted alone.
fn written_out(zk: &ZooKeeper) -> ZooKeeper {
    let mut alone = zk.clone();
    let mut packed = segments::Segments::default();
    alone.znodes.retain(|path, znode| {
        packed.put(path, Some(&znode.data));
        segments::Segments::of(path).is_none()
    });
    for (path, data) in packed.ids().flat_map(|id| packed.written_out(id)) {
        alone.znodes.insert(path, Znode { data, version: 0, owner: 0, created: 0 });
    }
    alone
}

/// Returns the invariant that a transaction broke. `forgotten` are the members whose record was removed.
pub(super) fn broken(
    stage: &Stage,
    before: &ZooKeeper,
    request: &Request,
    after: &ZooKeeper,
    forgotten: Members,
) -> Option<Invariant> {
    let stale = request.epoch().is_some_and(|epoch| Some(epoch) != before.get(path::EPOCH).map(|(_, at)| at));
    let alone = written_out(after);
    let expected = written_out(before).after(SESSION, &request.alone);
    if stale {
        Some(Invariant::Fence)
    } else if !expected.is_ok_and(|expected| are_equal(&expected, &alone)) {
        Some(Invariant::Refines)
    } else {
        places(stage, after, &alone, forgotten)
    }
}

/// Whether both have the same znodes. The version of the record of an ended job may differ: a member that is extracted after
/// its end was not written before.
fn are_equal(one: &ZooKeeper, other: &ZooKeeper) -> bool {
    let has_ended = |path: &str| one.value::<JobRecord>(path).is_some_and(|(record, _)| record.is_terminal());
    let same = |(at, left): (&String, &Znode)| {
        let right = other.znodes.get(at);
        let same_version = |right: &Znode| left.version == right.version;
        right.is_some_and(|right| {
            left.data == right.data && (same_version(right) || has_record(at) && has_ended(at))
        })
    };
    one.znodes.len() == other.znodes.len() && one.znodes.iter().all(same)
}

/// Whether it is the path of a member's record.
fn has_record(at: &str) -> bool {
    at.starts_with(path::JOBS) && at.contains('@')
}

fn places(stage: &Stage, zk: &ZooKeeper, alone: &ZooKeeper, forgotten: Members) -> Option<Invariant> {
    let chunks = stage.chunks(zk);
    let times = |end, number| {
        chunks.names().iter().filter(|name| name.end == end && name.members.contains(number)).count()
    };
    let exists = zk.get(&path::segment(stage.id)).is_some();
    for number in stage.id.members().iter() {
        let job = stage.job(number);
        let record = alone.value::<JobRecord>(&path::record(&job)).map(|(record, _)| record);
        let inboxes =
            (0..WORKERS).filter_map(|n| alone.value::<Assignment>(&path::assignment(worker(n), &job)));
        let inboxes = inboxes.map(|(assignment, _)| assignment).collect::<Vec<_>>();
        let waits = usize::from(ready(alone, &job).is_some()) + usize::from(delayed(alone, &job).is_some());
        let is_open = record.as_ref().is_some_and(|record| !record.is_terminal());
        if waits + inboxes.len() != usize::from(is_open) {
            return Some(Invariant::OnePlace);
        }
        if record.is_some_and(|record| inboxes.iter().any(|assignment| !assignment.agrees(&record))) {
            return Some(Invariant::OnePlace);
        }
        if times(ChunkEnd::Succeeded, number) > 1 || times(ChunkEnd::Extracted, number) > 1 {
            return Some(Invariant::OneEnd);
        }
        let own = zk.get(&path::record(&job)).is_some();
        let extracted = times(ChunkEnd::Extracted, number) > 0;
        if exists && own != (extracted && !forgotten.contains(number)) {
            return Some(Invariant::Record);
        }
    }
    None
}
