use uuid::Uuid;

use super::*;
use crate::change::{Author, ChangeKind, Noted};
use crate::group::{End, Mark};
use crate::job::{
    Attempt, AttemptOutcome, Ending, JobState, Membership, Payload, Placement, Policy, Role, Verdict,
};
use crate::name::{GroupId, Kind, Lane};
use crate::outcome::Reason;
use crate::wire::decode;

const NOW: WallMillis = WallMillis(9);

fn open() -> JobRecord {
    JobRecord {
        attempts: 1,
        ..JobRecord::new(
            Kind::new("sum").unwrap(),
            Payload::json(*b"{}").unwrap(),
            Uuid::nil(),
            WallMillis(0),
        )
    }
}

/// The record after a hand-back, and the remaining operations of the transaction.
fn requeued(cancel: bool) -> (JobRecord, Vec<Op>) {
    let (job, worker) = (JobId::new("a").unwrap(), WorkerId::new(Uuid::from_u128(7)));
    let assignment = Assignment { cancel, ..Assignment::new(5, 1, WallMillis(1)) };
    let (closed, mut ops) = reclaim(&job, worker, (&assignment, 4), (open(), 3), Ending::Released, &[], NOW);
    assert_eq!(ops[1], Op::Delete { path: path::assignment(worker, &job), version: Some(4) });
    let Op::Set { path, data, version: 3 } = ops.remove(0) else { panic!("{ops:?}") };
    assert_eq!(path, path::record(&job));
    assert_eq!(decode::<JobRecord>(&data).unwrap(), closed);
    (closed, ops.split_off(1))
}

#[test]
fn a_hand_back_of_the_next_attempt_requeues_the_job() {
    let (record, rest) = requeued(false);
    assert_eq!(record.last.map(|last| (last.attempt.number, last.how)), Some((2, AttemptOutcome::Released)));
    assert!(matches!(&rest[..], [Op::Create { data, .. }] if *data == encode(&record.entry(4))), "{rest:?}");
}

/// S12
#[test]
fn a_job_with_a_cancel_flag_is_ended_instead_of_requeued() {
    let (record, rest) = requeued(true);
    assert_eq!(record.state, JobState::Terminal { verdict: Verdict::Cancelled, at: NOW });
    assert_eq!(rest, [], "a cancelled job must not be queued");
}

const DELAY: Delay = Delay { minute: 1, generation: 1, attempt: 2 };

fn laned() -> JobRecord {
    JobRecord {
        placement: Placement { lane: Some(Lane::new("l").unwrap()), ..Placement::default() },
        ..open()
    }
}

fn paths(ops: &[Op]) -> Vec<&str> {
    ops.iter().map(Op::path).collect()
}

/// S6: a turn is never created or deleted in a separate transaction.
#[test]
fn a_turn_is_created_with_its_job_and_deleted_with_its_end() {
    let (job, worker) = (JobId::new("a").unwrap(), WorkerId::new(Uuid::from_u128(7)));
    let turn = path::turn(&laned().turn().unwrap(), &job);
    let attempt = Attempt { number: 2, worker };
    let close_as = |ending| {
        let (closed, next) = laned().close(attempt, ending, NOW, 0);
        close(&job, worker, 3, None, &closed, &next)
    };
    let success = Ending::Succeeded(Payload::json(*b"1").unwrap());
    let last_failure = {
        let (dead, next) =
            JobRecord { failures: 4, ..laned() }.close(attempt, Ending::Failed("x".into()), NOW, 0);
        close(&job, worker, 3, None, &dead, &next)
    };
    let cancelled = |waiting| cancel(&job, 3, &laned().cancel(NOW), &waiting);
    let made = Op::create(turn.clone(), encode(&TurnIndex(4)));
    assert_eq!(submit(&job, &laned(), 4).last(), Some(&made));
    let again = laned().cancel(NOW).reopen();
    let second = path::turn(&again.turn().unwrap(), &job);
    assert_ne!(second, turn, "a retry must get a new turn");
    assert_eq!(reopen(&job, 3, &again, 0).last(), Some(&Op::create(second, encode(&TurnIndex(0)))));
    for (what, ops) in [
        ("success", close_as(success)),
        ("last failure", last_failure),
        ("cancelled run", close_as(Ending::Cancelled)),
        ("cancelled in the queue", cancelled(EntryLocation::Ready(ReadyEntry::of_record(&job, &laned())))),
        ("cancelled in its backoff", cancelled(EntryLocation::Delayed(DELAY))),
    ] {
        assert_eq!(ops.last(), Some(&Op::delete(turn.clone())), "{what}");
        assert!(ops.iter().filter(|op| op.leaves_turn()).count() == 1, "{what}");
        let mut without = ops.clone();
        without_part(&job, &laned().cancel(NOW), &turn, &mut without);
        assert_eq!(without[..], ops[..ops.len() - 1], "{what}");
    }
    for (what, ops) in [
        ("failure", close_as(Ending::Failed("x".into()))),
        ("loss", close_as(Ending::Lost)),
        ("hand-back", close_as(Ending::Released)),
        ("promotion", promote(&job, DELAY, &laned().entry(0))),
        ("quarantine", quarantine(&job, worker, "x")),
        ("release", release(&job, 3, &laned())),
    ] {
        assert!(!paths(&ops).contains(&turn.as_str()), "{what}");
    }
    let assignment = Assignment::new(2, 1, NOW);
    let assigned =
        assign(&ReadyEntry::of_record(&job, &laned()), worker, &assignment, laned().turn().as_ref());
    assert_eq!(assigned.last(), Some(&Op::Check { path: turn, version: 0 }));
}

