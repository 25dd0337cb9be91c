//! Which records a purge removes, and lost replies.

use bellwether_core::job::Payload;
use uuid::Uuid;

use super::*;
use crate::client::in_memory::{Answer, Request, World, id};
use crate::client::job::Job;

const NOW: WallMillis = WallMillis(1_000_000_000);
const YEAR: u64 = 365 * 24 * 3_600_000;

/// A record that ended at this time by its worker's clock, and was written at another by ZooKeeper's.
fn ended(at: u64, modified: u64) -> Node {
    let kind = Kind::new("sum").expect("a valid name");
    let payload = Payload::json(*b"1").expect("it is small");
    let record = JobRecord::new(kind, payload, Uuid::nil(), WallMillis(0)).cancel(WallMillis(at));
    Node {
        data: wire::encode(&record),
        version: 1,
        owner: 0,
        created: 1,
        written: 1,
        modified: WallMillis(modified),
        children: 0,
        children_ever: bellwether_zk::WrappingCount::default(),
    }
}

#[test]
fn the_age_of_a_record_is_measured_with_zookeepers_clock() {
    let hour = Duration::from_secs(3600);
    let old = Purge::of(Ended::Cancelled).remove(true).older_than(hour);
    let all = Purge::of(Ended::Cancelled).remove(true);
    let two_hours_ago = NOW.0 - 2 * 3_600_000;
    assert_eq!(matches(Selection::Of(&old), &ended(two_hours_ago, two_hours_ago), NOW), Some((1, false)));
    // The worker's clock is a year behind or ahead.
    for at in [NOW.0.saturating_sub(YEAR), NOW.0 + YEAR] {
        assert_eq!(matches(Selection::Of(&old), &ended(at, two_hours_ago), NOW), Some((1, false)), "{at}");
        assert_eq!(matches(Selection::Of(&old), &ended(at, NOW.0 - 1_000), NOW), None, "{at}");
        assert_eq!(matches(Selection::Of(&all), &ended(at, NOW.0 - 1_000), NOW), Some((1, true)), "{at}");
    }
    let minute = NOW.0 - 60_000;
    assert_eq!(matches(Selection::Of(&all), &ended(minute, minute), NOW), Some((1, false)));
    assert_eq!(matches(Selection::Of(&all), &ended(minute, minute + 1), NOW), Some((1, true)));
}

#[test]
fn zookeepers_time_advances_with_the_monotonic_clock() {
    let clock = ServerClock { time: NOW, read: Millis(70) };
    assert_eq!(clock.at(Millis(75)), WallMillis(NOW.0 + 5));
}

#[test]
fn each_end_of_a_job_can_be_selected() {
    let ends = [End::Succeeded, End::Cancelled, End::Dead].map(Ended::of);
    assert_eq!(ends, [Ended::Succeeded, Ended::Cancelled, Ended::Dead]);
}

#[test]
fn a_selection_has_an_end_a_kind_and_an_age() {
    let hour = Duration::from_secs(3_600);
    let (sum, product) = (Kind::new("sum").unwrap(), Kind::new("product").unwrap());
    let purge = Purge::of(Ended::Dead).remove(true).kind(sum.clone()).older_than(hour);
    let lets = |ended, kind, age| Selection::Of(&purge).lets(ended, kind, age);
    assert!(lets(Ended::Dead, &sum, hour) && lets(Ended::Dead, &sum, 2 * hour));
    assert!(!lets(Ended::Cancelled, &sum, hour));
    assert!(!lets(Ended::Dead, &product, hour));
    assert!(!lets(Ended::Dead, &sum, hour - Duration::from_millis(1)));
    assert!(!lets(Ended::Cancelled, &product, Duration::ZERO));
    let any_kind = Purge::of(Ended::Dead).remove(true);
    assert!(Selection::Of(&any_kind).lets(Ended::Dead, &product, Duration::ZERO));
    assert!(Selection::Any.lets(Ended::Succeeded, &product, Duration::ZERO));
}

#[test]
fn only_records_that_no_group_reads_are_removed() {
    let node = |change: &dyn Fn(&mut JobRecord)| {
        let mut node = ended(1_000, 1_000);
        let mut record = wire::decode::<JobRecord>(&node.data).unwrap();
        change(&mut record);
        node.data = wire::encode(&record);
        node
    };
    let matched = |node: &Node| matches(Selection::Any, node, NOW).is_some();
    assert!(matched(&node(&|_| {})));
    assert!(!matched(&node(&|record| record.spawned = true)));
    let group = bellwether_core::name::GroupId::new("g").unwrap();
    let role = bellwether_core::job::Role::Member(0);
    let part = bellwether_core::job::Membership { group, role, counted: true };
    assert!(!matched(&node(&|record| record.membership = Some(part.clone()))));
    assert!(!matched(&node(&|record| record.state = JobState::Open { not_before: None })));
    assert!(!matched(&Node { data: b"?".to_vec(), ..node(&|_| {}) }));
}

