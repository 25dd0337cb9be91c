//! Which segments a purge removes, and replies that are lost or rejected.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::job::{Ending, Payload};
use bellwether_core::segment::Members;
use bellwether_core::txn::Op;

use super::*;
use crate::client::PurgeError;
use crate::client::in_memory::{Answer, Request, World, kind, member};

/// A namespace with a segment of 8 members: 0 to 5 have succeeded; 6 and 7 have records.
fn stage() -> (Arc<World>, Client, SegmentId) {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &World::registration(&["sum"], 9, &[]));
    let segment = world.pack(7, 8);
    world.assign_segment(segment, worker);
    world.succeed_members(segment, worker, Members::below(3));
    world.extract_members(segment, worker, Members::below(8).without(Members::below(6)));
    world.succeed_members(segment, worker, Members::below(6).without(Members::below(3)));
    world.pass(MIN_RETENTION);
    world.requests();
    (world, client, segment)
}

fn purge(world: &World, client: &Client, purge: &Purge) -> (u64, u64, u64) {
    let would = world.run(client.purge(&purge.clone().remove(false), |_| {})).unwrap();
    let did = world.run(client.purge(purge, |_| {})).unwrap();
    assert_eq!((would.matched, would.too_recent, would.removed), (did.matched, did.too_recent, 0));
    (did.matched, did.removed, did.too_recent)
}

fn exists(world: &World, segment: SegmentId) -> bool {
    world.tree().get(&path::segment(segment)).is_some()
}

#[test]
fn a_finished_segment_that_is_selected_as_a_whole_is_removed_and_records_of_its_members_stay() {
    let (world, client, segment) = stage();
    let succeeded = || Purge::of(Ended::Succeeded).remove(true);
    for other in [
        Purge::of(Ended::Dead).remove(true),
        succeeded().kind(kind("other")),
        succeeded().older_than(MIN_RETENTION + Duration::from_millis(1)),
    ] {
        assert_eq!(purge(&world, &client, &other), (0, 0, 0), "{other:?}");
    }
    let selected = succeeded().kind(kind("sum")).older_than(MIN_RETENTION);
    assert_eq!(purge(&world, &client, &selected), (6, 6, 0));
    assert!(!exists(&world, segment));
    assert!(world.tree().get(&path::record(&member(segment, 6))).is_some());
}

#[test]
fn a_segment_whose_last_member_ended_within_the_last_minute_is_kept_and_counted_as_too_recent() {
    let (world, client, segment) = stage();
    let chunk = path::segment_chunk(segment, "s7".parse().unwrap());
    let now = world.wall();
    world.tree().stat(&chunk, |node| node.modified = now);
    assert_eq!(purge(&world, &client, &Purge::of(Ended::Succeeded).remove(true)), (0, 0, 6));
    assert!(exists(&world, segment));
}

#[test]
fn a_segment_with_open_members_or_that_cannot_be_read_is_kept() {
    let (world, client, segment) = stage();
    world.pack(8, 4);
    world.tree().put(&path::segment_chunk(segment, "s7".parse().unwrap()), *b"?");
    assert_eq!(purge(&world, &client, &Purge::of(Ended::Succeeded).remove(true)), (0, 0, 0));
    assert!(exists(&world, segment));
}

/// A namespace with a segment of four jobs, of which these have succeeded. It has no records.
fn assigned(succeeded: Members) -> (Arc<World>, Client, SegmentId) {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &World::registration(&["sum"], 9, &[]));
    let segment = world.pack(1, 4);
    world.assign_segment(segment, worker);
    world.succeed_members(segment, worker, succeeded);
    world.pass(MIN_RETENTION);
    world.requests();
    (world, client, segment)
}

