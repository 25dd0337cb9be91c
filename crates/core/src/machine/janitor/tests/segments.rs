//! Tests of segments: they are removed as a whole, once all members have left and the succeeded ones are past their retention.

use std::time::Duration;

use uuid::Uuid;

use super::super::*;
use super::stage::{Chunk, MINUTE, Stage, WALL, job, retention};
use crate::job::Verdict;
use crate::path::Bucket;
use crate::segment::MemberId;

fn id(n: u128) -> SegmentId {
    SegmentId::new(Uuid::from_u128(n), 4, 1_000).unwrap()
}

/// A segment whose name contains the time of its generation.
fn generated(at: WallMillis) -> SegmentId {
    SegmentId::new(Uuid::from_u128(u128::from(at.0) << 80 | 7 << 76 | 2 << 62), 4, 1_000).unwrap()
}

fn chunk(name: &'static str) -> Chunk {
    (name, Some((WALL, WALL)))
}

fn later(name: &'static str, wait: Duration) -> Chunk {
    (name, Some((WALL, WALL + wait)))
}

fn asks(stage: &Stage, is: impl Fn(&Effect) -> bool) -> usize {
    stage.asked.iter().filter(|effect| is(effect)).count()
}

fn is_read(effect: &Effect) -> bool {
    matches!(effect, Effect::Segments(_))
}

#[test]
fn a_segment_is_removed_when_its_last_member_is_past_its_retention() {
    let mut stage = Stage::new();
    stage.retention = Some(Retention { dead: MINUTE, ..retention() });
    stage.segments.insert(id(1), vec![chunk("s7"), later("s8", MINUTE)]);
    stage.segments.insert(id(2), vec![chunk("s3"), chunk("xc")]);
    stage.after(2 * MINUTE - Duration::from_secs(1)).round();
    assert_eq!(stage.segments.keys().copied().collect::<Vec<_>>(), [id(1)]);
    assert_eq!(stage.removed, 2, "the extracted members have records");
    stage.after(MINUTE).round();
    assert_eq!((stage.segments.len(), stage.removed), (0, 6));
}

/// S1
#[test]
fn a_segment_with_an_open_member_stays_and_is_not_read() {
    let mut stage = Stage::new();
    stage.segments.insert(id(1), vec![chunk("s7")]);
    stage.segments.insert(id(2), vec![]);
    stage.after(100 * MINUTE).round();
    assert_eq!((stage.segments.len(), stage.removed, asks(&stage, is_read)), (2, 0, 0));
}

#[test]
fn the_clock_of_a_worker_does_not_shorten_the_retention_of_a_segment() {
    let mut stage = Stage::new();
    let (past, ahead) = (WallMillis(1), WALL + MINUTE);
    stage.segments.insert(id(1), vec![("s7", Some((past, WALL))), ("s8", Some((ahead, WALL)))]);
    stage.after(MINUTE + Duration::from_secs(30)).round();
    assert_eq!(stage.removed, 0, "the worker ended it later by its clock");
    stage.after(MINUTE).round();
    assert_eq!(stage.removed, 4);
}

#[test]
fn a_segment_that_cannot_be_read_or_has_a_foreign_child_is_left_alone() {
    let mut stage = Stage::new();
    stage.segments.insert(id(1), vec![("sf", None)]);
    stage.segments.insert(id(2), vec![chunk("sf"), chunk("notes")]);
    stage.after(100 * MINUTE).round();
    assert_eq!((stage.segments.len(), stage.removed), (2, 0));
}

#[test]
fn a_segment_whose_members_all_have_records_is_removed_a_minute_after_the_last_was_extracted() {
    let mut stage = Stage::new();
    let day = Duration::from_secs(24 * 3_600);
    stage.retention = Some(Retention { succeeded: day, ..retention() });
    stage.segments.insert(id(1), vec![chunk("s1"), chunk("x7"), later("x8", MINUTE)]);
    stage.records.insert(MemberId { segment: id(1), number: 0 }.job(), Found::Left);
    stage.after(MINUTE + MINUTE / 2).round();
    assert_eq!(stage.segments.len(), 1, "a client may look for it");
    stage.after(MINUTE).round();
    assert_eq!((stage.segments.len(), stage.records.len(), stage.removed), (0, 1, 0));
}

