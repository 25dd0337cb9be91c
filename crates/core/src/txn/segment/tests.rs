//! What each transaction of a segment changes. That the promises hold under any order of them, with lost and late writes, is
//! shown by the model check (`crates/sim/tests/exhaustive/segments`).

use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::job::{Payload, Placement, Policy, Priority};
use crate::name::Kind;
use crate::segment::{Head, Member};
use crate::time::WallMillis;
use crate::wire::decode;

const AT: WallMillis = WallMillis(60_000);
const SLOT: &str = "/ready/0/k/10";

fn id() -> SegmentId {
    SegmentId::new(Uuid::from_u128(1), 4, 100).unwrap()
}

fn worker() -> WorkerId {
    WorkerId::new(Uuid::from_u128(7))
}

fn members(numbers: &[u8]) -> Members {
    numbers.iter().copied().collect()
}

/// Four members; the first has a chosen id.
fn body() -> Segment {
    let member = |number: u8| Member {
        payload: Payload::json(*b"1").unwrap(),
        name: (number == 0).then(|| JobId::new("first").unwrap()),
        expires_at: None,
        trace: None,
    };
    let head = Head {
        kind: Kind::new("k").unwrap(),
        policy: Policy::default(),
        placement: Placement::default(),
        priority: Priority::default(),
        submitted_at: AT,
        token: Uuid::from_u128(2),
    };
    Segment { head, members: (0..4).map(member).collect() }
}

fn to() -> Return {
    Return { slot: SLOT.into(), millis: 7 }
}

fn entry() -> WaitingEntry {
    let name = EntryName { millis: 7, segment: id(), nonce: None };
    WaitingEntry { slot: SLOT.into(), name, version: 3, members: Members::below(4) }
}

/// A slice of all members, of which the worker may have begun the first two.
fn held() -> AssignedSlice {
    let slice = Slice {
        given: Members::below(4),
        over: Members::NONE,
        cancel: Members::NONE,
        begun: 2,
        assigned_at: AT,
        lease: Duration::from_secs(60),
    };
    AssignedSlice { worker: worker(), name: SliceName { segment: id(), epoch: 5, seq: 9 }, version: 4, slice }
}

fn extracted(number: u8) -> Extracted {
    let (job, record) = (body().job(id(), number).unwrap(), body().record(number).unwrap());
    Extracted { number, job, is_named: number == 0, record, next: Next::Queue }
}

/// Each operation with its path, its version, and the members in the data of an entry or of a slice: those that are left.
fn shown(ops: &[Op]) -> Vec<String> {
    let shorten = |path: &str| {
        path.replace(&path::segment(id()), "SEGMENT")
            .replace(&path::slice(worker(), held().name), "SLICE")
            .replace(&format!("{SLOT}/{}", entry().name), "ENTRY")
            .replace(&id().to_string(), "ID")
            .replace(&worker().to_string(), "WORKER")
    };
    let left = |data: &[u8]| match (decode::<Slice>(data), decode::<Members>(data)) {
        (Ok(slice), _) => format!(" {}/{}/{}", slice.given, slice.over, slice.cancel),
        (_, Ok(members)) => format!(" {members}"),
        _ => String::new(),
    };
    let show = |op: &Op| match op {
        Op::Create { path, data, .. } => format!("create {}{}", shorten(path), left(data)),
        Op::Set { path, data, version } => format!("set {} v{version}{}", shorten(path), left(data)),
        Op::Delete { path, version } => format!("delete {} v{version:?}", shorten(path)),
        other => panic!("{other:?}"),
    };
    ops.iter().map(show).collect()
}

#[track_caller]
fn changes(ops: &[Op], expected: &[&str]) {
    assert_eq!(shown(ops), expected);
}

#[test]
fn a_submission_creates_the_segment_its_entry_and_a_pointer_for_each_chosen_id() {
    let first = path::record(&JobId::new("first").unwrap());
    changes(&submit(id(), &body(), &to()), &["create SEGMENT", "create ENTRY", &format!("create {first}")]);
}

#[test]
fn an_assignment_takes_its_members_from_the_entry() {
    let part = |given| Slice { given, ..held().slice };
    let slice = |given| (worker(), held().name, part(given));
    changes(&assign(&entry(), &[slice(members(&[0, 1]))]), &["set ENTRY v3 c", "create SLICE 3/0/0"]);
    changes(&assign(&entry(), &[slice(Members::below(4))]), &["delete ENTRY vSome(3)", "create SLICE f/0/0"]);
}

#[test]
fn the_number_of_members_that_may_begin_never_falls() {
    let raised = |begun| match raise(&held(), begun) {
        Op::Set { data, version: 4, .. } => decode::<Slice>(&data).unwrap().begun,
        other => panic!("{other:?}"),
    };
    assert_eq!((raised(1), raised(2), raised(3)), (2, 2, 3));
}

