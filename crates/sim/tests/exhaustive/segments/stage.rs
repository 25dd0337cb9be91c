//! The segment of the model: its names, its paths, and what ZooKeeper holds of it.

use std::collections::BTreeMap;

use bellwether_core::budget::DEFAULT_LEASE;
use bellwether_core::job::{JobRecord, Payload, Placement, Priority};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path;
use bellwether_core::segment::{
    ChunkEnd, ChunkName, EntryName, Head, Member, Members, Segment, SegmentId, Slice, SliceName,
};
use bellwether_core::txn;
use bellwether_core::txn::segment::{AssignedSlice, Return, WaitingEntry};
use uuid::Uuid;

use crate::fixture::{MINUTE, kind, policy};
pub(super) use crate::fixture::{WALL, worker};
use crate::zookeeper::ZooKeeper;

/// Members of the segment: a worker begins one and has one in reserve.
pub(super) const MEMBERS: u8 = 2;

/// Workers.
pub(super) const WORKERS: usize = 2;

/// The slot of the segment.
const SLOT: &str = "/ready/0/k/10";

/// No operation of the model has an owner.
pub(super) const SESSION: i64 = 1;

pub(super) fn id() -> SegmentId {
    SegmentId::new(Uuid::from_u128(1), MEMBERS, 100).expect("a valid name")
}

pub(super) fn to() -> Return {
    Return { slot: SLOT.into(), millis: 7 }
}

/// The segment. The first member has a chosen id.
pub(super) fn segment() -> Segment {
    let member = |number: u8| Member {
        payload: Payload::json(*b"1").expect("small"),
        name: is_named(number).then(|| JobId::new("k:first").expect("a valid id")),
        expires_at: None,
        trace: None,
    };
    let head = Head {
        kind: kind(),
        policy: policy(2),
        placement: Placement::default(),
        priority: Priority::default(),
        submitted_at: WALL,
        token: Uuid::from_u128(2),
    };
    Segment { head, members: (0..MEMBERS).map(member).collect() }
}

pub(super) fn is_named(number: u8) -> bool {
    number == 0
}

pub(super) fn job(number: u8) -> JobId {
    segment().job(id(), number).expect("a member")
}

/// A namespace in which the segment was submitted and two workers have inboxes.
pub(super) fn zookeeper() -> ZooKeeper {
    let mut paths = vec![path::EPOCH.to_owned(), path::JOBS.into(), path::DELAYED.into()];
    paths.extend(
        ["/ready", "/ready/0", "/ready/0/k", SLOT, path::ASSIGNMENTS, path::SEGMENTS].map(String::from),
    );
    paths.extend([path::segment_bucket(id()), path::delayed_minute(MINUTE)]);
    let parents = (0..MEMBERS).map(|number| path::SubBucket::of(&job(number)));
    paths.extend(parents.map(path::SubBucket::path));
    paths.extend((0..WORKERS).map(|n| path::inbox(worker(n))));
    let mut zk = ZooKeeper::with(paths);
    let submitted = zk.commit(SESSION, &txn::segment::submit(id(), &segment(), &to()));
    assert!(matches!(submitted, bellwether_core::outcome::Outcome::Applied(())), "{submitted:?}");
    zk
}

/// A slice as the leader assigns it to a worker with one free slot.
pub(super) fn slice(given: Members) -> Slice {
    let first = given.iter().next().expect("a slice is not empty");
    Slice {
        given,
        over: Members::NONE,
        cancel: Members::NONE,
        begun: first + 1,
        assigned_at: WALL,
        lease: DEFAULT_LEASE,
    }
}

pub(super) fn entries(zk: &ZooKeeper) -> Vec<WaitingEntry> {
    let entry = |(name, znode): (&str, &crate::zookeeper::Znode)| {
        let name = name.parse::<EntryName>().expect("a name of ours");
        let members = if znode.data.is_empty() {
            id().members()
        } else {
            bellwether_core::wire::decode(&znode.data).expect("a mask of ours")
        };
        WaitingEntry { slot: SLOT.into(), name, version: znode.version, members }
    };
    zk.names(SLOT).map(entry).collect()
}

/// The slices in a worker's inbox.
pub(super) fn slices(zk: &ZooKeeper, worker: WorkerId) -> Vec<AssignedSlice> {
    let inbox = path::inbox(worker);
    let slice = |name: &str| {
        let name = name.parse::<SliceName>().ok()?;
        let (slice, version) = zk.value::<Slice>(&path::slice(worker, name))?;
        Some(AssignedSlice { worker, name, version, slice })
    };
    zk.names(&inbox).filter_map(|(name, _)| slice(name)).collect()
}

/// The chunks of the segment, and the members of each kind.
pub(super) fn chunks(zk: &ZooKeeper) -> (Vec<ChunkName>, BTreeMap<ChunkEnd, Members>) {
    let segment = path::segment(id());
    let names = zk.names(&segment).map(|(name, _)| name.parse::<ChunkName>().expect("a name of ours"));
    let names = names.collect::<Vec<_>>();
    let mut ends = BTreeMap::<ChunkEnd, Members>::new();
    for name in &names {
        let members = ends.entry(name.end).or_default();
        *members = members.with(name.members);
    }
    (names, ends)
}

/// The record of a member; `None` while it has none, or only a pointer.
pub(super) fn record(zk: &ZooKeeper, number: u8) -> Option<JobRecord> {
    let (data, _) = zk.get(&path::record(&job(number)))?;
    bellwether_core::wire::decode(data).ok()
}
