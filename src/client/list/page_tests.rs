//! Cursors and pages.

use std::collections::BTreeSet;

use bellwether_core::job::{JobRecord, JobState};
use bellwether_core::name::{JobId, Kind};
use bellwether_core::path::{self, SubBucket};
use bellwether_core::segment::Members;
use bellwether_core::time::WallMillis;
use bellwether_core::wire;

use super::*;
use crate::client::in_memory::{Request, World, id, member};
use crate::client::job::Job;
use crate::client::view::State;

#[test]
fn a_cursor_round_trips_and_malformed_text_is_refused() {
    for text in [
        "0a~sum-1",
        "29000000~nightly@2026-11-21",
        "inboxes~sum-1",
        "ff~a:b:7",
        "sum@637ad768a33ca0ab+lanes:-29.1~a",
    ] {
        assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
    }
    for text in ["", "0a", "0a~", "../jobs~x", "0a~a/b", "0a~..", "0a~x~y", &format!("{}~x", "1".repeat(161))]
    {
        assert_eq!(text.parse::<Cursor>(), Err(CursorError), "{text}");
    }
}

#[test]
fn a_parent_of_a_cursor_may_be_empty_and_is_limited() {
    assert!(format!("{}~x", "1".repeat(160)).parse::<Cursor>().is_ok());
    assert_eq!("~x".parse::<Cursor>().unwrap().parent, "");
}

fn submitted(world: &World, client: &Client, ids: impl IntoIterator<Item = String>) {
    let jobs = ids.into_iter().map(|id| Job::new("sum", &1).id(id)).collect::<Vec<_>>();
    let answers = world.run(client.submit_many(jobs, |_| {}));
    assert!(answers.iter().all(Result::is_ok));
    world.requests();
}

/// Pages until the end: their ids.
fn pages(world: &World, client: &Client, filter: &Filter, limits: PageLimits) -> Vec<Vec<String>> {
    let (mut pages, mut from) = (Vec::new(), None::<Cursor>);
    loop {
        let page = world.run(client.list_page_within(filter, from.as_ref(), limits)).unwrap();
        pages.push(page.items.into_iter().map(|job| job.id.to_string()).collect());
        match page.next {
            Some(next) => from = Some(next.to_string().parse().unwrap()),
            None => return pages,
        }
    }
}

#[test]
fn each_job_is_in_one_page_whatever_the_limit_is() {
    let world = World::new();
    let client = world.client();
    submitted(&world, &client, (0..60).map(|n| format!("j{n}")));
    let all = (0..60).map(|n| format!("j{n}")).collect::<BTreeSet<_>>();
    for state in [None, Some(State::Queued)] {
        for limit in [1, 7, 59, 60, 61, 1_000] {
            let pages = pages(&world, &client, &Filter::default().state(state), PageLimits::jobs(limit));
            assert!(pages.iter().all(|page| page.len() <= limit));
            assert_eq!(pages.len(), 60 / limit + 1, "the last page of a full one is empty");
            let ids = pages.into_iter().flatten().collect::<Vec<_>>();
            assert_eq!((ids.len(), ids.into_iter().collect::<BTreeSet<_>>()), (60, all.clone()));
        }
    }
}

#[test]
fn each_member_of_a_segment_is_in_one_page_and_a_cursor_may_be_inside_a_segment() {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &World::registration(&["sum"], 4, &[]));
    submitted(&world, &client, (0..3).map(|n| format!("j{n}")));
    let segments = [(1, 12), (2, 30), (3, 4)].map(|(number, count)| world.pack(number, count));
    world.assign_segment(segments[1], worker);
    world.succeed_members(segments[1], worker, Members::below(9));
    world.extract_members(segments[1], worker, Members::one(10).with(Members::one(29)));
    let ids = |segment: usize, numbers: std::ops::Range<u8>| {
        numbers.map(move |n| member(segments[segment], n).to_string()).collect::<BTreeSet<_>>()
    };
    let jobs = (0..3).map(|n| format!("j{n}")).collect::<BTreeSet<_>>();
    let waiting = &(&ids(0, 0..12) | &ids(2, 0..4)) | &jobs;
    let (succeeded, running) = (ids(1, 0..9), ids(1, 9..30));
    let all = &(&waiting | &succeeded) | &running;
    let states = [
        (None, all),
        (Some(State::Queued), waiting),
        (Some(State::Running), running),
        (Some(State::Succeeded), succeeded),
        (Some(State::Cancelled), BTreeSet::new()),
    ];
    for (state, expected) in states {
        for limit in [7, 12, 1_000] {
            let pages = pages(&world, &client, &Filter::default().state(state), PageLimits::jobs(limit));
            assert!(pages.iter().all(|page| page.len() <= limit));
            let ids = pages.into_iter().flatten().collect::<Vec<_>>();
            let len = ids.len();
            assert_eq!((len, ids.into_iter().collect::<BTreeSet<_>>()), (expected.len(), expected.clone()));
        }
    }
}

