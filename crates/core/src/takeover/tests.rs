use std::collections::BTreeMap;

use uuid::Uuid;

use super::*;
use crate::change::Noted;
use crate::job::{Attempt, Ending, Payload};
use crate::name::{Kind, NodeId, Tag};
use crate::outcome::Outcome;
use crate::path;
use crate::ready::ReadyEntry;
use crate::time::WallMillis;
use crate::wire::encode;
use crate::zookeeper::ZooKeeper;

const FROM: WorkerId = WorkerId::new(Uuid::from_u128(1));
const TO: WorkerId = WorkerId::new(Uuid::from_u128(2));
const THIRD: WorkerId = WorkerId::new(Uuid::from_u128(3));
const NOW: WallMillis = WallMillis(9);

fn job() -> JobId {
    JobId::new("a").unwrap()
}

fn kind() -> Kind {
    Kind::new("mail").unwrap()
}

fn record() -> JobRecord {
    JobRecord::new(kind(), Payload::json(*b"1").unwrap(), Uuid::nil(), WallMillis(0))
}

fn info() -> WorkerInfo {
    WorkerInfo {
        node: NodeId::new("n").unwrap(),
        host: "h".into(),
        kinds: vec![kind()],
        leases: BTreeMap::new(),
        slots: 0,
        tags: vec![],
        codec: 1,
        started_at: NOW,
        former: vec![],
        owner: None,
        draining: false,
        settings: Noted::default(),
    }
}

/// A namespace with three workers, in which the first one has the first attempt of the job.
fn stage() -> ZooKeeper {
    let mut zk = ZooKeeper::new();
    for worker in [FROM, TO, THIRD] {
        zk.put(&path::inbox(worker), Vec::new(), 0);
        zk.put(&path::worker(worker), encode(&info()), 0);
    }
    zk.put(&path::record(&job()), encode(&record()), 0);
    zk.put(&path::assignment(FROM, &job()), encode(&Assignment::new(1, 1, NOW)), 0);
    zk
}

fn commit(zk: &mut ZooKeeper, ops: &[Op]) -> Outcome<()> {
    zk.commit(zk.operator, ops)
}

fn held(token: i32) -> HeldAttempt {
    HeldAttempt { job: job(), submission: Uuid::nil(), generation: 1, attempt: 1, fencing_token: token }
}

fn look<T: crate::wire::Stored>(zk: &ZooKeeper, path: &str) -> Lookup<T> {
    Lookup::of(zk.get(path).map(|znode| (&znode.data[..], znode.version)))
}

fn seen(zk: &ZooKeeper, from: WorkerId, to: WorkerId) -> Seen {
    Seen {
        registration: look(zk, &path::worker(to)),
        new: look(zk, &path::assignment(to, &job())),
        old: look(zk, &path::assignment(from, &job())),
        record: look(zk, &path::record(&job())),
    }
}

fn decided(zk: &ZooKeeper, held: &HeldAttempt, from: WorkerId, to: WorkerId) -> Decision {
    decide(held, from, to, &seen(zk, from, to))
}

fn transaction(decision: Decision) -> Vec<Op> {
    match decision {
        Decision::Commit(_, ops) => ops,
        other => panic!("{other:?}"),
    }
}

/// Closes the attempt as its worker does.
fn close(zk: &ZooKeeper, worker: WorkerId, token: i32) -> Vec<Op> {
    let Lookup::Found(record, _) = look::<JobRecord>(zk, &path::record(&job())) else { panic!() };
    let result = Ending::Succeeded(Payload::json(*b"2").unwrap());
    let (record, next) = record.close(Attempt { number: 1, worker }, result, NOW, 0);
    txn::close(&job(), worker, token, None, &record, &next)
}

