//! Filters and listings.

use bellwether_core::job::JobRecord;
use bellwether_core::outcome::Reason;
use bellwether_core::segment::Members;
use bellwether_core::time::WallMillis;

use super::*;
use crate::client::in_memory::{Answer, World, id, kind, member};
use crate::client::job::Job;

use std::time::Duration;

#[test]
fn an_instant_is_within_its_bounds_from_the_first_up_to_the_second() {
    let at = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    for (instant, within) in [(at(1), false), (at(2), true), (at(3), true), (at(4), false), (None, false)] {
        assert_eq!(is_within(instant, at(2), at(4)), within, "{instant:?}");
    }
    assert!(is_within(at(2), at(2), None) && !is_within(at(1), at(2), None));
    assert!(is_within(at(1), None, at(2)) && !is_within(at(2), None, at(2)));
    assert!(is_within(None, None, None), "without bounds it need not be known");
}

#[test]
fn each_bound_of_a_filter_is_kept() {
    let at = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    let lane = Lane::new("l").ok();
    let group = GroupId::new("g").ok();
    let filter = Filter::default().lane(lane.clone()).group(group.clone());
    let filter = filter.submitted_after(at(1)).submitted_before(at(2));
    let filter = filter.finished_after(at(3)).finished_before(at(4));
    assert!(lane.is_some() && group.is_some());
    assert_eq!((filter.lane, filter.group), (lane, group));
    let bounds =
        [filter.submitted_after, filter.submitted_before, filter.finished_after, filter.finished_before];
    assert_eq!(bounds, [1, 2, 3, 4].map(at));
}

#[test]
fn a_filter_accepts_a_job_only_if_each_of_its_parts_does() {
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let record = |name: &str| {
        let payload = bellwether_core::job::Payload::json(*b"1").unwrap();
        let kind = Kind::new(name).unwrap();
        let mut record = JobRecord::new(kind, payload, uuid::Uuid::nil(), WallMillis(5_000));
        record.placement.lane = Lane::new("l").ok();
        record.cancel(WallMillis(8_000))
    };
    let mut view = JobView::of(id("a"), record("sum"));
    view.group = GroupId::new("g").ok();
    let all = || {
        let all = Filter::default().state(State::Cancelled).kind(kind("sum"));
        let all = all.lane(Lane::new("l").unwrap()).group(GroupId::new("g").unwrap());
        all.submitted_after(at(5)).submitted_before(at(6)).finished_after(at(8)).finished_before(at(9))
    };
    assert!(all().lets(&view) && Filter::default().lets(&view));
    for other in [
        all().state(State::Dead),
        all().kind(kind("product")),
        all().lane(Lane::new("m").unwrap()),
        all().group(GroupId::new("h").unwrap()),
        all().submitted_after(at(6)),
        all().submitted_before(at(5)),
        all().finished_after(at(9)),
        all().finished_before(at(8)),
    ] {
        assert!(!other.lets(&view), "{other:?}");
        // Nor alone, without the other parts.
        let alone = Filter {
            state: other.state.filter(|state| *state == State::Dead),
            kind: other.kind.filter(|kind| kind.as_str() == "product"),
            lane: other.lane.filter(|lane| lane.as_str() == "m"),
            group: other.group.filter(|group| group.as_str() == "h"),
            ..Filter::default()
        };
        assert!(alone == Filter::default() || !alone.lets(&view), "{alone:?}");
    }
    for one in [
        Filter::default().state(State::Cancelled),
        Filter::default().kind(kind("sum")),
        Filter::default().lane(Lane::new("l").unwrap()),
        Filter::default().group(GroupId::new("g").unwrap()),
    ] {
        assert!(one.lets(&view), "{one:?}");
    }
}

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
    let mut seen = std::collections::BTreeSet::new();
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
    assert!(refused > 3);
    assert_eq!(seen.len(), 250);
}
