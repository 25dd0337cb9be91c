//! What must hold after each transaction.

use bellwether_core::path;
use bellwether_core::segment::{ChunkEnd, Members};
use bellwether_core::txn::Op;

use super::model::Invariant;
use super::stage::{self, MEMBERS, WORKERS};
use crate::zookeeper::ZooKeeper;

/// Returns the invariant that a transaction broke. `begun` are the members whose first attempt has begun, `forgotten` those whose
/// record was removed.
pub(super) fn broken(zk: &ZooKeeper, begun: Members, forgotten: Members, ops: &[Op]) -> Option<Invariant> {
    let entries = stage::entries(zk).iter().map(|entry| entry.members).collect::<Vec<_>>();
    let slices = (0..WORKERS).flat_map(|n| stage::slices(zk, stage::worker(n)));
    let slices = slices.map(|held| held.slice.open()).collect::<Vec<_>>();
    let (names, ends) = stage::chunks(zk);
    let ended = names.iter().filter(|name| name.end != ChunkEnd::Extracted).map(|name| name.members);
    let ended = ended.collect::<Vec<_>>();
    let moved = ends.get(&ChunkEnd::Extracted).copied().unwrap_or_default();
    let exists = zk.znodes.contains_key(&path::segment(stage::id()));
    let among = |sets: &[Members], number: u8| sets.iter().filter(|set| set.contains(number)).count();

    for number in 0..MEMBERS {
        let waits = among(&entries, number) + among(&slices, number);
        let places = if moved.contains(number) { waits } else { waits + among(&ended, number) };
        let expected = usize::from(exists && !moved.contains(number));
        if places != expected || among(&ended, number) > 1 {
            return Some(Invariant::OnePlace);
        }
        let record = stage::record(zk, number);
        if exists && record.is_some() != moved.without(forgotten).contains(number) {
            return Some(Invariant::Record);
        }
        let has_pointer = stage::is_named(number) && !forgotten.contains(number);
        if exists && has_pointer && zk.get(&path::record(&stage::job(number))).is_none() {
            return Some(Invariant::Record);
        }
        // A member that ran does not wait for its first attempt again.
        if begun.contains(number) && among(&entries, number) > 0 {
            return Some(Invariant::Once);
        }
        let creates = |op: &Op| {
            matches!(op, Op::Create { .. } | Op::Set { .. }) && op.path() == path::record(&stage::job(number))
        };
        let continues = |op: &Op| matches!(op, Op::Create { .. }) && op.path().starts_with(path::ASSIGNMENTS);
        if let Some(record) = record.filter(|record| record.generation == 1)
            && ops.iter().any(creates)
            && !ops.iter().any(continues)
            && begun.contains(number)
            && record.attempts == 0
        {
            return Some(Invariant::Closed);
        }
    }
    None
}