#[test]
fn a_page_ends_after_many_segments_without_a_member_in_its_state() {
    let world = World::new();
    let client = world.client();
    let count = MAX_LOOKED_AT + 100;
    for number in (0..).take(count) {
        world.pack(number, 4);
    }
    let filter = Filter::default().state(Some(State::Succeeded));
    let page = |from: Option<&Cursor>| world.run(client.list_page(&filter, from, 10)).unwrap();
    let first = page(None);
    assert!(first.items.is_empty() && first.next.is_some());
    assert_eq!(page(first.next.as_ref()).next, None, "the second page looks at the rest");
    drop(world.requests());
    let dead = Filter::default().state(Some(State::Dead));
    assert_eq!(world.run(client.list_page(&dead, None, 10)).unwrap().next, None);
    let lists = world.requests().into_iter().filter(|request| matches!(request, Request::List(_))).count();
    assert!(
        lists < count / EXPANDED_AT_ONCE,
        "no segment is listed, because its members are not dead: {lists}"
    );
}

/// A record of a member may be in the same parent as its segment.
#[test]
fn a_member_whose_record_is_next_to_its_segment_is_in_one_page() {
    let world = World::new();
    let client = world.client();
    let in_segment = |number: u128| {
        let id = bellwether_core::segment::SegmentId::new(uuid::Uuid::from_u128(number), 12, 1_000).unwrap();
        let of = |id: &JobId| SubBucket::of(id).path();
        (of(&id.job()) == of(&member(id, 5))).then_some(number)
    };
    let number = (1..).find_map(in_segment).unwrap();
    let worker = world.worker(1, &World::registration(&["sum"], 4, &[]));
    let segment = world.pack(number, 12);
    world.assign_segment(segment, worker);
    world.extract_members(segment, worker, Members::one(5));
    for limit in [1, 4, 12] {
        let pages = pages(&world, &client, &Filter::default(), PageLimits::jobs(limit));
        let ids = pages.into_iter().flatten().collect::<Vec<_>>();
        assert_eq!((ids.len(), ids.into_iter().collect::<BTreeSet<_>>().len()), (12, 12), "{limit}");
    }
}

#[test]
fn a_page_that_is_full_reads_no_further() {
    let world = World::new();
    let client = world.client();
    submitted(&world, &client, ["a".to_owned()]);
    let page = world.run(client.list_page(&Filter::default(), None, 1)).unwrap();
    assert_eq!(page.next.unwrap().after, id("a"));
    let lists = world.requests().into_iter().filter_map(|request| match request {
        Request::List(paths) if paths[0].starts_with("/jobs/") => Some(paths),
        Request::List(_)
        | Request::Commit(_)
        | Request::Get(_)
        | Request::Glance(_)
        | Request::Watch
        | Request::Sync => None,
    });
    let last = lists.collect::<Vec<_>>().pop().unwrap();
    assert!(last.contains(&SubBucket::of(&id("a")).path()), "{last:?}");
}

/// 2,000 jobs are in about 1,600 of 4,096 parents.
#[test]
fn a_read_of_a_page_takes_the_jobs_of_several_parents() {
    let world = World::new();
    let client = world.client();
    submitted(&world, &client, (0..2_000).map(|n| format!("j{n}")));
    let page = world.run(client.list_page(&Filter::default().state(State::Dead), None, 200)).unwrap();
    assert!(page.items.is_empty() && page.next.is_none());
    let (mut lists, mut reads) = (0, 0);
    for request in world.requests() {
        match request {
            Request::List(paths) if paths[0].starts_with("/jobs/") => lists += 1,
            Request::Get(paths) if paths[0].starts_with("/jobs/") => reads += 1,
            Request::List(_)
            | Request::Get(_)
            | Request::Commit(_)
            | Request::Glance(_)
            | Request::Watch
            | Request::Sync => {}
        }
    }
    assert!(lists <= 45 && reads <= 22, "{lists} lists of parents, {reads} reads of records");
}

#[test]
fn a_page_looks_at_a_limited_number_of_jobs() {
    let world = World::new();
    let client = world.client();
    submitted(&world, &client, ["template".to_owned()]);
    let data = world.tree().get(&path::record(&id("template"))).unwrap().data;
    for n in 0..MAX_LOOKED_AT + 100 {
        world.tree().put(&path::record(&id(format!("j{n}"))), data.clone());
    }
    let none = Filter::default().kind(Kind::new("other").unwrap());
    let pages = pages(&world, &client, &none, PageLimits::jobs(10));
    assert_eq!(pages, [[""; 0], [""; 0]]);
    let page = world.run(client.list_page(&none, None, 10)).unwrap();
    assert!(page.next.is_some());
}

