//! Tests of records: they are removed after their retention, at the version that was read, without needless reads.

use std::time::Duration;

use super::super::*;
use super::stage::{MINUTE, Stage, TOOK, job, retention};
use crate::job::Verdict;
use crate::outcome::{Reason, Rejection};
use crate::path::Bucket;
use crate::retention::KEPT_AT_LEAST;

#[test]
fn records_are_removed_after_their_retention_and_not_before() {
    let mut stage = Stage::new();
    stage.end(1, Verdict::Cancelled);
    stage.end(2, Verdict::Dead);
    stage.records.insert(job(3), Found::Left);
    stage.after(MINUTE - Duration::from_secs(1)).round();
    assert_eq!(stage.removed, 0);
    stage.after(MINUTE).round();
    assert_eq!(stage.records.keys().cloned().collect::<Vec<_>>(), [job(2), job(3)]);
    stage.after(2 * MINUTE).round();
    assert_eq!((stage.records.len(), stage.removed), (1, 2));
}

#[test]
fn a_bucket_is_not_read_again_before_a_record_can_be_due() {
    let mut stage = Stage::new();
    (0..1_000).for_each(|n| stage.end(n, Verdict::Dead));
    stage.round();
    stage.asked.clear();
    for _ in 0..10 {
        stage.after(ROUND).round();
    }
    assert_eq!(
        stage.asked.len(),
        10 * 11,
        "settings, nine counts and one list of leftovers: {:?}",
        stage.asked.last()
    );
}

#[test]
fn the_rest_is_as_long_as_the_request() {
    let mut stage = Stage::new();
    (0..2_000).for_each(|n| stage.end(n, Verdict::Cancelled));
    let (rested, asked) = stage.after(2 * MINUTE).round();
    assert_eq!(stage.removed, 2_000);
    assert!(rested >= asked - TOOK, "{rested:?} of rest, {asked:?} of requests");
}

#[test]
fn a_leader_whose_clock_is_ahead_removes_nothing_early() {
    let mut stage = Stage::new();
    stage.end(1, Verdict::Cancelled);
    // By this leader's wall clock a day has passed since its claim and the end; by its monotonic clock no time has.
    stage.claimed = Some(stage.wall());
    stage.after(24 * 60 * MINUTE).round();
    assert_eq!(stage.removed, 0);
    stage.after(2 * MINUTE).round();
    assert_eq!(stage.removed, 1, "time that passed on the monotonic clock counts");
}

#[test]
fn without_settings_nothing_is_removed() {
    let mut stage = Stage::new();
    stage.end(1, Verdict::Cancelled);
    stage.retention = None;
    stage.after(100 * MINUTE).round();
    assert_eq!((stage.removed, stage.asked.len()), (0, 1));
}

#[test]
fn new_settings_apply_from_the_next_round() {
    let mut stage = Stage::new();
    stage.end(1, Verdict::Dead);
    stage.after(KEPT_AT_LEAST).round();
    assert_eq!(stage.removed, 0);
    stage.retention = Some(Retention { dead: Duration::ZERO, ..retention() });
    stage.after(ROUND).round();
    assert_eq!(stage.removed, 1);
}

#[test]
fn a_concurrently_retried_job_stays_and_the_others_are_removed() {
    let mut stage = Stage::new();
    (1..=3).for_each(|n| stage.end(n, Verdict::Cancelled));
    // In this test the bucket lists all three jobs.
    let bucket = Bucket::all().next().unwrap();
    let jobs = (1..=3).map(job).collect::<Vec<_>>();
    stage.after(2 * MINUTE);
    let mut records = stage.records.clone();
    stage.records.remove(&job(2));
    stage.records.insert(job(2), Found::Left);
    stage.round_but(|request| match request {
        Effect::Count(BucketKind::Jobs, buckets) => {
            let counts = buckets.iter().map(|of| if *of == bucket { 3 } else { 0 }).collect();
            Some(Event::Counted(BucketKind::Jobs, buckets.clone(), Ok(counts)))
        }
        Effect::List(kind, of) => {
            let names = jobs.iter().map(ToString::to_string).collect();
            Some(Event::Listed(*kind, *of, Ok((0, names))))
        }
        Effect::Read(jobs) => {
            let found = jobs.iter().map(|job| records.remove(job).unwrap()).collect();
            Some(Event::Read(jobs.clone(), Ok(found)))
        }
        _ => None,
    });
    assert_eq!(stage.records.keys().cloned().collect::<Vec<_>>(), [job(2)]);
    assert_eq!(stage.removed, 2);
}

#[test]
fn more_records_of_a_bucket_than_fit_into_a_removal_are_removed_in_one_round() {
    let mut stage = Stage::new();
    let bucket = Bucket::all().next().unwrap();
    let held = (0..).filter(|n| Bucket::of(&job(*n)) == bucket);
    held.take(2 * READ).for_each(|n| stage.end(n, Verdict::Cancelled));
    stage.after(2 * MINUTE).round();
    assert_eq!((stage.removed, stage.records.len()), (2 * READ, 0));
}

