use uuid::Uuid;

use super::*;
use crate::job::{AttemptEndKind, JobState, Payload, Placement, Policy, Verdict};
use crate::name::Kind;
use crate::wire::decode;

const NOW: WallMillis = WallMillis(9);

fn open() -> JobRecord {
    JobRecord {
        kind: Kind::new("sum").unwrap(),
        payload: Payload::json(*b"{}").unwrap(),
        policy: Policy::default(),
        placement: Placement::default(),
        token: Uuid::nil(),
        submitted_at: WallMillis(0),
        generation: 1,
        attempts: 1,
        failures: 0,
        losses: 0,
        last: None,
        last_error: None,
        state: JobState::Open { not_before: None },
    }
}

/// What `requeue` makes of the record, and the rest of its transaction.
fn requeued(cancel: bool) -> (JobRecord, Vec<Op>) {
    let (job, worker) = (JobId::new("a").unwrap(), WorkerId::new(Uuid::from_u128(7)));
    let assignment = Assignment { attempt: 5, epoch: 1, cancel, assigned_at: WallMillis(1) };
    let mut ops = requeue(&job, worker, 3, &assignment, 4, open(), NOW);
    assert_eq!(ops[1], Op::Delete { path: path::assignment(worker, &job), version: Some(4) });
    let Op::Set { path, data, version: 3 } = ops.remove(0) else { panic!("{ops:?}") };
    assert_eq!(path, path::record(&job));
    (decode(&data).unwrap(), ops.split_off(1))
}

#[test]
fn a_job_is_queued_again_by_a_hand_back_of_its_next_attempt() {
    let (record, rest) = requeued(false);
    assert_eq!(record.last.map(|last| (last.attempt.number, last.how)), Some((2, AttemptEndKind::Released)));
    assert!(matches!(&rest[..], [Op::Create { data, .. }] if *data == encode(&record.entry())), "{rest:?}");
}

/// S12
#[test]
fn a_cancel_that_came_before_a_job_was_to_be_queued_again_ends_it() {
    let (record, rest) = requeued(true);
    assert_eq!(record.state, JobState::Terminal { verdict: Verdict::Cancelled, at: NOW });
    assert_eq!(rest, [], "it is in no queue");
}