#[test]
fn a_page_ends_before_the_job_with_which_it_would_have_too_many_bytes() {
    let world = World::new();
    let client = world.client();
    submitted(&world, &client, (0..6).map(|n| format!("j{n}")));
    let one = world.run(client.get(&id("j0"))).unwrap().unwrap().bytes();
    let sizes = |bytes| {
        let pages = pages(&world, &client, &Filter::default(), PageLimits::jobs(100).bytes(bytes));
        assert_eq!(pages.iter().flatten().collect::<BTreeSet<_>>().len(), 6);
        pages.iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(sizes(3 * one)[..2], [3, 3], "exactly as many bytes");
    assert_eq!(sizes(3 * one - 1)[..3], [2, 2, 2]);
    assert_eq!(sizes(1)[..6], [1; 6], "one job is in a page in any case");
}

#[test]
fn fewer_large_records_are_read_at_once_after_the_first_read() {
    let world = World::new();
    let client = world.client();
    submitted(&world, &client, ["large".to_owned()]);
    let large = world.tree().get(&path::record(&id("large"))).unwrap().data;
    let mut record = wire::decode::<JobRecord>(&large).unwrap();
    let text = format!("\"{}\"", "x".repeat(60_000)).into_bytes();
    record.payload = bellwether_core::job::Payload::json(text).unwrap();
    // Jobs of one parent.
    let parent = SubBucket::of(&id("large"));
    let ids = (0..).map(|n| id(format!("j{n}"))).filter(|id| SubBucket::of(id) == parent);
    let ids = ids.take(70).collect::<Vec<_>>();
    for id in &ids {
        world.tree().put(&path::record(id), wire::encode(&record));
        let entry = world.tree().entry(id);
        world.tree().put(&entry, *b"");
    }
    world.requests();
    let page = world.run(client.list_page(&Filter::default(), None, 1_000)).unwrap();
    assert_eq!(page.items.len(), 71);
    let reads = world.requests().into_iter().filter_map(|request| match request {
        Request::Get(paths) if paths[0].starts_with(&format!("{}/", parent.path())) => Some(paths.len()),
        Request::Get(_)
        | Request::Commit(_)
        | Request::List(_)
        | Request::Glance(_)
        | Request::Watch
        | Request::Sync => None,
    });
    let reads = reads.collect::<Vec<_>>();
    assert_eq!(reads, [FIRST_READ, 12, 12, 12, 10], "about a mebibyte");
}

#[test]
fn payloads_are_left_out_of_a_page_on_request() {
    let world = World::new();
    let client = world.client();
    submitted(&world, &client, ["a".to_owned()]);
    for payloads in [true, false] {
        let limits = PageLimits::jobs(10).payloads(payloads);
        let page = world.run(client.list_page_within(&Filter::default(), None, limits)).unwrap();
        assert_eq!(page.items[0].payload.is_some(), payloads);
    }
}

#[test]
fn minutes_are_paged_in_the_order_of_their_numbers() {
    let world = World::new();
    let client = world.client();
    submitted(&world, &client, ["template".to_owned()]);
    let (job, at) = (id("d"), |minute: u64| WallMillis(minute * 60_000));
    let mut record = world.record(&id("template"));
    for minute in [9, 10, 100] {
        let job = id(format!("{job}{minute}"));
        record.state = JobState::Open { not_before: Some(at(minute)) };
        world.tree().put(&path::record(&job), wire::encode(&record));
        world.tree().put(&path::delayed_minute(minute), *b"");
        world.tree().put(&path::delayed_entry(record.delay().unwrap(), &job), *b"");
    }
    let delayed = Filter::default().state(State::Delayed);
    let ids = pages(&world, &client, &delayed, PageLimits::jobs(1)).concat();
    assert_eq!(ids, ["d9", "d10", "d100"]);
    let worker = world.worker(1, &World::registration(&["sum"], 4, &[]));
    world.assign(&id("template"), worker);
    let running = Filter::default().state(State::Running);
    assert_eq!(pages(&world, &client, &running, PageLimits::jobs(1)), [vec!["template".to_owned()], vec![]]);
}

#[test]
fn a_page_has_no_more_jobs_than_its_limit_if_a_later_bucket_has_many() {
    let world = World::new();
    let client = world.client();
    let in_bucket = |parent: usize, count: usize| {
        let ids =
            (0..).map(|n| format!("j{n}")).filter(move |name| SubBucket::of(&id(name)).index() == parent);
        ids.take(count)
    };
    submitted(&world, &client, in_bucket(3, 1).chain(in_bucket(3_200, 5)));
    let pages = pages(&world, &client, &Filter::default(), PageLimits::jobs(2));
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2, 0]);
    assert_eq!(pages.concat().into_iter().collect::<BTreeSet<_>>().len(), 6);
}