#[test]
fn removed_records_count_as_matched() {
    let mut done = Purged::default();
    done.note(3);
    done.note(2);
    assert_eq!((done.removed, done.matched), (5, 5));
}

/// A namespace with ended jobs, older than a record must be to be removed.
fn stage(names: &[&str]) -> (std::sync::Arc<World>, Client) {
    let world = World::new();
    let client = world.client();
    for name in names {
        world.run(client.submit(Job::new("sum", &1).id(name))).unwrap();
        world.run(client.cancel(&id(name))).unwrap();
    }
    world.pass(MIN_RETENTION);
    world.requests();
    (world, client)
}

#[test]
fn the_transaction_of_a_purge_names_its_author() {
    let (world, client) = stage(&["a"]);
    let ada = client.on_behalf_of("ada");
    assert_eq!(world.run(ada.purge(&Purge::jobs([id("a")]).remove(true), |_| {})).unwrap().removed, 1);
    let noted: Change = world.tree().decoded(&Bucket::of(&id("a")).jobs());
    assert_eq!((noted.what, noted.by.as_str()), (ChangeKind::Removed, "ada"));
}

fn exists(world: &World, name: &str) -> bool {
    world.tree().get(&path::record(&id(name))).is_some()
}

#[test]
fn a_purge_removes_the_selected_records_and_reports_its_progress() {
    let (world, client) = stage(&["a", "b"]);
    world.run(client.submit(Job::new("product", &1).id("c"))).unwrap();
    world.run(client.cancel(&id("c"))).unwrap();
    world.run(client.submit(Job::new("sum", &1).id("open"))).unwrap();
    let purge = Purge::of(Ended::Cancelled).remove(true);
    let mut seen = Vec::new();
    let would = world.run(client.purge(&purge.clone().remove(false), |done| seen.push(done))).unwrap();
    let expected = Purged { buckets: Purged::BUCKETS, matched: 2, removed: 0, too_recent: 1 };
    assert_eq!((would, *seen.last().unwrap()), (expected, expected));
    assert_eq!(
        seen.iter().filter(|done| done.buckets > 0).map(|done| done.buckets).min(),
        Some(BUCKETS_AT_ONCE)
    );
    assert!(exists(&world, "a"));

    let dead = world.run(client.purge(&Purge::of(Ended::Dead).remove(true), |_| {})).unwrap();
    assert_eq!((dead.matched, dead.removed, dead.too_recent), (0, 0, 0));
    let purged = world.run(client.purge(&purge, |_| {})).unwrap();
    assert_eq!(purged, Purged { removed: 2, ..expected });
    assert_eq!(["a", "b", "c", "open"].map(|name| exists(&world, name)), [false, false, true, true]);
}

#[test]
fn named_jobs_are_purged_once_however_often_they_are_named() {
    let (world, client) = stage(&["a", "b"]);
    let jobs = [id("a"), id("a"), id("none")];
    let would = world.run(client.purge(&Purge::jobs(jobs.clone()), |_| {})).unwrap();
    assert_eq!((would.matched, would.removed), (1, 0));
    let mut seen = 0;
    let purged = world.run(client.purge(&Purge::jobs(jobs.clone()).remove(true), |_| seen += 1)).unwrap();
    assert_eq!((purged.matched, purged.removed, seen), (1, 1, 1));
    assert_eq!(["a", "b"].map(|name| exists(&world, name)), [false, true]);
    let many = (0..SCATTERED_PAGE + 1).map(|n| id(format!("j{n}"))).collect::<Vec<_>>();
    let mut seen = 0;
    world.run(client.purge(&Purge::jobs(many.clone()).remove(true), |_| seen += 1)).unwrap();
    assert_eq!(seen, 2, "a page, and one job");
    assert!(longest_read(&world) <= MAX_READ_BATCH);
}

/// The most records and buckets of one read.
fn longest_read(world: &World) -> usize {
    let read = |request| match request {
        Request::Get(paths) => Some(paths.len()),
        Request::List(_) | Request::Commit(_) | Request::Glance(_) | Request::Watch | Request::Sync => None,
    };
    world.requests().into_iter().filter_map(read).max().expect("a purge reads records")
}

#[test]
fn the_records_of_a_bucket_are_read_in_pages_of_limited_length() {
    let (world, client) = stage(&["template"]);
    let data = world.tree().get(&path::record(&id("template"))).unwrap().data;
    let bucket = Bucket::of(&id("template"));
    let jobs = (0..).map(|n| id(format!("j{n}"))).filter(|job| Bucket::of(job) == bucket);
    for job in jobs.take(119) {
        world.tree().put(&path::record(&job), data.clone());
    }
    world.pass(MIN_RETENTION);
    let mut pages = 0;
    let purge = Purge::of(Ended::Cancelled).remove(true);
    let would = world.run(client.purge(&purge.clone().remove(false), |_| pages += 1)).unwrap();
    assert_eq!((would.matched, pages), (120, 128 + 2), "two pages, and the end of every two buckets");
    assert!(longest_read(&world) <= MAX_READ_BATCH);
}