#[test]
fn a_moved_attempt_keeps_all_but_its_token() {
    let mut zk = stage();
    let decision = decided(&zk, &held(0), FROM, TO);
    assert!(matches!(decision, Decision::Commit(1, _)), "{decision:?}");
    assert_eq!(commit(&mut zk, &transaction(decision)), Outcome::Applied(()));
    assert_eq!(look::<JobRecord>(&zk, &path::record(&job())), Lookup::Found(record(), 1));
    assert_eq!(look::<Assignment>(&zk, &path::assignment(FROM, &job())), Lookup::Absent);
    let moved = Assignment { fencing_token: 1, moved_from: Some(0), ..Assignment::new(1, 1, NOW) };
    assert_eq!(look::<Assignment>(&zk, &path::assignment(TO, &job())), Lookup::Found(moved, 0));
}

#[test]
fn of_a_close_and_a_move_exactly_one_commits() {
    let mut zk = stage();
    let (moves, closes) = (transaction(decided(&zk, &held(0), FROM, TO)), close(&zk, FROM, 0));
    let mut other = stage();
    assert_eq!(commit(&mut zk, &moves), Outcome::Applied(()));
    assert!(matches!(commit(&mut zk, &closes), Outcome::Rejected(_)));
    let later = close(&zk, TO, 1);
    assert_eq!(commit(&mut zk, &later), Outcome::Applied(()));
    assert_eq!(commit(&mut other, &closes), Outcome::Applied(()));
    assert!(matches!(commit(&mut other, &moves), Outcome::Rejected(_)));
    assert_eq!(decided(&other, &held(0), FROM, TO), Decision::Refuse(Refusal::NotHeld));
}

#[test]
fn a_lost_answer_is_repaired_at_the_same_worker_and_at_a_third_one() {
    let mut zk = stage();
    let moves = transaction(decided(&zk, &held(0), FROM, TO));
    assert_eq!(commit(&mut zk, &moves), Outcome::Applied(()));
    assert!(matches!(commit(&mut zk, &moves), Outcome::Rejected(_)), "a late second write");
    for token in [0, 1] {
        assert_eq!(decided(&zk, &held(token), FROM, TO), Decision::Moved(1));
    }
    let again = transaction(decided(&zk, &held(0), TO, THIRD));
    assert_eq!(commit(&mut zk, &again), Outcome::Applied(()));
    assert_eq!(decided(&zk, &held(1), TO, THIRD), Decision::Moved(2));
    assert_eq!(
        decided(&zk, &held(0), TO, THIRD),
        Decision::Refuse(Refusal::NotHeld),
        "two answers were lost: the token is that of neither"
    );
}

#[test]
fn only_the_owner_of_an_open_attempt_moves_it() {
    let zk = stage();
    let refused = |held: &HeldAttempt, seen: &Seen| decide(held, FROM, TO, seen);
    let not_held = Decision::Refuse(Refusal::NotHeld);
    let there = seen(&zk, FROM, TO);
    let reused = HeldAttempt { submission: Uuid::from_u128(5), ..held(0) };
    let others =
        [held(1), HeldAttempt { generation: 2, ..held(0) }, HeldAttempt { attempt: 2, ..held(0) }, reused];
    for other in others {
        assert_eq!(refused(&other, &there), not_held, "{other:?}");
    }
    let newer = Seen { record: Lookup::Found(record(), 1), ..there.clone() };
    assert_eq!(refused(&held(0), &newer), not_held, "the assignment names an earlier version of the record");
    let reopened = JobRecord { generation: 2, ..record() };
    assert_eq!(refused(&held(0), &Seen { record: Lookup::Found(reopened, 0), ..there.clone() }), not_held);
    let over = record().cancel(NOW);
    assert_eq!(refused(&held(0), &Seen { record: Lookup::Found(over, 0), ..there.clone() }), not_held);
    let unreadable = Lookup::Unreadable { why: "newer".into(), newer: true, version: 0 };
    assert_eq!(refused(&held(0), &Seen { record: unreadable, ..there.clone() }), not_held);
    assert_eq!(refused(&held(0), &Seen { old: Lookup::Absent, ..there }), not_held);
}

