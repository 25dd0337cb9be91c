//! Pages of lanes.

use std::sync::Arc;

use bellwether_core::path::{self, Bucket};
use bellwether_core::txn::Op;

use super::*;
use crate::client::in_memory::{Request, World, id};
use crate::client::job::Job;
use crate::client::list::PARENTS_AT_ONCE;
use crate::client::page::MAX_LOOKED_AT;

/// A namespace with this many lanes of one job each.
fn stage(lanes: usize) -> (Arc<World>, Client) {
    let world = World::new();
    let client = world.client();
    let jobs = (0..lanes).map(|n| Job::new("sum", &n).id(format!("j{n}")).lane(format!("l{n}")));
    world.run(client.submit_many(jobs, |_| {}));
    world.requests();
    (world, client)
}

fn pages(world: &World, client: &Client, limit: usize) -> Vec<Vec<LaneView>> {
    let (mut pages, mut from) = (Vec::new(), None::<Lane>);
    loop {
        let page = world.run(client.list_lanes(from.as_ref(), limit)).unwrap();
        pages.push(page.items);
        match page.next {
            Some(next) => from = Some(next),
            None => return pages,
        }
    }
}

#[test]
fn each_lane_is_in_one_page_with_its_jobs_and_the_first_of_them() {
    let (world, client) = stage(40);
    world.run(client.submit(Job::new("sum", &1).id("second").lane("l0"))).unwrap();
    for limit in [1, 7, 39, 40, 41] {
        let pages = pages(&world, &client, limit);
        assert!(pages.iter().all(|page| page.len() <= limit));
        assert_eq!(pages.len(), 40 / limit + 1);
        let mut views = pages.concat();
        views.sort_by_key(|view| view.lane.clone());
        assert_eq!(views.len(), 40);
        views.dedup_by_key(|view| view.lane.clone());
        assert_eq!(views.len(), 40);
        for view in views {
            let first = id(view.lane.as_str().replace('l', "j"));
            let jobs = if view.lane.as_str() == "l0" { 2 } else { 1 };
            assert_eq!((view.jobs, view.first), (jobs, Some(first)), "{}", view.lane);
        }
    }
}

#[test]
fn an_empty_lane_is_not_listed() {
    let (world, client) = stage(1);
    world.run(client.cancel(&id("j0"))).unwrap();
    assert!(world.tree().get(&path::lane(&Lane::new("l0").unwrap())).is_some());
    assert_eq!(pages(&world, &client, 10), [vec![]]);
}

#[test]
fn a_page_that_is_full_reads_no_further() {
    let (world, client) = stage(1);
    let page = world.run(client.list_lanes(None, 1)).unwrap();
    assert_eq!(page.next, Some(Lane::new("l0").unwrap()));
    let last = world.requests().into_iter().filter(|request| matches!(request, Request::List(_))).count();
    let bucket = Bucket::of_lane(&Lane::new("l0").unwrap()).index();
    assert_eq!(last, bucket / PARENTS_AT_ONCE + 2, "the buckets up to the lane, and its turns");
}

#[test]
fn a_page_looks_at_a_limited_number_of_lanes() {
    let (world, client) = stage(0);
    for n in 0..MAX_LOOKED_AT + 1 {
        world.tree().put(&path::lane(&Lane::new(format!("l{n}")).unwrap()), *b"");
    }
    assert_eq!(pages(&world, &client, 10), [vec![], vec![]]);
}

#[test]
fn the_first_jobs_of_large_lanes_are_not_read() {
    let (world, client) = stage(0);
    let lanes = ["a", "b", "c"].map(|name| Lane::new(name).unwrap());
    let first = |sizes: [usize; 3]| {
        for (lane, jobs) in lanes.iter().zip(sizes) {
            let path = path::lane(lane);
            world.tree().put(&path, *b"");
            let turn = bellwether_core::job::Turn { lane: lane.clone(), generation: 1 };
            let path = path::turn(&turn, &id(lane.as_str()));
            if world.tree().get(&path).is_none() {
                let lifetime = bellwether_core::txn::Lifetime::Persistent;
                world.apply(&[Op::Create { path, data: Vec::new(), lifetime }]);
            }
            world.tree().stat(&path::lane(lane), |node| node.children = jobs);
        }
        let views = pages(&world, &client, 10).concat();
        lanes.each_ref().map(|lane| views.iter().find(|view| view.lane == *lane).unwrap().first.is_some())
    };
    assert_eq!(first([MAX_TURNS, 0, 0].map(|jobs| jobs.max(1))).iter().filter(|read| **read).count(), 2);
    assert_eq!(first([MAX_TURNS + 1, 1, 1]), [false, true, true]);
    assert_eq!(first([MAX_TURNS + 1; 3]), [false; 3]);
    assert_eq!(first([MAX_TURNS - 2, 1, 1]), [true, true, true], "exactly as many turns");
    assert_eq!(first([1_001, 1_001, 1_001]).iter().filter(|read| **read).count(), 1);
}
