//! The sums of a snapshot.

use std::time::Duration;

use bellwether_core::segment::Members;
use bellwether_zk::WrappingCount;

use super::*;
use crate::client::in_memory::{World, id, kind, member};
use crate::client::job::Job;

#[test]
fn the_open_jobs_are_those_of_all_places() {
    let world = World::new();
    let client = world.client();
    for n in 0..20 {
        world.run(client.submit(Job::new("sum", &n).id(format!("j{n}")))).unwrap();
    }
    for n in 0..3 {
        let wait = Duration::from_secs(60 * (n + 1));
        world.run(client.submit(Job::new("sum", &n).id(format!("d{n}")).delay(wait))).unwrap();
    }
    let [worker, lost] = [1, 2].map(|n| world.worker(n, &World::registration(&["sum"], 9, &[])));
    (0..5).for_each(|n| world.assign(&id(format!("j{n}")), worker));
    (5..7).for_each(|n| world.assign(&id(format!("j{n}")), lost));
    world.tree().delete(&path::worker(lost));
    world.apply(&bellwether_core::txn::quarantine(&id("j0"), worker, "why"));
    let shot = world.run(client.snapshot(SnapshotOptions::default())).unwrap();
    let depths = Depths { stored: 23, queued: 13, delayed: 3, quarantined: 1 };
    assert_eq!((shot.depths, shot.assigned(), shot.orphaned, shot.open()), (depths, 4, 2, 23));
    assert_eq!(world.run(client.depths()).unwrap(), depths);
    assert_eq!((shot.further_minutes, shot.running.all, shot.queued.all), (0, 4, 13));
    let few = world.run(client.snapshot(SnapshotOptions::default().minutes(1))).unwrap();
    assert_eq!((few.depths.delayed, few.further_minutes), (1, 2));

    let different = Snapshot { orphaned: 3, depths: Depths { queued: 5, delayed: 7, ..depths }, ..shot };
    assert_eq!(different.open(), 5 + 7 + 1 + 4 + 3);
}

#[test]
fn only_waiting_jobs_are_sampled_on_request() {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &World::registration(&["sum"], 9, &[]));
    for n in 0..4 {
        world.run(client.submit(Job::new("sum", &n).id(format!("j{n}")))).unwrap();
    }
    world.assign(&id("j0"), worker);
    let shot = |options| world.run(client.snapshot(options)).unwrap();
    let all = shot(SnapshotOptions::default().sample(0));
    assert_eq!((all.queued.sampled, all.running.sampled), (3, 1));
    let waiting = shot(SnapshotOptions::default().sample(0).waiting_only(true));
    assert_eq!((waiting.queued.sampled, waiting.running.sampled, waiting.running.all), (3, 0, 1));
    let none = shot(SnapshotOptions::default());
    assert_eq!((none.queued.sampled, none.running.sampled, none.oldest_queued), (0, 0, None));
    assert_eq!(none.record_totals.created.since(WrappingCount::default()), Some(4));
}

#[test]
fn a_segment_counts_as_its_members_while_it_waits_and_while_it_is_assigned() {
    let world = World::new();
    let client = world.client();
    let [worker, lost] = [1, 2].map(|n| world.worker(n, &World::registration(&["sum"], 9, &[])));
    world.run(client.submit(Job::new("other", &1).id("single"))).unwrap();
    let [waits, runs, orphan] = [(1, 10), (2, 20), (3, 30)].map(|(number, count)| world.pack(number, count));
    world.assign_segment(runs, worker);
    world.extract_members(runs, worker, Members::one(3));
    world.assign_segment(orphan, lost);
    world.tree().delete(&path::worker(lost));
    let shot = world.run(client.snapshot(SnapshotOptions::default().sample(0))).unwrap();
    assert_eq!((shot.depths.queued, shot.assigned(), shot.orphaned), (11, 21, 30));
    assert_eq!(world.run(client.depths()).unwrap().queued, 11);
    assert_eq!(world.run(client.workers()).unwrap()[0].assigned, 21);
    let exact = |count| Some(Estimate { count, exact: true });
    assert_eq!((shot.queued.of(&kind("sum")), shot.queued.of(&kind("other"))), (exact(10), exact(1)));
    assert_eq!(shot.running.of(&kind("sum")), exact(21));
    let oldest = shot.oldest_queued.unwrap();
    assert!(oldest.exact && [id("single"), member(waits, 0)].contains(&oldest.id), "{oldest:?}");
}
