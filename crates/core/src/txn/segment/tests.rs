//! What each transaction of a segment changes. That the promises hold under any order of them, with lost and late writes, is
//! shown by the model check (`crates/model-check/tests/exhaustive/segments`).

use uuid::Uuid;

use super::*;
use crate::job::Payload;
use crate::segment::MemberId;
use crate::segment::fixture::{id, segment};
use crate::time::WallMillis;
use crate::txn::Subject;
use crate::wire::decode;

const AT: WallMillis = WallMillis(1_700_000_000_123);

fn worker() -> WorkerId {
    WorkerId::new(Uuid::from_u128(7))
}

fn job(number: u8) -> JobId {
    MemberId { segment: id(), number }.job()
}

fn assignment() -> Assignment {
    Assignment::new(1, 5, AT)
}

/// Assigned, after the first member has ended.
fn held() -> AssignedSegment {
    let open = id().members().without(Members::one(0));
    AssignedSegment { id: id(), worker: worker(), assignment: assignment(), version: 3, open }
}

fn results(numbers: &[u8]) -> Results {
    let result = |number: &u8| (*number, AT, Payload::json(*b"2").unwrap());
    Results { worker: worker(), assigned_at: AT, results: numbers.iter().map(result).collect() }
}

fn created<'a>(ops: &'a [Op], at: &str) -> &'a [u8] {
    let created = ops.iter().find_map(|op| match op {
        Op::Create { path, data, .. } if path == at => Some(data),
        _ => None,
    });
    created.unwrap_or_else(|| panic!("{at} is not created by {ops:#?}"))
}

/// The paths without the place of the segment.
fn paths(ops: &[Op]) -> Vec<String> {
    let short = |op: &Op| op.path().replace(&path::segment(id()), "S").replace(&id().to_string(), "s");
    ops.iter().map(short).collect()
}

#[test]
fn a_segment_waits_under_its_own_id() {
    let ops = submit(id(), &segment());
    assert_eq!(paths(&ops), ["S", "/ready/0/sum/28332793.3/201239@s+1.1"]);
    assert_eq!(decode(created(&ops, &path::segment(id()))), Ok(segment()));
    assert_eq!(ops.iter().map(Op::subject).collect::<Vec<_>>(), [Subject::Record, Subject::Entry]);
}

/// An assignment that other members still need is set, so that a concurrent extraction by the leader is rejected.
#[test]
fn results_are_stored_in_the_transaction_that_changes_the_assignment() {
    let ops = succeed(&held(), &results(&[1, 3]));
    assert!(matches!(&ops[0], Op::Set { version: 3, .. }), "{ops:?}");
    assert_eq!(decode(created(&ops, &format!("{}/sa", path::segment(id())))), Ok(results(&[1, 3])));
    let rest = held().without(results(&[1, 3]).members()).unwrap();
    assert_eq!((rest.version, rest.open), (4, Members::one(2)));
    let ops = succeed(&rest, &results(&[2]));
    assert!(matches!(&ops[0], Op::Delete { version: Some(4), .. }), "{ops:?}");
    assert_eq!(rest.without(Members::one(2)), None);
}

/// What a submission and an assignment of single jobs would have written.
#[test]
fn extracted_members_are_in_the_state_of_jobs_that_were_submitted_alone() {
    let members = [1, 2].into_iter().collect();
    let ops = extract_assigned(&held(), &segment(), members, Members::NONE);
    assert!(matches!(&ops[0], Op::Set { version: 3, .. }), "{ops:?}");
    created(&ops, &format!("{}/x6", path::segment(id())));
    for number in [1, 2] {
        let record = segment().record(number).unwrap();
        assert_eq!(decode(created(&ops, &path::record(&job(number)))), Ok(record.clone()));
        let assigned = created(&ops, &path::assignment(worker(), &job(number)));
        assert!(decode::<Assignment>(assigned).unwrap().agrees(&record));
    }
    assert_eq!(ops.len(), 6);
    let all = extract_assigned(&held(), &segment(), members, Members::one(3));
    assert!(matches!(&all[0], Op::Delete { version: Some(3), .. }), "{all:?}");
    let submitted = crate::txn::submit(&job(3), &segment().record(3).unwrap(), 0);
    assert_eq!(all[6..], submitted, "a member that has not begun waits");

    let ops = extract_waiting(id(), &segment());
    assert_eq!(ops[0], Op::delete(path::ready_entry(&segment().waits_at(id()))));
    created(&ops, &format!("{}/xf", path::segment(id())));
    for number in 0..4 {
        for op in crate::txn::submit(&job(number), &segment().record(number).unwrap(), 0) {
            assert!(ops.contains(&op), "{op:?} is not in {ops:#?}");
        }
    }
    assert_eq!(ops.len(), 2 + 2 * 4);
}

#[test]
fn the_open_members_of_a_segment_in_quarantine_are_released() {
    let ops = release(id(), &segment(), Members::one(1));
    assert_eq!(ops[0].path(), path::quarantine(&id().job()));
    let record = JobRecord { released: true, ..segment().record(1).unwrap() };
    assert_eq!(decode(created(&ops, &path::record(&job(1)))), Ok(record));
    created(&ops, &format!("{}/x2", path::segment(id())));
    assert_eq!(ops.len(), 2 + 2);
}

#[test]
fn a_segment_is_removed_with_the_chunks_that_were_listed() {
    let ops = remove(id(), &Chunks::of_names(["s7", "x8", "x1"]));
    assert_eq!(paths(&ops), ["S/s7", "S/x8", "S/x1", "S"]);
    assert!(ops.iter().all(|op| op.version() == Some(0)));
}