/// S1: a purge removed the record that the janitor has read, and its id was submitted again: the new job has the same
/// version.
#[test]
fn a_removal_after_a_purge_in_the_bucket_is_rejected_and_the_bucket_is_scanned_again() {
    let mut stage = Stage::new();
    stage.end(1, Verdict::Cancelled);
    let bucket = Bucket::of(&job(1));
    stage.after(2 * MINUTE);
    let mut removals = 0;
    stage.round_but(|request| match request {
        Effect::Commit(batch) => {
            removals += 1;
            assert!(batch.ops().any(|op| *op == txn::count_removal(bucket, 0, None)));
            let rejected = Outcome::Rejected(Rejection { at: 1, reason: Reason::BadVersion });
            Some(Event::Committed(batch.clone(), rejected))
        }
        _ => None,
    });
    assert_eq!((removals, stage.removed, stage.fenced), (1, 0, false), "the janitor still leads");
    stage.removals.insert(bucket, 1);
    stage.after(ROUND).round();
    assert_eq!(stage.removed, 1);
}

#[test]
fn after_a_lost_reply_the_bucket_is_scanned_again() {
    for applied in [false, true] {
        let mut stage = Stage::new();
        stage.end(1, Verdict::Cancelled);
        stage.after(2 * MINUTE).round_but(|request| match request {
            Effect::Commit(batch) => Some(Event::Committed(batch.clone(), Outcome::Unknown)),
            _ => None,
        });
        if applied {
            stage.records.clear();
        }
        stage.after(ROUND).round();
        assert_eq!(stage.records.len(), 0, "applied: {applied}");
    }
}

#[test]
fn the_next_round_repeats_any_unanswered_request() {
    type Refuse = fn(&Effect) -> Option<Event>;
    let table: [(&str, Refuse); 5] = [
        ("settings", |request| matches!(request, Effect::Settings).then_some(Event::Settings(Err(())))),
        ("counts", |request| match request {
            Effect::Count(kind, buckets) => Some(Event::Counted(*kind, buckets.clone(), Err(()))),
            _ => None,
        }),
        ("list", |request| match request {
            Effect::List(kind, bucket) => Some(Event::Listed(*kind, *bucket, Err(()))),
            _ => None,
        }),
        ("read", |request| match request {
            Effect::Read(jobs) => Some(Event::Read(jobs.clone(), Err(()))),
            _ => None,
        }),
        ("commit", |request| match request {
            Effect::Commit(batch) => {
                let rejection = Rejection { at: 0, reason: Reason::NotSent };
                Some(Event::Committed(batch.clone(), Outcome::Rejected(rejection)))
            }
            _ => None,
        }),
    ];
    for (what, refuse) in table {
        let mut stage = Stage::new();
        stage.end(1, Verdict::Cancelled);
        stage.after(2 * MINUTE).round_but(refuse);
        assert_eq!((stage.removed, stage.fenced), (0, false), "{what}");
        stage.after(ROUND).round();
        assert_eq!(stage.removed, 1, "{what}");
    }
}

#[test]
fn an_epoch_that_may_not_be_read_does_not_end_the_term() {
    let mut stage = Stage::new();
    stage.end(1, Verdict::Cancelled);
    stage.after(2 * MINUTE).round_but(|request| match request {
        Effect::Commit(batch) => {
            let rejection = Rejection { at: 0, reason: Reason::NoAuth };
            Some(Event::Committed(batch.clone(), Outcome::Rejected(rejection)))
        }
        _ => None,
    });
    assert_eq!((stage.fenced, stage.removed), (false, 0));
}

/// S3
#[test]
fn a_rejected_fence_ends_the_term() {
    let mut stage = Stage::new();
    stage.end(1, Verdict::Cancelled);
    stage.after(2 * MINUTE).round_but(|request| match request {
        Effect::Commit(batch) => {
            let rejection = Rejection { at: 0, reason: Reason::BadVersion };
            Some(Event::Committed(batch.clone(), Outcome::Rejected(rejection)))
        }
        _ => None,
    });
    assert!(stage.fenced && stage.removed == 0);
}

#[test]
fn above_the_maximum_count_the_oldest_records_are_removed() {
    let mut stage = Stage::new();
    stage.retention = Some(Retention { records: 256 * 8, dead: 1_000 * MINUTE, ..retention() });
    for n in 0..4_000 {
        stage.end(n, Verdict::Dead);
        stage.now = Millis(stage.now.0 + 1);
    }
    stage.after(MINUTE).round();
    assert!(stage.records.len() <= 256 * 8, "{} are left", stage.records.len());
    for bucket in Bucket::all() {
        let ends = |there: bool| {
            let of = (0..4_000).filter(|n| Bucket::of(&job(*n)) == bucket);
            of.filter(|n| stage.records.contains_key(&job(*n)) == there).collect::<Vec<_>>()
        };
        assert!(ends(false).last() < ends(true).first() || ends(true).is_empty(), "{bucket:?}");
    }
}
