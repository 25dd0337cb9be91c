//! Estimates from samples.

use super::*;
use crate::client::in_memory::{Request, World, id};
use crate::client::job::Job;

fn kind(name: &str) -> Kind {
    Kind::new(name).unwrap()
}

fn sample(seen: &[(&str, usize)], sampled: usize, all: usize) -> KindSample {
    KindSample { seen: seen.iter().map(|(name, n)| (kind(name), *n)).collect(), sampled, all }
}

#[test]
fn an_estimate_is_exact_if_all_jobs_were_sampled_and_proportional_otherwise() {
    let exact = sample(&[("a", 3)], 5, 5);
    assert_eq!(exact.of(&kind("a")), Some(Estimate { count: 3, exact: true }));
    assert_eq!(exact.of(&kind("b")), Some(Estimate { count: 0, exact: true }));
    let some = sample(&[("a", 50)], 200, 10_000);
    assert_eq!(some.of(&kind("a")), Some(Estimate { count: 2_500, exact: false }));
    assert_eq!(some.of(&kind("b")), Some(Estimate { count: 0, exact: false }));
    assert_eq!(KindSample::unsampled(7).of(&kind("a")), None);
    assert_eq!(KindSample::unsampled(0).of(&kind("a")), Some(Estimate { count: 0, exact: true }));
}

#[test]
fn listing_stops_at_enough_children() {
    let size = |size: &usize| *size;
    assert_eq!(enough([90, 100, 5_000, 1].into_iter(), size, 200), [90, 100, 5_000]);
    assert_eq!(enough([5_000, 1].into_iter(), size, 200), [5_000]);
    assert_eq!(enough(std::iter::repeat_n(1, 256), size, 2_000).len(), SAMPLE_SIZE, "two requests");
}

#[test]
fn listing_stops_exactly_at_enough_children() {
    let size = |size: &usize| *size;
    assert_eq!(enough([100, 100, 1].into_iter(), size, 200), [100, 100]);
    assert_eq!(enough([100, 99, 1].into_iter(), size, 200), [100, 99, 1]);
    assert_eq!(enough([1].into_iter(), size, 0), [0; 0]);
}

#[test]
fn a_sampled_job_counts_and_its_kind_if_it_is_known() {
    let mut sample = KindSample::unsampled(5);
    for name in [Some("a"), Some("a"), Some("b"), None] {
        sample.count(name.map(kind), 1);
    }
    assert_eq!(sample, KindSample { all: 5, ..self::sample(&[("a", 2), ("b", 1)], 4, 5) });
}

/// A namespace with this many queued jobs, the first of them the oldest.
fn stage(count: usize) -> std::sync::Arc<World> {
    let world = World::new();
    let client = world.client();
    world.run(client.submit(Job::new("sum", &1).id("j0"))).unwrap();
    world.pass(std::time::Duration::from_secs(1));
    let jobs =
        (1..count).map(|n| Job::new(if n % 4 == 0 { "product" } else { "sum" }, &n).id(format!("j{n}")));
    world.run(client.submit_many(jobs, |_| {}));
    world
}

fn snapshot(world: &std::sync::Arc<World>, turn: usize) -> crate::client::Snapshot {
    let client = world.client();
    world.requests();
    world.run(client.snapshot(crate::client::SnapshotOptions::default().sample(turn))).unwrap()
}

#[test]
fn a_small_queue_is_sampled_completely_in_each_turn() {
    let world = stage(20);
    for turn in 0..300 {
        let shot = snapshot(&world, turn);
        assert_eq!((shot.queued.sampled, shot.queued.all), (20, 20), "turn {turn}");
        assert_eq!(shot.queued.of(&kind("product")), Some(Estimate { count: 4, exact: true }));
        let oldest = shot.oldest_queued.unwrap();
        assert_eq!((oldest.id, oldest.exact), (id("j0"), true));
    }
}

#[test]
fn waiting_jobs_are_counted_by_kind_and_the_oldest_is_searched_among_the_first() {
    let world = stage(600);
    let shot = snapshot(&world, 0);
    assert_eq!((shot.queued.sampled, shot.queued.all), (600, 600));
    assert_eq!(shot.queued.of(&kind("product")), Some(Estimate { count: 149, exact: true }));
    assert_eq!(shot.oldest_queued.unwrap().id, id("j0"));
}

#[test]
fn running_jobs_are_sampled_from_other_workers_at_each_turn() {
    let world = World::new();
    let client = world.client();
    let jobs = (0..250).map(|n| Job::new("sum", &n).id(format!("j{n}")));
    world.run(client.submit_many(jobs, |_| {}));
    let workers = [1, 2, 3].map(|n| world.worker(n, &World::registration(&["sum"], 500, &[])));
    for n in 0..250 {
        // None on the second worker.
        world.assign(&id(format!("j{n}")), workers[if n < 240 { 0 } else { 2 }]);
    }
    for turn in 0..6 {
        let shot = snapshot(&world, turn);
        assert_eq!((shot.running.all, shot.running.sampled), (250, 125), "each second one of 250");
        assert_eq!(shot.running.of(&kind("sum")), Some(Estimate { count: 250, exact: false }));
        let lists = world.requests().into_iter().filter_map(|request| match request {
            Request::List(paths) if paths[0].starts_with("/assignments/") => Some(paths),
            Request::List(_)
            | Request::Get(_)
            | Request::Commit(_)
            | Request::Glance(_)
            | Request::Watch
            | Request::Sync => None,
        });
        // Before the sample, both inboxes with jobs were listed to count these.
        let listed = lists.flatten().skip(2).collect::<Vec<_>>();
        let first = turn * STRIDE % 3;
        let busy = (first..first + 3).map(|at| workers[at % 3]).filter(|worker| *worker != workers[1]);
        assert_eq!(listed, busy.map(path::inbox).collect::<Vec<_>>(), "turn {turn}");
    }
}

#[test]
fn a_sample_of_large_records_ends_early() {
    let world = World::new();
    let client = world.client();
    let text = "x".repeat(20_000);
    let jobs = (0..100).map(|n| Job::new("sum", &text).id(format!("j{n}")));
    world.run(client.submit_many(jobs, |_| {}));
    let worker = world.worker(1, &World::registration(&["sum"], 500, &[]));
    for n in 0..100 {
        world.assign(&id(format!("j{n}")), worker);
    }
    let shot = snapshot(&world, 0);
    assert_eq!(shot.running.sampled, RECORDS, "the first records have {ENOUGH} bytes");
}