/// S6, S7: a job's lane and group learn of its end even if an operator deleted other parts of it.
#[test]
fn a_parent_keeps_its_turn_and_frees_turn_and_place_if_its_sub_job_group_was_deleted() {
    let job = JobId::new("a").unwrap();
    let outer = GroupId::new("outer").unwrap();
    let membership = Membership { group: outer.clone(), role: Role::Member(3), counted: true };
    let ended = JobRecord { membership: Some(membership), spawned: true, ..laned() }.cancel(NOW);
    let waiting = EntryLocation::Ready(ReadyEntry::of_record(&job, &laned()));
    let mut ops = cancel(&job, 3, &ended, &waiting);
    let whole = ops.len();
    assert!(!ops.iter().any(Op::leaves_turn), "the turn ends with the sub-jobs");
    assert_eq!(gone_part(&ops, 0, &Reason::BadVersion), None, "the record must not be left out");
    assert_eq!(gone_part(&ops, 1, &Reason::NoNode), None, "the entry must not be left out");
    assert_eq!(
        gone_part(&ops, whole - 1, &Reason::NoAuth),
        None,
        "NoAuth does not mean that a part is absent"
    );
    let mark = gone_part(&ops, whole - 1, &Reason::NoNode).unwrap();
    assert_eq!(mark, path::mark(&GroupId::of_sub_jobs(&job, &ended), Mark::Parent, End::Cancelled));
    without_part(&job, &ended, &mark, &mut ops);
    let turn = path::turn(&ended.turn().unwrap(), &job);
    let instead = [turn, path::place(&outer, 3), path::mark(&outer, Mark::Member(3), End::Cancelled)];
    assert_eq!(paths(&ops)[whole - 1..], instead);
    for gone in instead {
        without_part(&job, &ended, &gone, &mut ops);
    }
    assert_eq!(ops.len(), whole - 1, "its own turn, place and mark can be left out too");
}

#[test]
fn a_job_without_a_lane_needs_no_extra_operation() {
    let (job, worker) = (JobId::new("a").unwrap(), WorkerId::new(Uuid::from_u128(7)));
    let assignment = Assignment::new(2, 1, NOW);
    let success = Ending::Succeeded(Payload::json(*b"1").unwrap());
    let (closed, next) = open().close(Attempt { number: 2, worker }, success, NOW, 0);
    assert_eq!(submit(&job, &open(), 0).len(), 2);
    let at = ReadyEntry::of_record(&job, &open());
    assert_eq!(assign(&at, worker, &assignment, open().turn().as_ref()).len(), 2);
    assert_eq!(close(&job, worker, 3, None, &closed, &next).len(), 2);
}

#[test]
fn a_job_released_from_quarantine_is_due_now_and_gets_a_new_version() {
    let job = JobId::new("a").unwrap();
    let delayed = JobRecord { state: JobState::Open { not_before: Some(NOW) }, ..open() };
    let ops = release(&job, 3, &delayed);
    let delayed = JobRecord { released: true, ..delayed };
    let entry = QueueEntry { not_before: WallMillis::default(), ..delayed.entry(4) };
    let expected = [
        Op::delete(path::quarantine(&job)),
        Op::Set { path: path::record(&job), data: encode(&delayed), version: 3 },
        Op::create(path::ready_entry(&ReadyEntry::of_record(&job, &delayed)), encode(&entry)),
    ];
    assert_eq!(ops, expected);
}