fn removes(request: &Request) -> bool {
    matches!(request, Request::Commit(ops) if ops.iter().any(|op| matches!(op, Op::Delete { .. })))
}

#[test]
fn a_removal_whose_reply_is_lost_counts_the_records_that_are_gone() {
    for (lost, name) in [(Answer::LoseReply, "reply"), (Answer::LoseRequest, "request")] {
        let (world, client) = stage(&["a", "b"]);
        world.once(removes, [lost]);
        let jobs = [id("a"), id("b"), id("none")];
        let purged = world.run(client.purge(&Purge::jobs(jobs.clone()).remove(true), |_| {})).unwrap();
        assert_eq!((purged.matched, purged.removed), (2, 2), "{name}");
        assert!(!exists(&world, "a") && !exists(&world, "b"));
    }
}

#[test]
fn a_removal_that_is_applied_late_counts_its_records() {
    let (world, client) = stage(&["a", "b"]);
    let mut tries = 0;
    world.script(move |request, tree| {
        tries += u32::from(removes(request));
        match tries {
            1 if removes(request) => return Answer::LoseRequest,
            // The first copy is applied now, so the second one is rejected.
            2 if removes(request) => ["a", "b"].iter().for_each(|name| tree.delete(&path::record(&id(name)))),
            _ => {}
        }
        Answer::Serve
    });
    let purged = world.run(client.purge(&Purge::jobs([id("a"), id("b")]).remove(true), |_| {})).unwrap();
    assert_eq!((purged.matched, purged.removed), (2, 2));
}

#[test]
fn records_that_others_removed_do_not_count() {
    let (world, client) = stage(&["a", "b"]);
    world.run(client.submit(Job::new("sum", &1).id("young"))).unwrap();
    world.run(client.cancel(&id("young"))).unwrap();
    let mut first = true;
    world.script(move |request, tree| {
        if removes(request) && std::mem::take(&mut first) {
            tree.delete(&path::record(&id("a")));
        }
        Answer::Serve
    });
    let purged =
        world.run(client.purge(&Purge::jobs([id("a"), id("b"), id("young")]).remove(true), |_| {})).unwrap();
    assert_eq!(
        (purged.matched, purged.removed, purged.too_recent),
        (1, 1, 1),
        "a record that is too recent counts once"
    );
}

#[test]
fn a_page_that_changes_at_each_try_is_contended() {
    let (world, client) = stage(&["a"]);
    world.script(|request, tree| {
        if removes(request) {
            tree.stat(&path::record(&id("a")), |node| node.version += 1);
        }
        Answer::Serve
    });
    let contended = PurgeError::from(Error::Contended { subject: Subject::Page, tries: TRIES });
    assert_eq!(world.run(client.purge(&Purge::jobs([id("a")]).remove(true), |_| {})), Err(contended.clone()));
    assert_eq!(world.requests().iter().filter(|request| removes(request)).count(), TRIES as usize);
    world.once(Request::is_write, vec![Answer::LoseRequest; 99]);
    assert_eq!(world.run(client.purge(&Purge::jobs([id("a")]).remove(true), |_| {})), Err(contended));
}

#[test]
fn a_long_purge_measures_ages_at_the_time_of_each_page() {
    let (world, client) = stage(&[]);
    world.run(client.submit(Job::new("sum", &1).id("a"))).unwrap();
    world.run(client.cancel(&id("a"))).unwrap();
    // The clock was read, and the record grows old before its page is read.
    let slow = std::sync::Arc::clone(&world);
    let purge = Purge::of(Ended::Cancelled).remove(true);
    let purged = world.run(client.purge(&purge, |done| {
        if done.buckets == BUCKETS_AT_ONCE {
            slow.pass(MIN_RETENTION);
        }
    }));
    let bucket = Bucket::of(&id("a")).index();
    assert!(bucket >= BUCKETS_AT_ONCE, "bucket {bucket} comes later");
    assert_eq!(purged.unwrap().removed, 1);
}

#[test]
fn a_purge_of_given_and_selected_jobs_is_refused_before_anything_is_sent() {
    let world = World::new();
    let client = world.client();
    world.requests();
    let sum = Kind::new("sum").unwrap();
    for purge in [Purge::jobs([id("a")]).kind(sum), Purge::jobs([]).older_than(Duration::ZERO)] {
        let refused = world.run(client.purge(&purge.remove(true), |_| {})).unwrap_err();
        assert_eq!(refused, PurgeError::TwoSelections);
        assert_eq!(refused.class(), ErrorClass::Invalid);
    }
    assert_eq!(world.requests().len(), 0);
}
