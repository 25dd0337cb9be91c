//! The first job of a lane.

use std::sync::Arc;

use super::*;
use crate::client::in_memory::{DEADLINE, World, id};
use crate::client::job::Job;

fn lane(name: &str) -> Lane {
    Lane::new(name).unwrap()
}

/// A namespace with jobs of lanes, submitted one after the other.
fn stage(jobs: &[(&str, &str)]) -> (Arc<World>, crate::Client) {
    let world = World::new();
    let client = world.client();
    for (name, lane) in jobs {
        world.run(client.submit(Job::new("sum", &1).id(name).lane(lane))).unwrap();
    }
    (world, client)
}

fn look(world: &World, client: &crate::Client, job: &str) -> (Option<WaitReason>, Option<JobId>) {
    let view = world.run(client.get(&id(job))).unwrap().unwrap();
    (view.waiting, view.behind)
}

#[test]
fn a_job_waits_behind_the_first_one_of_its_lane() {
    let (world, client) = stage(&[("z", "l"), ("a", "l"), ("m", "l"), ("b", "k")]);
    assert_eq!(look(&world, &client, "z"), (Some(WaitReason::UnknownKind), None));
    assert_eq!(look(&world, &client, "a"), (Some(WaitReason::Lane), Some(id("z"))));
    assert_eq!(look(&world, &client, "m"), (Some(WaitReason::Lane), Some(id("z"))));
    assert_eq!(look(&world, &client, "b"), (Some(WaitReason::UnknownKind), None));
    let all = ["z", "a", "m", "b"].map(id);
    let views = world.run(client.get_many(&all)).unwrap();
    let behind = views.into_iter().map(|view| view.unwrap().behind).collect::<Vec<_>>();
    assert_eq!(behind, [None, Some(id("z")), Some(id("z")), None]);
    world.run(client.cancel(&id("z"))).unwrap();
    assert_eq!(look(&world, &client, "m").1, Some(id("a")));
    assert_eq!(look(&world, &client, "z"), (None, None), "an ended job waits for nothing");
}

#[test]
fn jobs_of_one_transaction_have_the_order_of_their_submission() {
    let world = World::new();
    let client = world.client();
    let jobs = ["c", "a", "b"].map(|name| Job::new("sum", &1).id(name).lane("l"));
    world.run(client.submit_many(jobs, |_| {}));
    assert_eq!(look(&world, &client, "a").1, Some(id("c")));
    assert_eq!(look(&world, &client, "c").1, None);
    let firsts = world.run(firsts(world.zk(), vec![lane("l"), lane("none")])).unwrap();
    assert_eq!(firsts, BTreeMap::from([(lane("l"), (1, id("c")))]));
}

#[test]
fn a_turn_that_cannot_be_read_is_the_last_of_its_transaction() {
    let (world, client) = stage(&[("a", "l"), ("b", "l")]);
    let turn = |name: &str| path::turn(&world.record(&id(name)).turn().unwrap(), &id(name));
    let [a, b] = ["a", "b"].map(turn);
    world.tree().put(&a, *b"?");
    let created = world.tree().get(&a).unwrap().created;
    world.tree().stat(&b, |node| node.created = created);
    assert_eq!(look(&world, &client, "a").1, Some(id("b")));
    let node = |data: Vec<u8>| Node { data, ..world.tree().get(&a).unwrap() };
    assert_eq!(index(&node(b"?".to_vec())), u32::MAX);
    assert_eq!(index(&node(wire::encode(&TurnIndex(7)))), 7);
}

#[test]
fn a_queued_job_without_its_turn_is_reported() {
    let (world, client) = stage(&[("a", "l"), ("b", "l")]);
    let turn = path::turn(&world.record(&id("b")).turn().unwrap(), &id("b"));
    world.tree().delete(&turn);
    assert_eq!(look(&world, &client, "b"), (Some(WaitReason::NoTurn), None));
}

/// A job that was reopened since it was located has a turn of its new generation.
#[test]
fn a_turn_is_missing_only_if_the_job_has_still_the_generation_in_which_it_was_located() {
    let (world, client) = stage(&[("a", "l")]);
    let session = &client.0.shared.session;
    for (located, reason) in [(1, Some(WaitReason::NoTurn)), (2, None)] {
        let mut view = world.run(client.get(&id("a"))).unwrap().unwrap();
        (view.generation, view.waiting) = (located, None);
        world.run(tell_without(session, session.by(DEADLINE), vec![&mut view])).unwrap();
        assert_eq!(view.waiting, reason, "generation {located}");
    }
}

#[test]
fn the_first_job_of_a_lane_is_read_once_for_a_listing() {
    let (world, client) = stage(&[("a", "l"), ("b", "l"), ("c", "k")]);
    let mut turns = Turns::default();
    let views = |names: &[&str]| {
        let views = names.iter().map(|name| JobView::of(id(name), world.record(&id(name))));
        views.collect::<Vec<_>>()
    };
    let by = client.by();
    let mut tell = |names: &[&str]| {
        let mut views = views(names);
        world.requests();
        world.run(turns.tell(&client.0.session, by, &mut views)).unwrap();
        let lists = world
            .requests()
            .into_iter()
            .filter(|request| matches!(request, crate::client::in_memory::Request::List(_)));
        (lists.count(), views.into_iter().map(|view| view.behind).collect::<Vec<_>>())
    };
    assert_eq!(tell(&["b"]), (1, vec![Some(id("a"))]));
    assert_eq!(tell(&["b", "a"]), (0, vec![Some(id("a")), None]));
    assert_eq!(tell(&["c", "b"]), (1, vec![None, Some(id("a"))]));
    assert_eq!(tell(&[]), (0, vec![]));
}
