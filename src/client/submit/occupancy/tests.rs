//! The limit of a sub-bucket.

use super::*;

const NOW: Millis = Millis(100_000);

fn counts(entries: usize, age: u64) -> Counts {
    Counts { read: Millis(NOW.0 - age), entries: vec![entries; SubBucket::all().count()] }
}

#[test]
fn counts_may_be_older_while_more_capacity_is_left() {
    let serve = |entries, age| counts(entries, age).serve(NOW, SubBucket::all());
    assert!(serve(10, 59_000), "less than half full: a minute does not matter");
    assert!(!serve(10, 60_001));
    assert!(serve(3_000, 4_500));
    assert!(!serve(3_000, 5_500));
    assert!(!serve(4_500, 0), "nearly full: read before every batch");
}

#[test]
fn a_full_bucket_is_refused_with_its_size() {
    let occupancy = Occupancy(Mutex::new(Some(counts(MAX_BUCKET_ENTRIES - 1, 0))));
    let job = JobId::new("a").unwrap();
    assert_eq!(occupancy.take(&job), Ok(()));
    assert_eq!(occupancy.take(&job), Err(MAX_BUCKET_ENTRIES));
}

#[test]
fn the_age_of_counts_is_bounded_by_the_capacity_that_is_left() {
    let half = MAX_BUCKET_ENTRIES / 2;
    let millisecond = Duration::from_millis(1);
    for (entries, oldest) in
        [(0, AGES.roomy), (half - 1, AGES.roomy), (half, AGES.tight), (FULL_SOON - 1, AGES.tight)]
    {
        assert!(AGES.allow(entries, oldest), "{entries}");
        assert!(!AGES.allow(entries, oldest + millisecond), "{entries}");
    }
    for entries in [FULL_SOON, FULL_SOON + 1, MAX_BUCKET_ENTRIES] {
        assert!(!AGES.allow(entries, Duration::ZERO), "{entries}");
    }
}

#[test]
fn counts_are_read_at_once_for_all_buckets_and_again_when_they_are_too_old() {
    use crate::client::in_memory::{Request, World, id};

    let world = World::new();
    let client = world.client();
    world.tree().stat(&SubBucket::of(&id("a")).path(), |node| node.children = MAX_BUCKET_ENTRIES - 1);
    let reads = || {
        let counts = |request: &Request| matches!(request, Request::Get(paths) if paths.contains(&"/jobs/00/0".into()));
        world.requests().iter().filter(|request| counts(request)).count()
    };
    let submit = |name: &str| world.run(client.submit(crate::Job::new("sum", &1).id(name)));
    submit("b").unwrap();
    assert_eq!(reads(), 1);
    submit("c").unwrap();
    assert_eq!(reads(), 0, "the counts are fresh");
    world.pass(AGES.roomy + Duration::from_millis(1));
    submit("d").unwrap();
    assert_eq!(reads(), 1);
    submit("a").unwrap();
    submit("a1").unwrap();
    assert_eq!(reads(), 1, "a nearly full bucket is read before its job");
}