#[test]
fn ended_members_leave_the_slice_with_a_chunk_for_each_kind_of_end() {
    let results = Results(vec![(0, AT, Payload::json(*b"2").unwrap())]);
    changes(
        &end(&held(), &results, members(&[1]), &[extracted(2)]),
        &[
            "set SLICE v4 f/7/0",
            "create SEGMENT/s1,5,9",
            "create SEGMENT/c2,5,9",
            "create SEGMENT/x4,5,9",
            &format!("create {}", shown_record(2)),
            &shown_entry(2),
        ],
    );
    let all = end(&held(), &Results(Vec::new()), Members::below(4), &[]);
    changes(&all, &["delete SLICE vSome(4)", "create SEGMENT/cf,5,9"]);
}

fn shown_record(number: u8) -> String {
    path::record(&extracted(number).job).replace(&id().to_string(), "ID")
}

fn shown_entry(number: u8) -> String {
    let member = extracted(number);
    shown(&[wait(&member.job, &member.record, member.version())]).remove(0)
}

#[test]
fn members_that_are_given_back_wait_under_a_name_of_their_own() {
    let ops = give_back(&held(), members(&[2, 3]), &to());
    changes(&ops[..1], &["set SLICE v4 3/0/0"]);
    let nonce = Some(Nonce { epoch: 5, seq: 9, version: 4 });
    let name = EntryName { millis: 7, segment: id(), nonce };
    let Op::Create { path, data, .. } = &ops[1] else { panic!("{ops:?}") };
    assert_eq!((path, decode::<Members>(data).unwrap()), (&format!("{SLOT}/{name}"), members(&[2, 3])));
    assert_eq!(ops.len(), 2);
}

#[test]
fn a_running_member_is_extracted_with_its_assignment() {
    for (number, record) in [(0, "set first v0"), (1, "create record")] {
        let member = extracted(number);
        let path = shown_record(number);
        let record = record.replace("first", &path).replace("record", &path);
        let assigned = format!("create /assignments/WORKER/{}", member.job).replace(&id().to_string(), "ID");
        let [over, chunk] = [number + 1, number + 1].map(|mask| format!("{mask:x}"));
        let assignment = Assignment::new(5, 1, AT);
        let (slice, chunk) = (format!("set SLICE v4 f/{over}/0"), format!("create SEGMENT/x{chunk},5,9"));
        changes(&extract_running(&held(), &member, &assignment), &[&slice, &record, &assigned, &chunk]);
    }
}

#[test]
fn only_members_of_the_slice_are_flagged() {
    let held = AssignedSlice { slice: Slice { given: members(&[0, 1]), ..held().slice }, ..held() };
    changes(&[flag(&held, members(&[1, 2]))], &["set SLICE v4 3/0/2"]);
}

#[test]
fn a_recovery_requeues_only_members_that_the_worker_had_not_begun() {
    let held = AssignedSlice { slice: Slice { cancel: members(&[3]), ..held().slice }, ..held() };
    let closed = [extracted(0), extracted(1)];
    let ops = recover(&held, &closed, &to());
    assert_eq!(shown(&ops)[0], "delete SLICE vSome(4)");
    assert!(matches!(&ops[1], Op::Create { data, .. } if decode::<Members>(data) == Ok(members(&[2]))));
    let rest = [
        "create SEGMENT/c8,5,9",
        "create SEGMENT/x3,5,9",
        &format!("set {} v0", shown_record(0)),
        &shown_entry(0),
        &format!("create {}", shown_record(1)),
        &shown_entry(1),
    ];
    changes(&ops[2..], &rest);
}

#[test]
fn a_waiting_member_is_cancelled_alone_and_an_entry_ends_as_a_whole() {
    let member = Extracted { next: Next::Terminal, ..extracted(1) };
    let record = format!("create {}", shown_record(1));
    changes(&cancel_member(&entry(), &member), &["set ENTRY v3 d", "create SEGMENT/x2", &record]);
    for (how, chunk) in [(ChunkEnd::Cancelled, "create SEGMENT/cf"), (ChunkEnd::Expired, "create SEGMENT/df")]
    {
        changes(&end_entry(&entry(), how), &["delete ENTRY vSome(3)", chunk]);
    }
}

#[test]
fn a_member_is_opened_again_under_a_chunk_that_can_exist_once() {
    let record = format!("create {}", shown_record(1));
    changes(&reopen(id(), &extracted(1)), &[&record, &shown_entry(1), "create SEGMENT/x2"]);
}

#[test]
fn a_segment_is_removed_with_the_pointers_of_members_without_a_record() {
    let chunk = |end, numbers: &[u8]| ChunkName::of_slice(end, members(numbers), held().name);
    let chunks = [chunk(ChunkEnd::Succeeded, &[0, 1]), chunk(ChunkEnd::Extracted, &[2, 3])];
    let [first, second] = ["delete SEGMENT/s3,5,9 vSome(0)", "delete SEGMENT/xc,5,9 vSome(0)"];
    let pointer = format!("delete {} vSome(0)", shown_record(0));
    changes(&remove(id(), &body(), &chunks), &[first, second, &pointer, "delete SEGMENT vSome(0)"]);
    let chunks = [chunk(ChunkEnd::Extracted, &[0, 1, 2, 3])];
    changes(&remove(id(), &body(), &chunks), &["delete SEGMENT/xf,5,9 vSome(0)", "delete SEGMENT vSome(0)"]);
}