#[test]
fn a_worker_that_does_not_take_the_job_does_not_take_it_over() {
    let there = seen(&stage(), FROM, TO);
    let refused = |registration, record| {
        let seen = Seen { registration, record: Lookup::Found(record, 0), ..there.clone() };
        decide(&held(0), FROM, TO, &seen)
    };
    let not_served = Decision::Refuse(Refusal::NotServed);
    assert_eq!(refused(Lookup::Absent, record()), not_served);
    let draining = WorkerInfo { draining: true, ..info() };
    assert_eq!(refused(Lookup::Found(draining, 0), record()), not_served);
    let offers = WorkerInfo { slots: 1, ..info() };
    assert_eq!(
        refused(Lookup::Found(offers, 0), record()),
        not_served,
        "the leader has read its inbox already"
    );
    let other_kind = WorkerInfo { kinds: vec![], ..info() };
    assert_eq!(refused(Lookup::Found(other_kind, 0), record()), not_served);
    let mut tagged = record();
    tagged.placement.tags = vec![Tag::new("gpu").unwrap()];
    assert_eq!(refused(Lookup::Found(info(), 0), tagged), not_served);
}

#[test]
fn a_drain_between_the_read_and_the_write_rejects_the_move() {
    let mut zk = stage();
    let moves = transaction(decided(&zk, &held(0), FROM, TO));
    assert_eq!(commit(&mut zk, &txn::mark_draining(TO, &info(), 0)), Outcome::Applied(()));
    assert!(matches!(commit(&mut zk, &moves), Outcome::Rejected(_)));
}

/// S20
#[test]
fn a_move_that_is_applied_after_the_first_offer_is_rejected() {
    let mut zk = stage();
    let moves = transaction(decided(&zk, &held(0), FROM, TO));
    let offer = WorkerInfo { slots: 4, ..info() };
    let offers = [Op::Set { path: path::worker(TO), data: encode(&offer), version: 0 }];
    assert_eq!(commit(&mut zk, &offers), Outcome::Applied(()));
    assert!(matches!(commit(&mut zk, &moves), Outcome::Rejected(_)));
}

#[test]
fn a_cancel_that_the_move_has_not_read_rejects_it_and_a_known_one_is_kept() {
    let mut zk = stage();
    let moves = transaction(decided(&zk, &held(0), FROM, TO));
    assert_eq!(
        commit(&mut zk, &[txn::flag_cancel(&job(), FROM, 0, &Assignment::new(1, 1, NOW))]),
        Outcome::Applied(())
    );
    assert!(matches!(commit(&mut zk, &moves), Outcome::Rejected(_)));
    let moves = transaction(decided(&zk, &held(0), FROM, TO));
    assert_eq!(commit(&mut zk, &moves), Outcome::Applied(()));
    let Lookup::Found(moved, _) = look::<Assignment>(&zk, &path::assignment(TO, &job())) else { panic!() };
    assert!(moved.cancel);
}

#[test]
fn an_attempt_with_sub_jobs_is_refused() {
    let there = seen(&stage(), FROM, TO);
    let parent = JobRecord { spawned: true, ..record() };
    let assigned = Assignment { spawned: true, ..Assignment::new(1, 1, NOW) };
    for seen in [
        Seen { record: Lookup::Found(parent, 0), ..there.clone() },
        Seen { old: Lookup::Found(assigned, 0), ..there },
    ] {
        assert_eq!(decide(&held(0), FROM, TO, &seen), Decision::Refuse(Refusal::HasSubJobs));
    }
}

#[test]
fn a_move_that_arrives_after_the_job_was_assigned_again_is_rejected() {
    let mut zk = stage();
    let moves = transaction(decided(&zk, &held(0), FROM, TO));
    let (released, next) = record().close(Attempt { number: 1, worker: FROM }, Ending::Released, NOW, 0);
    let entry = ReadyEntry::of_record(&job(), &released);
    zk.make_parents(&path::ready_entry(&entry));
    let back = txn::close(&job(), FROM, 0, None, &released, &next);
    assert_eq!(commit(&mut zk, &back), Outcome::Applied(()));
    let second = Assignment::new(2, 1, NOW);
    assert_eq!(commit(&mut zk, &txn::assign(&entry, FROM, &second, None)), Outcome::Applied(()));
    assert!(
        matches!(commit(&mut zk, &moves), Outcome::Rejected(_)),
        "the new assignment has the same version"
    );
}
