//! Numbers of jobs that are estimated because a segment is one name.

use bellwether_core::ready::ReadyEntry;
use bellwether_core::segment::SegmentId;
use uuid::Uuid;

use super::*;
use crate::client::SnapshotOptions;
use crate::client::in_memory::{World, id, kind};
use bellwether_core::job::QueueEntry;

/// Puts so many entries of jobs into a slot of their class.
fn fill(world: &World, of: &str, part: u16, count: usize) {
    let entry = QueueEntry { part, ..QueueEntry::new(kind(of), 1, 1) };
    for n in 0..count {
        let at = ReadyEntry::of(&id(format!("{of}-{part}-{n}")), &entry);
        world.tree().put(&path::ready_entry(&at), *b"");
    }
}

#[test]
fn the_jobs_in_slots_that_are_not_listed_are_estimated_from_those_that_are() {
    let world = World::new();
    let client = world.client();
    for n in 0..10 {
        world.pack(n, 51);
    }
    let queued = || world.run(client.depths()).unwrap().queued;
    assert_eq!(queued(), 510);
    fill(&world, "other", 1, 40);
    assert_eq!(queued(), 550, "all are listed");
    fill(&world, "other", 2, COUNTED_NAMES);
    assert_eq!(queued(), 550 + COUNTED_NAMES, "a name of this class is one job");
    fill(&world, "third", 3, COUNTED_NAMES);
    assert_eq!(queued(), 550 + COUNTED_NAMES + COUNTED_NAMES * 550 / 50, "nothing is known of this class");
}

#[test]
fn stored_jobs_are_estimated_from_the_names_of_segments() {
    let world = World::new();
    let client = world.client();
    let counts = || world.run(client.snapshot(SnapshotOptions::default())).unwrap();
    assert_eq!(counts().record_totals.jobs_per_record, 1.0, "nothing is stored");
    for n in 0..10 {
        world.pack(n, 51);
    }
    let packed = counts();
    assert_eq!((packed.depths.stored, packed.record_totals.jobs_per_record), (510, 51.0));
    world.tree().put(&path::record(&id("alone")), *b"");
    let mixed = counts();
    assert_eq!((mixed.depths.stored, mixed.record_totals.created), (511, WrappingCount::of(11)));
    let segment = SegmentId::new(Uuid::from_u128(1), 4, 100).unwrap();
    world.tree().put(&path::record(&MemberId { segment, number: 0 }.job()), *b"");
    let extracted = counts();
    assert_eq!(
        (extracted.depths.stored, extracted.record_totals.created),
        (511, WrappingCount::of(12)),
        "a member is counted in its segment"
    );
}

#[test]
fn a_member_whose_segment_is_not_stored_is_one_job() {
    let world = World::new();
    let client = world.client();
    let segment = SegmentId::new(Uuid::from_u128(1), 4, 100).unwrap();
    world.tree().put(&path::record(&MemberId { segment, number: 0 }.job()), *b"");
    let counts = world.run(client.snapshot(SnapshotOptions::default())).unwrap();
    assert_eq!((counts.depths.stored, counts.record_totals.jobs_per_record), (1, 1.0));
}