#[test]
fn a_young_segment_is_neither_listed_nor_read() {
    let mut stage = Stage::new();
    stage.segments.insert(generated(WALL), vec![chunk("sf")]);
    let is_about_segments = |effect: &Effect| match effect {
        Effect::Names(parents) => parents.iter().any(|parent| parent.starts_with(path::JOBS)),
        effect => is_read(effect),
    };
    stage.after(MINUTE / 2).round();
    assert_eq!((asks(&stage, is_about_segments), stage.segments.len()), (0, 1));
    stage.after(MINUTE).round();
    assert_eq!((asks(&stage, is_about_segments), stage.segments.len()), (2, 0));
}

/// S1: a client opens a succeeded member again after the janitor has listed the chunks.
#[test]
fn a_segment_whose_member_was_opened_again_stays_and_the_others_are_removed() {
    let mut stage = Stage::new();
    // In this test the bucket has all of the znodes.
    let bucket = Bucket::of(&job(1));
    stage.end(1, Verdict::Cancelled);
    let names = [job(1).to_string(), id(1).job().to_string(), id(2).job().to_string()];
    stage.segments.insert(id(1), vec![chunk("sf"), chunk("x1")]);
    stage.segments.insert(id(2), vec![chunk("sf")]);
    let mut commits = 0;
    stage.after(2 * MINUTE);
    stage.round_but(|request| match request {
        Effect::Count(BucketKind::Jobs, buckets) => {
            let counts = buckets.iter().map(|of| if *of == bucket { 3 } else { 0 }).collect();
            Some(Event::Counted(BucketKind::Jobs, buckets.clone(), Ok(counts)))
        }
        Effect::List(BucketKind::Jobs, of) => {
            Some(Event::Listed(BucketKind::Jobs, *of, Ok((0, names.to_vec()))))
        }
        Effect::Names(parents) if parents.len() == 2 => {
            Some(Event::Names(Ok(vec![Some(vec!["sf".to_owned()]); 2])))
        }
        Effect::Commit(_) => {
            commits += 1;
            None
        }
        _ => None,
    });
    assert_eq!(stage.segments.keys().copied().collect::<Vec<_>>(), [id(1)]);
    assert_eq!((stage.records.len(), stage.removed, commits), (0, 5, 2));
}

#[test]
fn above_the_maximum_count_segments_count_by_their_members_and_the_oldest_are_removed() {
    let mut stage = Stage::new();
    let day = Duration::from_secs(24 * 3_600);
    stage.retention = Some(Retention { records: 256 * 40, succeeded: day, ..retention() });
    let bucket = Bucket::of(&id(0).job());
    let here = (0..).map(id).filter(|id| Bucket::of(&id.job()) == bucket).take(12).collect::<Vec<_>>();
    for (n, id) in (0..).zip(&here) {
        stage.segments.insert(*id, vec![later("sf", Duration::from_millis(n))]);
    }
    stage.after(2 * MINUTE).round();
    // 48 jobs are reduced to 35.
    assert_eq!(stage.segments.keys().copied().collect::<Vec<_>>(), here[4..]);
    assert_eq!(stage.removed, 16);
}

#[test]
fn a_bucket_that_grows_by_segments_is_scanned_when_it_exceeds_its_share() {
    let mut stage = Stage::new();
    let day = Duration::from_secs(24 * 3_600);
    stage.retention = Some(Retention { records: 256 * 40, succeeded: day, cancelled: day, dead: day });
    let bucket = Bucket::of(&id(0).job());
    let mut here = (0..).map(id).filter(|id| Bucket::of(&id.job()) == bucket);
    stage.segments.insert(here.next().unwrap(), vec![chunk("sf")]);
    stage.after(2 * MINUTE).round();
    stage.segments.extend(here.by_ref().take(8).map(|id| (id, vec![chunk("sf")])));
    stage.after(MINUTE).round();
    assert_eq!((asks(&stage, is_read), stage.segments.len()), (1, 9), "36 jobs are within the share of 40");
    stage.segments.extend(here.by_ref().take(4).map(|id| (id, vec![chunk("sf")])));
    stage.after(MINUTE).round();
    assert_eq!(stage.segments.len(), 8, "52 jobs are reduced to 35");
}
