//! Which submissions become members of one segment.

use std::time::Duration;

use bellwether_core::budget::{MAX_PAYLOAD_BYTES, MAX_TAGS, MAX_TXN_BYTES, MAX_TXN_OPS};
use bellwether_core::job::{Membership, Payload, Role};
use bellwether_core::name::{AffinityKey, GroupId, Kind, Lane, Tag};
use bellwether_core::segment::SegmentId;
use bellwether_core::time::WallMillis;
use bellwether_core::trace::TraceContext;
use bellwether_core::{txn, wire};
use proptest::prelude::*;
use uuid::Uuid;

use super::super::packed::Packed;
use super::*;

/// A plain submission with a payload of this many bytes.
fn plain(kind: &str, bytes: usize) -> Submission {
    let (mut job, _) = Submission::sample();
    job.may_pack = true;
    job.record.kind = Kind::new(kind).unwrap();
    job.record.payload = Payload::json(format!("\"{}\"", "x".repeat(bytes - 2)).into_bytes()).unwrap();
    job
}

fn ids(jobs: &[Submission]) -> Vec<String> {
    jobs.iter().map(|job| job.id.to_string()).collect()
}

/// The sizes of the segments, and the number of the other submissions.
fn packed(jobs: Vec<Submission>) -> (Vec<usize>, usize) {
    let (segments, others) = pack(jobs);
    (segments.iter().map(Vec::len).collect(), others.len())
}

#[test]
fn submissions_with_the_same_head_are_packed_in_their_order() {
    let jobs = (0..10).map(|n| plain(if n % 2 == 0 { "sum" } else { "mail" }, 10)).collect::<Vec<_>>();
    let wanted = |rest| ids(&jobs).into_iter().skip(rest).step_by(2).collect::<Vec<_>>();
    let wanted = [wanted(0), wanted(1)];
    let (segments, others) = pack(jobs);
    assert_eq!(segments.iter().map(|jobs| ids(jobs)).collect::<Vec<_>>(), wanted);
    assert!(others.is_empty());
}

#[test]
fn fewer_than_four_stay_records() {
    let few = |count| packed((0..count).map(|_| plain("sum", 10)).collect());
    assert_eq!(few(3), (vec![], 3));
    assert_eq!(few(4), (vec![4], 0));
    assert_eq!(few(103), (vec![100], 3));
    assert_eq!(few(104), (vec![100, 4], 0));
}

#[test]
fn a_different_head_is_another_segment() {
    let changes: [fn(&mut JobRecord); 4] = [
        |record| record.kind = Kind::new("mail").unwrap(),
        |record| record.policy.max_attempts = 9,
        |record| record.placement.tags = vec![Tag::new("gpu").unwrap()],
        |record| record.priority = Priority::HIGHEST,
    ];
    for change in changes {
        let jobs = (0..8).map(|n| {
            let mut job = plain("sum", 10);
            if n >= 4 {
                change(&mut job.record);
            }
            job
        });
        assert_eq!(packed(jobs.collect()), (vec![4, 4], 0));
    }
}