#[test]
fn a_segment_is_kept_until_its_last_member_has_succeeded() {
    for (succeeded, is_removed) in [(3, false), (4, true)] {
        let (world, client, segment) = assigned(Members::below(succeeded));
        let removed = if is_removed { 4 } else { 0 };
        assert_eq!(purge(&world, &client, &Purge::of(Ended::Succeeded).remove(true)), (removed, removed, 0));
        assert_eq!(exists(&world, segment), !is_removed);
    }
}

#[test]
fn a_segment_with_a_foreign_child_is_kept() {
    let (world, client, segment) = assigned(Members::below(4));
    world.tree().put(&format!("{}/foreign", path::segment(segment)), *b"");
    assert_eq!(purge(&world, &client, &Purge::of(Ended::Succeeded).remove(true)), (0, 0, 0));
    assert!(exists(&world, segment));
}

fn removes(request: &Request) -> bool {
    matches!(request, Request::Commit(ops) if ops.iter().any(|op| matches!(op, Op::Delete { .. })))
}

fn assert_contended(world: &World, client: &Client) {
    let contended = Err(PurgeError::from(Error::Contended { subject: Subject::Page, tries: TRIES }));
    assert_eq!(world.run(client.purge(&Purge::of(Ended::Succeeded).remove(true), |_| {})), contended);
    assert_eq!(world.requests().iter().filter(|request| removes(request)).count(), TRIES as usize);
}

#[test]
fn a_page_whose_bucket_changes_at_each_try_is_contended() {
    let (world, client, segment) = assigned(Members::below(4));
    let bucket = Bucket::of(&segment.job()).jobs();
    world.script(move |request, tree| {
        if removes(request) {
            tree.stat(&bucket, |node| node.version += 1);
        }
        Answer::Serve
    });
    assert_contended(&world, &client);
}

#[test]
fn a_page_whose_removal_is_lost_at_each_try_is_contended() {
    let (world, client, _) = assigned(Members::below(4));
    world.once(removes, vec![Answer::LoseRequest; 99]);
    assert_contended(&world, &client);
}

#[test]
fn a_lost_reply_is_resolved_by_reading_back() {
    for answer in [Answer::LoseReply, Answer::LoseRequest] {
        let (world, client, segment) = stage();
        world.once(|request| matches!(request, Request::Commit(ops) if ops.len() > 1), [answer]);
        let purged = world.run(client.purge(&Purge::of(Ended::Succeeded).remove(true), |_| {})).unwrap();
        assert_eq!((purged.matched, purged.removed), (6, 6));
        assert!(!exists(&world, segment));
    }
}

#[test]
fn segments_that_do_not_fit_into_one_transaction_are_removed_in_several() {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &World::registration(&["sum"], 9, &[]));
    // Segments of one bucket, each with a chunk per member.
    let bucket = |number: &u128| {
        let id = SegmentId::new(uuid::Uuid::from_u128(*number), 100, 1_000).unwrap();
        Bucket::of(&id.job()).index()
    };
    for number in (0..).filter(|number| bucket(number) == bucket(&0)).take(6) {
        let segment = world.pack(number, 100);
        world.assign_segment(segment, worker);
        (0..100).for_each(|n| world.succeed_members(segment, worker, Members::one(n)));
    }
    world.pass(MIN_RETENTION);
    let purged = world.run(client.purge(&Purge::of(Ended::Succeeded).remove(true), |_| {})).unwrap();
    assert_eq!((purged.matched, purged.removed), (600, 600));
}

#[test]
fn the_record_of_a_member_is_purged_like_any_record() {
    let (world, client, segment) = stage();
    let worker = bellwether_core::name::WorkerId::new(uuid::Uuid::from_u128(1 << 100 | 1));
    world.close(&member(segment, 6), worker, Ending::Succeeded(Payload::json(*b"1").unwrap()));
    world.pass(MIN_RETENTION);
    assert_eq!(purge(&world, &client, &Purge::of(Ended::Succeeded).remove(true)), (7, 7, 0));
    assert!(world.tree().get(&path::record(&member(segment, 6))).is_none());
}