#[test]
fn the_size_of_an_operation_includes_its_path_and_its_data() {
    let set = |path: &str, data: &[u8]| Op::Set { path: path.to_owned(), data: data.to_vec(), version: 0 };
    let least = set("", &[]).bytes();
    assert!(least > 0, "each operation has a header");
    assert_eq!(set("/jobs/a", &[0; 100]).bytes(), least + 107);
    assert_eq!(Op::delete("/jobs/a".to_owned()).bytes(), least + 7);
}

#[test]
fn a_promoted_job_is_queued_without_a_time() {
    let job = JobId::new("a").unwrap();
    let entry = QueueEntry { not_before: NOW, ..open().entry(0) };
    let ready = QueueEntry { not_before: WallMillis::default(), ..entry.clone() };
    let path = path::ready_entry(&ReadyEntry::of(&job, &ready));
    let expected = [Op::delete(path::delayed_entry(DELAY, &job)), Op::create(path, encode(&ready))];
    assert_eq!(promote(&job, DELAY, &entry), expected);
    let first = QueueEntry { attempt: 1, fencing_token: 0, ..entry };
    let path = path::ready_entry(&ReadyEntry::of(&job, &first));
    assert_eq!(promote(&job, DELAY, &first)[1], Op::create(path, Vec::new()), "its path says everything");
}

#[test]
fn a_change_of_a_worker_is_fenced_by_its_version_and_keeps_the_rest() {
    let worker = WorkerId::new(Uuid::from_u128(7));
    let info = WorkerInfo {
        node: crate::name::NodeId::new("n").unwrap(),
        host: "h".into(),
        kinds: vec![Kind::new("sum").unwrap()],
        leases: std::collections::BTreeMap::new(),
        slots: 4,
        tags: vec![],
        codec: 1,
        started_at: NOW,
        former: vec![],
        owner: None,
        draining: false,
        settings: Noted::default(),
    };
    let set = |info: &WorkerInfo| [Op::Set { path: path::worker(worker), data: encode(info), version: 3 }];
    assert_eq!(mark_draining(worker, &info, 3), set(&WorkerInfo { draining: true, ..info.clone() }));
    let settings = Noted::unchanged(WorkerSettings { slots: Some(2), ..WorkerSettings::default() });
    let changed = WorkerInfo { settings: settings.clone(), ..info.clone() };
    assert_eq!(set_worker(worker, &info, settings, 3), set(&changed));
}

#[test]
fn only_the_absent_part_of_an_end_is_left_out() {
    let job = JobId::new("a").unwrap();
    let policy = Policy { dead_letter: true, max_attempts: 1, ..Policy::default() };
    let record = JobRecord { policy, ..laned() };
    let worker = WorkerId::new(Uuid::from_u128(7));
    let failed = Ending::Failed("no disk".to_owned());
    let (dead, next) = record.close(Attempt { number: 1, worker }, failed, NOW, 0);
    let all = close(&job, worker, 3, None, &dead, &next);
    let ((letter, made), turn) = (dead_letter(&job, &dead).unwrap(), path::turn(&dead.turn().unwrap(), &job));
    let without = |gone: &str| {
        let mut ops = all.clone();
        without_part(&job, &dead, gone, &mut ops);
        all.iter().filter(|op| !ops.contains(op)).map(|op| op.path().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(without(&turn), [turn.as_str()]);
    assert_eq!(
        without(&path::record(&letter)),
        [path::record(&letter), path::ready_entry(&ReadyEntry::of_record(&letter, &made))]
    );
    assert_eq!(without(&path::record(&job)), [""; 0], "the record is not a part that can be left out");
    assert_eq!(without("/jobs/00/other"), [""; 0]);
}

#[test]
fn the_author_of_a_resumption_is_noted_in_the_parent() {
    let kind = Kind::new("sum").unwrap();
    let by = Change { what: ChangeKind::Resumed, by: Author::new("ada").unwrap(), at: NOW };
    for (change, data) in [(Some(&by), encode(&by)), (None, Vec::new())] {
        let note = Op::Set { path: path::PAUSES.to_owned(), data, version: ANY_VERSION };
        assert_eq!(unpause(&kind, change), [Op::delete(path::pause(&kind)), note]);
    }
}