#[test]
fn submissions_that_are_not_plain_stay_records() {
    let changes: [fn(&mut Submission); 10] = [
        |job| job.may_pack = false,
        |job| job.if_exists = IfExists::Ignore,
        |job| job.reopens = Some(3),
        |job| job.maybe = true,
        |job| job.record.placement.lane = Some(Lane::new("a").unwrap()),
        |job| job.record.policy.max_losses = 1,
        |job| job.record.expires_at = Some(WallMillis(9)),
        |job| job.record.generation = 2,
        |job| job.record.state = JobState::Open { not_before: Some(WallMillis(9)) },
        |job| {
            let group = GroupId::new("g").unwrap();
            job.record.membership = Some(Membership { group, role: Role::Member(0), counted: true });
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let jobs = (0..5).map(|_| {
            let mut job = plain("sum", 10);
            change(&mut job);
            job
        });
        assert_eq!(packed(jobs.collect()), (vec![], 5), "change {number}");
    }
}

#[test]
fn large_payloads_are_divided_into_several_segments_or_stay_records() {
    let of = |bytes| packed((0..9).map(|_| plain("sum", bytes)).collect());
    assert_eq!(of(MAX_PACKED_BYTES / 5), (vec![4, 4], 1));
    assert_eq!(of(MAX_PACKED_BYTES / 3), (vec![], 9));
}

#[test]
fn a_member_uses_its_payload_and_several_times_its_kind_tags_and_affinity_key() {
    let mut job = plain("sum", 10);
    let mut wanted = MEMBER + "application/json".len() + 10 + HEADS * 3;
    assert_eq!(bytes(&job.record), wanted);
    job.record.placement.tags = ["gpu", "arm64"].map(|tag| Tag::new(tag).unwrap()).to_vec();
    wanted += HEADS * 8;
    assert_eq!(bytes(&job.record), wanted);
    job.record.placement.affinity = Some(AffinityKey::new("tenant").unwrap());
    assert_eq!(bytes(&job.record), wanted + HEADS * 6);
}

/// The largest segment with these heads and payloads.
fn largest(kind: usize, tags: usize, bytes: usize) -> Option<Vec<Submission>> {
    let jobs = (0..MAX_PACKED).map(|_| {
        let mut job = plain(&"k".repeat(kind), bytes);
        job.record.placement.tags = (0..tags).map(|n| Tag::new(format!("{n:0128}")).unwrap()).collect();
        job.record.placement.affinity = Some(AffinityKey::new("a".repeat(128)).unwrap());
        job.record.trace = Some(TraceContext::new([1; 16], [1; 8], 1).unwrap());
        job
    });
    let (mut segments, _) = pack(jobs.collect());
    segments.drain(..).next()
}

/// An extraction of all members is one multi.
#[test]
fn a_segment_and_its_extraction_are_within_the_limits_of_a_multi() {
    let mut fullest = 0;
    for (kind, tags) in [(1, 0), (128, 0), (128, 3), (128, MAX_TAGS)] {
        for bytes in [10, 300, 1_250, 10_000, MAX_PAYLOAD_BYTES / 2, MAX_PAYLOAD_BYTES] {
            let Some(jobs) = largest(kind, tags, bytes) else { continue };
            let count = u8::try_from(jobs.len()).unwrap();
            let packed = Packed::new(Uuid::now_v7(), Uuid::now_v7(), jobs, |_| u16::MAX);
            let stored = wire::encode(packed.segment()).len();
            assert!(stored <= MAX_PACKED_BYTES, "{stored} bytes of {kind}, {tags}, {bytes}");
            let id = SegmentId::new(Uuid::now_v7(), count, stored).unwrap();
            let ops = txn::segment::extract_waiting(id, packed.segment());
            let size = ops.iter().map(txn::Op::bytes).sum::<usize>();
            assert!(size <= MAX_TXN_BYTES, "{size} bytes of {kind}, {tags}, {bytes}");
            assert!(ops.len() <= MAX_TXN_OPS);
            fullest = fullest.max(size);
        }
    }
    assert!(fullest > MAX_TXN_BYTES / 2, "the limit is not far too low: {fullest}");
}

#[test]
fn a_segment_has_the_time_of_its_first_member_and_the_traces_of_all() {
    let trace = |n| TraceContext::new([n; 16], [n; 8], 1).ok();
    let jobs = [3, 1, 2, 4].map(|n: u8| {
        let mut job = plain("sum", 10);
        job.record.submitted_at = WallMillis(n.into());
        job.record.trace = trace(n);
        job
    });
    let packed = Packed::new(Uuid::nil(), Uuid::nil(), jobs.into(), |entry| {
        assert_eq!(entry.submitted_at, WallMillis(1));
        7
    });
    let segment = packed.segment();
    assert_eq!((segment.head.submitted_at, segment.head.part), (WallMillis(1), 7));
    let traces = segment.members.iter().map(|member| member.trace).collect::<Vec<_>>();
    assert_eq!(traces, [3, 1, 2, 4].map(trace));
}

/// A kind, whether the submission is plain, and the size of its payload.
fn submissions() -> impl Strategy<Value = Vec<(usize, bool, usize)>> {
    let bytes = prop_oneof![4 => 2_usize..100, 1 => 2_usize..=MAX_PAYLOAD_BYTES];
    prop::collection::vec((0_usize..3, prop::bool::weighted(0.8), bytes), 0..250)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn each_submission_is_in_one_segment_or_a_record(submissions in submissions()) {
        let jobs = submissions.iter().map(|(kind, may_pack, bytes)| {
            let mut job = plain(["sum", "mail", "echo"][*kind], *bytes);
            job.may_pack = *may_pack;
            job.record.policy.timeout = Some(Duration::from_secs(60));
            job
        });
        let jobs = jobs.collect::<Vec<_>>();
        let all = ids(&jobs);
        let place = |id: &String| all.iter().position(|there| there == id).unwrap();
        let (segments, others) = pack(jobs);
        let mut seen = Vec::new();
        for part in segments.iter().chain([&others]) {
            let places = ids(part).iter().map(place).collect::<Vec<_>>();
            prop_assert!(places.is_sorted(), "each part is in order");
            seen.extend(places);
        }
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..all.len()).collect::<Vec<_>>());
        for jobs in segments {
            prop_assert!((usize::from(MIN_PACKED)..=usize::from(MAX_PACKED)).contains(&jobs.len()));
            prop_assert!(jobs.iter().all(|job| is_plain(job) && head(&job.record) == head(&jobs[0].record)));
            let packed = Packed::new(Uuid::nil(), Uuid::nil(), jobs, |_| 0);
            prop_assert!(wire::encode(packed.segment()).len() <= MAX_PACKED_BYTES);
        }
    }
}
