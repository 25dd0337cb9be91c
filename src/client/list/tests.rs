//! Listings.

use std::collections::BTreeSet;
use std::time::Duration;

use bellwether_core::outcome::Reason;
use bellwether_core::segment::Members;

use super::*;
use crate::client::in_memory::{Answer, World, id, member};
use crate::client::job::Job;
use crate::client::view::State;

/// Ids of a listing, sorted.
fn listed(world: &World, client: &Client, filter: Filter) -> Vec<String> {
    let mut listing = client.list(filter);
    let mut ids = Vec::new();
    while let Some(view) = world.run(listing.next()).unwrap() {
        ids.push(view.id.to_string());
    }
    assert_eq!(world.run(listing.next()), Ok(None), "and stays at its end");
    ids.sort();
    ids
}

#[test]
fn a_listing_of_each_state_has_the_jobs_in_it() {
    let world = World::new();
    let client = world.client();
    let jobs = [Job::new("sum", &1).id("q"), Job::new("sum", &1).id("r"), Job::new("sum", &1).id("c")];
    world.run(client.submit_many(jobs, |_| {}));
    world.run(client.submit(Job::new("sum", &1).id("d").delay(Duration::from_secs(60)))).unwrap();
    let worker = world.worker(1, &World::registration(&["sum"], 4, &[]));
    world.assign(&id("r"), worker);
    world.run(client.cancel(&id("c"))).unwrap();
    let list = |state| listed(&world, &client, Filter::default().state(state));
    assert_eq!(list(Some(State::Queued)), ["q"]);
    assert_eq!(list(Some(State::Running)), ["r"]);
    assert_eq!(list(Some(State::Delayed)), ["d"]);
    assert_eq!(list(Some(State::Cancelled)), ["c"]);
    assert_eq!(list(Some(State::Dead)), [""; 0]);
    assert_eq!(list(None), ["c", "d", "q", "r"]);
}

#[test]
fn a_listing_has_the_members_of_segments_in_their_states() {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &World::registration(&["sum"], 4, &[]));
    let (waits, runs) = (world.pack(1, 4), world.pack(2, 5));
    world.assign_segment(runs, worker);
    world.succeed_members(runs, worker, Members::below(2));
    world.extract_members(runs, worker, Members::one(2));
    world.tree().put("/jobs/00/0/@foreign", *b"");
    let list = |state| listed(&world, &client, Filter::default().state(state));
    let ids =
        |segment, numbers: &[u8]| numbers.iter().map(|n| member(segment, *n).to_string()).collect::<Vec<_>>();
    assert_eq!(list(Some(State::Queued)), ids(waits, &[0, 1, 2, 3]));
    assert_eq!(list(Some(State::Running)), ids(runs, &[2, 3, 4]));
    assert_eq!(list(Some(State::Succeeded)), ids(runs, &[0, 1]));
    assert_eq!(list(Some(State::Dead)), [""; 0]);
    assert_eq!(list(None), [ids(waits, &[0, 1, 2, 3]), ids(runs, &[0, 1, 2, 3, 4])].concat());
}

#[test]
fn a_listing_without_jobs_ends_at_once() {
    let world = World::new();
    let client = world.client();
    for state in [None, Some(State::Queued), Some(State::Delayed), Some(State::Running)] {
        assert_eq!(listed(&world, &client, Filter::default().state(state)), [""; 0]);
    }
}

#[test]
fn a_page_of_a_listing_that_failed_is_read_again() {
    let world = World::new();
    let client = world.client();
    let jobs = (0..250).map(|n| Job::new("sum", &n).id(format!("j{n}")));
    world.run(client.submit_many(jobs, |_| {}));
    let mut listing = client.list(Filter::default());
    let mut seen = BTreeSet::new();
    // Each tenth request is refused.
    let mut asked = 0;
    world.script(move |_, _| {
        asked += 1;
        if asked % 10 == 0 { Answer::Refuse(0, Reason::NoAuth) } else { Answer::Serve }
    });
    let mut refused = 0;
    loop {
        match world.run(listing.next()) {
            Ok(Some(view)) => assert!(seen.insert(view.id)),
            Ok(None) => break,
            Err(_) => refused += 1,
        }
        assert!(refused < 1_000);
    }
    assert!(refused > 3, "{refused}");
    assert_eq!(seen.len(), 250);
}
