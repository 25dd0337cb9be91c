//! Tests of the first bucket of a term and of a pass.

use std::collections::BTreeSet;

use super::super::*;
use super::stage::{MINUTE, Stage, WALL, retention};
use crate::job::Verdict;
use crate::path::Bucket;

/// Returns the first bucket that a term lists when all buckets have entries.
fn first_of_term(epoch: i32) -> (BucketKind, usize) {
    let mut janitor = Janitor::new(epoch);
    let mut events = vec![Event::Go];
    for now in 0.. {
        let mut out = Vec::new();
        let event = events.pop().unwrap_or(Event::Go);
        janitor.handle(Millis(now * 1_000), WALL, event, &mut out);
        for effect in out {
            match effect {
                Effect::Rest(_) => {}
                Effect::Settings => events.push(Event::Settings(Ok((Some(retention()), Some(WALL))))),
                Effect::Count(kind, buckets) => {
                    let counts = vec![1; buckets.len()];
                    events.push(Event::Counted(kind, buckets, Ok(counts)));
                }
                Effect::List(kind, bucket) => return (kind, bucket.index()),
                other => panic!("{other:?}"),
            }
        }
    }
    unreachable!("the janitor lists a bucket")
}

/// L6, also when leaders change before a pass over all buckets completes.
#[test]
fn short_terms_reach_every_bucket() {
    let firsts: Vec<_> = (1..=512).map(first_of_term).collect();
    for kind in [BucketKind::Jobs, BucketKind::Groups] {
        let buckets = firsts.iter().filter(|(listed, _)| *listed == kind).map(|(_, bucket)| bucket);
        assert_eq!(buckets.collect::<BTreeSet<_>>().len(), 256, "{kind:?}");
    }
}

#[test]
fn a_pass_reaches_every_bucket_from_any_start() {
    let mut stage = Stage::new();
    (0..2_000).for_each(|n| stage.end(n, Verdict::Dead));
    stage.round();
    let listed = stage.asked.iter().filter_map(|effect| match effect {
        Effect::List(BucketKind::Jobs, bucket) => Some(bucket.index()),
        _ => None,
    });
    let listed: Vec<_> = listed.collect();
    let held: BTreeSet<_> = stage.records.keys().map(|job| Bucket::of(job).index()).collect();
    assert_eq!(listed.len(), held.len(), "each bucket is listed once");
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), held);
}

/// L6: the first buckets are due again before the pass is over.
#[test]
fn a_slow_pass_reaches_its_last_bucket() {
    const HELD: [usize; 3] = [0, 100, 255];
    let counts =
        |buckets: &[Bucket]| buckets.iter().map(|of| usize::from(HELD.contains(&of.index()))).collect();
    let mut stage = Stage::new();
    stage.took = 2 * MINUTE;
    stage.round_but(|request| match request {
        Effect::Count(kind, buckets) => Some(Event::Counted(*kind, buckets.clone(), Ok(counts(buckets)))),
        Effect::List(kind, bucket) => Some(Event::Listed(*kind, *bucket, Ok((0, vec!["a".to_owned()])))),
        Effect::Groups(groups) => Some(Event::Groups(groups.clone(), Ok(vec![None]))),
        _ => None,
    });
    for of in [BucketKind::Jobs, BucketKind::Groups] {
        let listed = stage.asked.iter().filter_map(|effect| match effect {
            Effect::List(kind, bucket) if *kind == of => Some(bucket.index()),
            _ => None,
        });
        assert_eq!(listed.collect::<BTreeSet<_>>(), HELD.into(), "{of:?}");
    }
    let lists = stage.asked.iter().filter(|effect| matches!(effect, Effect::List(..))).count();
    assert_eq!(lists, 2 * HELD.len(), "each bucket is listed once");
}

#[test]
fn the_machines_of_a_term_share_all_buckets_and_lists() {
    let (mut counted, mut leftovers) = (Vec::new(), BTreeSet::new());
    for janitor in Janitor::parts(7) {
        let mut stage = Stage { janitor, ..Stage::new() };
        for _ in 0..80 {
            stage.after(ROUND).round();
        }
        let requests = stage.asked.iter().position(|effect| matches!(effect, Effect::Names(_)));
        for effect in &stage.asked[..requests.expect("each round ends with a list of leftovers")] {
            if let Effect::Count(BucketKind::Jobs, buckets) = effect {
                counted.extend(buckets.iter().map(|bucket| bucket.index()));
            }
        }
        leftovers.extend(stage.asked.into_iter().filter_map(|effect| match effect {
            Effect::Names(parents) => Some(parents),
            _ => None,
        }));
    }
    counted.sort_unstable();
    assert_eq!(counted, (0..256).collect::<Vec<_>>());
    assert_eq!(leftovers.len(), 258, "notes, delayed minutes and 256 buckets of lanes");
}

#[test]
fn a_machine_scans_only_its_own_buckets() {
    for (part, janitor) in Janitor::parts(7).enumerate() {
        let mut stage = Stage { janitor, ..Stage::new() };
        (0..2_000).for_each(|n| stage.end(n, Verdict::Dead));
        stage.after(3 * MINUTE).round();
        assert!(stage.removed > 0);
        let left = stage.records.keys().map(|job| Bucket::of(job).index() % PARTS);
        assert!(left.into_iter().all(|of| of != part), "part {part}");
    }
}

#[test]
fn each_term_begins_with_other_leftovers() {
    let first = |epoch| Janitor::parts(epoch).map(|janitor| janitor.leftovers).collect::<Vec<_>>();
    assert_eq!(first(256), [0, 1, 2, 3]);
    assert_eq!(first(259), [291, 292, 293, 294]);
}
