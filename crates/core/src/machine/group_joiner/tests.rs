//! Tests of the decision after a look, and of lost answers.

use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::group::{Idle, Parent, Stage, Stop};
use crate::job::{Assignment, JobRecord, Membership, Payload, Role};
use crate::machine::worker_registry::recovery::Stored;
use crate::name::{Kind, Lane, WorkerId};
use crate::outcome::{Reason, Rejection};
use crate::path;
use crate::ready::ReadyEntry;
use crate::txn::EntryLocation;
use crate::wire;

const NOW: WallMillis = WallMillis(9);

fn id() -> GroupId {
    GroupId::new("g").unwrap()
}

fn record() -> GroupRecord {
    GroupRecord::new(Kind::new("sum").unwrap(), Uuid::nil(), WallMillis(1))
}

fn sub_jobs() -> GroupRecord {
    let outer = Membership { group: GroupId::new("outer").unwrap(), role: Role::Member(3), counted: true };
    let parent = Parent {
        job: JobId::new("p:outer:3").unwrap(),
        kind: Kind::new("p").unwrap(),
        generation: 1,
        finish: true,
        first: None,
        membership: Some(outer),
        depth: 1,
        lane: Some(Lane::new("x").unwrap()),
        outer_lanes: Vec::new(),
    };
    GroupRecord { parent: Some(parent), ..record() }
}

fn state(record: GroupRecord) -> GroupState {
    GroupState::new(record, 5, NOW)
}

/// Returns the machine with this group seen, and the effects of a look with this result.
fn looked(state: GroupState) -> (GroupJoiner, Vec<Effect>) {
    let mut joiner = GroupJoiner::new(7);
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Resync, &mut out);
    joiner.handle(NOW, Event::Seen(vec![id()]), &mut out);
    assert_eq!(out, [Effect::Look(id())]);
    out.clear();
    joiner.handle(NOW, Event::Looked(id(), Lookup::Found(Box::new(state))), &mut out);
    (joiner, out)
}

/// Returns the committed operations as short text.
fn committed(out: &[Effect]) -> Vec<String> {
    let ops = out.iter().find_map(|effect| match effect {
        Effect::Commit(_, ops) => Some(ops),
        _ => None,
    });
    let kind = |op: &Op| match op {
        Op::Check { path, version } => format!("check {path} {version}"),
        Op::Create { path, .. } => format!("create {path}"),
        Op::Set { path, version, .. } => format!("set {path} {version}"),
        Op::Delete { path, .. } => format!("delete {path}"),
    };
    ops.map(|ops| ops.iter().map(kind).collect()).unwrap_or_default()
}

/// S7
#[test]
fn a_complete_sealed_group_gets_its_join_in_one_transaction() {
    let complete =
        GroupState { ended: 2, below: Some(2), ..state(GroupRecord { total: Some(2), ..record() }) };
    let (_, out) = looked(complete);
    let join = JobId::new("sum.join:@g").unwrap();
    let committed = committed(&out);
    assert_eq!(
        committed[..3],
        [
            "check /epoch 7".to_owned(),
            format!("set {} 5", path::group(&id())),
            format!("create {}", path::record(&join)),
        ]
    );
    let entry = committed[3].strip_prefix("create ").map(path::parse);
    assert!(matches!(entry, Some(path::Place::Ready(entry)) if *entry.job() == join), "{committed:?}");
}

/// S7: a member that was deleted by an operator and submitted again has a mark of each life.
#[test]
fn marks_are_counted_by_member_and_not_by_number_of_marks() {
    let twice = GroupState { ended: 2, below: Some(1), ..state(GroupRecord { total: Some(2), ..record() }) };
    assert_eq!(looked(twice).1, []);
    let open =
        GroupState { ended: 2, below: Some(2), open: 1, ..state(GroupRecord { total: Some(2), ..record() }) };
    assert_eq!(looked(open).1, []);
}

#[test]
fn a_stopped_group_without_a_join_admits_no_further_members() {
    let plain = GroupRecord { fail_fast: true, join: false, ..record() };
    let (mut joiner, out) = looked(GroupState { ended: 1, open: 1, failed: Some(0), ..state(plain) });
    assert_eq!(committed(&out).len(), 2);
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Committed(id(), Outcome::Applied(())), &mut out);
    let [Effect::Advanced(_, stopped), _] = &out[..] else { panic!("{out:?}") };
    assert_eq!((stopped.stage, stopped.stopped, stopped.closed), (Stage::Open, Some(Stop::Member(0)), true));
    let (_, out) = looked(GroupState { ended: 1, open: 1, ..state(*stopped.clone()) });
    assert_eq!(out, [Effect::Find(id(), Cursor::default())]);
    let (_, out) = looked(GroupState { ended: 2, ..state(*stopped.clone()) });
    assert_eq!(committed(&out).len(), 2, "done");
}

/// S7
#[test]
fn a_group_without_a_total_or_with_members_left_waits() {
    for waits in [
        GroupState { ended: 2, ..state(record()) },
        GroupState { ended: 1, ..state(GroupRecord { total: Some(2), ..record() }) },
    ] {
        assert_eq!(looked(waits).1, []);
    }
}

#[test]
fn the_next_look_follows_when_the_open_members_have_ended() {
    let (mut joiner, _) =
        looked(GroupState { ended: 1, ..state(GroupRecord { total: Some(4), ..record() }) });
    let mut out = Vec::new();
    for number in 0..3 {
        assert_eq!(out, [], "{number}");
        joiner.handle(NOW, Event::Ended(id(), Mark::Member(number), End::Succeeded), &mut out);
    }
    assert_eq!(out, [Effect::Look(id())]);
}

#[test]
fn ends_during_a_look_cause_another_look() {
    let (mut joiner, _) =
        looked(GroupState { ended: 0, ..state(GroupRecord { total: Some(1), ..record() }) });
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Changed(id()), &mut out);
    joiner.handle(NOW, Event::Ended(id(), Mark::Member(0), End::Succeeded), &mut out);
    let before = state(GroupRecord { total: Some(1), ..record() });
    out.clear();
    joiner.handle(NOW, Event::Looked(id(), Lookup::Found(Box::new(before))), &mut out);
    assert_eq!(out, [Effect::Look(id())]);
}

#[test]
fn the_first_failure_of_a_fail_fast_group_joins_it_immediately() {
    let failed = GroupState {
        ended: 1,
        open: 4,
        failed: Some(3),
        ..state(GroupRecord { total: Some(9), fail_fast: true, ..record() })
    };
    let (mut joiner, out) = looked(failed.clone());
    assert_eq!(committed(&out).len(), 4);
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Committed(id(), Outcome::Applied(())), &mut out);
    let [Effect::Advanced(_, stopped), Effect::Look(_)] = &out[..] else { panic!("{out:?}") };
    assert_eq!((stopped.stage, stopped.stopped), (Stage::Joining, Some(Stop::Member(3))));
    let stopped = stopped.clone();
    out.clear();
    let joining = GroupState { record: *stopped, version: 6, ..failed };
    joiner.handle(NOW, Event::Looked(id(), Lookup::Found(Box::new(joining))), &mut out);
    assert_eq!(out, [Effect::Find(id(), Cursor::default())]);
}

#[test]
fn open_members_of_a_stopped_group_are_cancelled_with_the_epoch_check() {
    let stopped = GroupRecord { stopped: Some(Stop::Member(0)), stage: Stage::Joining, ..record() };
    let (mut joiner, out) = looked(GroupState { ended: 1, open: 1, ..state(stopped) });
    assert_eq!(out, [Effect::Find(id(), Cursor::default())]);
    let member = Membership { group: id(), role: Role::Member(1), counted: true };
    let job = JobRecord {
        membership: Some(member),
        ..JobRecord::new(Kind::new("sum").unwrap(), Payload::json(*b"1").unwrap(), Uuid::nil(), NOW)
    };
    let name = JobId::new("sum:g:1").unwrap();
    let rest = OpenMember { job: name.clone(), location: waits(&name, &job), record: Stored::Value(job, 0) };
    let MemberLocation::Waits(waiting) = &rest.location else { panic!("{rest:?}") };
    let entry = waiting.path(&name);
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Found(id(), Ok((vec![rest], None))), &mut out);
    let [Effect::Cancel(_, batch)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(batch.ops().next(), Some(&txn::fence(7)));
    let paths = batch.ops().map(Op::path).collect::<Vec<_>>();
    assert_eq!(paths[..4], [path::EPOCH.to_owned(), path::record(&name), entry, path::place(&id(), 1)]);
    assert_eq!(paths[4], path::mark(&id(), Mark::Member(1), End::Cancelled));
}

/// A member that waits for its next attempt, and whose last attempt created sub-jobs.
#[test]
fn a_waiting_parent_whose_sub_jobs_group_an_operator_deleted_ends_its_own_place() {
    let stopped = GroupRecord { stopped: Some(Stop::Member(0)), stage: Stage::Joining, ..record() };
    let (mut joiner, _) = looked(GroupState { ended: 1, open: 1, ..state(stopped) });
    let member = Membership { group: id(), role: Role::Member(1), counted: true };
    let job = JobRecord::new(Kind::new("sum").unwrap(), Payload::json(*b"1").unwrap(), Uuid::nil(), NOW);
    let job = JobRecord { membership: Some(member), spawned: true, ..job };
    let name = JobId::new("sum:g:1").unwrap();
    let rest = OpenMember { job: name.clone(), location: waits(&name, &job), record: Stored::Value(job, 0) };
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Found(id(), Ok((vec![rest], None))), &mut out);
    let [Effect::Cancel(_, batch)] = &out[..] else { panic!("{out:?}") };
    let at = batch.ops().position(Op::leaves_group).unwrap();
    let gone = Outcome::Rejected(Rejection { at, reason: Reason::NoNode });
    let event = Event::Cancelled(id(), batch.clone(), gone);
    out.clear();
    joiner.handle(NOW, event, &mut out);
    let [Effect::Cancel(_, batch)] = &out[..] else { panic!("{out:?}") };
    let left = batch.ops().filter(|op| op.leaves_group()).map(Op::path).collect::<Vec<_>>();
    assert_eq!(left, [path::place(&id(), 1), path::mark(&id(), Mark::Member(1), End::Cancelled)]);
}

#[test]
fn sub_jobs_are_closed_then_counted_then_joined_once_their_parent_has_succeeded() {
    let (_, out) = looked(GroupState { ended: 2, ..state(sub_jobs()) });
    assert_eq!(out, [], "the parent may submit more");
    let ended = GroupState { parent: Some(End::Succeeded), ended: 2, ..state(sub_jobs()) };
    let (mut joiner, out) = looked(ended.clone());
    assert_eq!(committed(&out).len(), 2, "the group admits no further members");
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Committed(id(), Outcome::Applied(())), &mut out);
    let [Effect::Advanced(_, closed), Effect::Look(_)] = &out[..] else { panic!("{out:?}") };
    assert!(closed.closed && closed.total.is_none());
    let closed = closed.clone();
    let (mut joiner, _) = looked(GroupState { record: *closed, members: Some(2), ..ended.clone() });
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Committed(id(), Outcome::Applied(())), &mut out);
    let [Effect::Advanced(_, sealed), Effect::Look(_)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(sealed.total, Some(2));
    let (_, out) = looked(GroupState { record: *sealed.clone(), members: Some(2), ..ended });
    assert_eq!(committed(&out).len(), 4, "the join is created");
}

#[test]
fn the_last_stage_ends_the_parents_turn_and_its_place_in_its_own_group() {
    let finishing = GroupRecord { stage: Stage::Finishing, total: Some(0), ..sub_jobs() };
    let over = GroupState {
        parent: Some(End::Succeeded),
        join: Some(End::Succeeded),
        finish: Some(End::Dead),
        ..state(finishing)
    };
    let outer = GroupId::new("outer").unwrap();
    let parent = sub_jobs().parent.unwrap();
    assert_eq!(
        committed(&looked(over).1)[2..],
        [
            format!("delete {}", path::turn(&parent.turn().unwrap(), &parent.job)),
            format!("delete {}", path::place(&outer, 3)),
            format!("create {}", path::mark(&outer, Mark::Member(3), End::Succeeded)),
        ]
    );
}

#[test]
fn a_parent_that_failed_stops_its_sub_jobs() {
    let failed = GroupState { parent: Some(End::Dead), open: 3, ..state(sub_jobs()) };
    let (mut joiner, out) = looked(failed);
    assert_eq!(committed(&out).len(), 4);
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Committed(id(), Outcome::Applied(())), &mut out);
    let [Effect::Advanced(_, stopped), _] = &out[..] else { panic!("{out:?}") };
    assert_eq!(stopped.stopped, Some(Stop::Parent));
}

/// Seed 1151 of the simulator: members were created after the look and before the group was closed.
#[test]
fn a_stopped_group_is_closed_before_its_members_are_counted_for_the_last_time() {
    let mut record = GroupRecord { join: false, ..sub_jobs() };
    record.parent.as_mut().unwrap().finish = false;
    let failed = GroupState { parent: Some(End::Dead), open: 0, ..state(record) };
    let (mut joiner, _) = looked(failed);
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Committed(id(), Outcome::Applied(())), &mut out);
    let [Effect::Advanced(_, stopped), _] = &out[..] else { panic!("{out:?}") };
    assert_eq!((stopped.stage, stopped.closed), (Stage::Open, true));
}

#[test]
fn a_stopped_group_is_not_done_while_a_member_of_it_runs() {
    let stopped = GroupRecord { stopped: Some(Stop::Member(0)), stage: Stage::Joining, ..record() };
    let (_, out) = looked(GroupState { join: Some(End::Succeeded), open: 1, ..state(stopped.clone()) });
    assert_eq!(out, [Effect::Find(id(), Cursor::default())]);
    let (_, out) = looked(GroupState { join: Some(End::Succeeded), ..state(stopped) });
    assert_eq!(committed(&out).len(), 2);
}

/// L3: otherwise the group would be done only at the next sweep.
#[test]
fn the_last_end_of_a_stopped_group_during_a_look_causes_another_look() {
    let stopped = GroupRecord { stopped: Some(Stop::Member(0)), stage: Stage::Joining, ..record() };
    let runs = GroupState { join: Some(End::Succeeded), open: 1, ..state(stopped) };
    let look = || Event::Looked(id(), Lookup::Found(Box::new(runs.clone())));
    let (mut joiner, _) = looked(runs.clone());
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Found(id(), Ok((Vec::new(), None))), &mut out);
    assert_eq!(out, [Effect::Look(id())], "the member was asked before");
    joiner.handle(NOW, Event::Ended(id(), Mark::Member(1), End::Succeeded), &mut out);
    joiner.handle(NOW, look(), &mut out);
    assert_eq!(out, [Effect::Look(id()), Effect::Look(id())]);
    joiner.handle(NOW, look(), &mut out);
    assert_eq!(out.len(), 2, "if the member still runs, the group waits for its end");
}

#[test]
fn any_outcome_of_a_transaction_is_followed_by_another_look() {
    let complete = || GroupState { below: Some(0), ..state(GroupRecord { total: Some(0), ..record() }) };
    let stale = |at| Outcome::Rejected(Rejection { at, reason: Reason::BadVersion });
    let (mut joiner, _) = looked(complete());
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Committed(id(), stale(1)), &mut out);
    assert_eq!(out, [Effect::Look(id())]);
    let (mut joiner, _) = looked(complete());
    out.clear();
    joiner.handle(NOW, Event::Committed(id(), Outcome::Unknown), &mut out);
    assert_eq!(out, [], "no look before the session is back");
    joiner.handle(NOW, Event::Resync, &mut out);
    assert_eq!(out, [Effect::Look(id())]);
    let (mut joiner, _) = looked(complete());
    out.clear();
    joiner.handle(NOW, Event::Committed(id(), stale(0)), &mut out);
    assert_eq!(out, [Effect::FencedOut]);
}

/// The position means nothing in a rejection of a transaction that was not sent.
#[test]
fn after_a_lost_reply_or_an_unsent_request_no_group_is_looked_at_until_the_session_is_back() {
    let unsent = |at| Outcome::Rejected(Rejection { at, reason: Reason::NotSent });
    for outcome in [Outcome::Unknown, unsent(0), unsent(2)] {
        let complete = GroupState { below: Some(0), ..state(GroupRecord { total: Some(0), ..record() }) };
        let committed = (looked(complete).0, Event::Committed(id(), outcome.clone()));
        let (joiner, batch) = cancelling();
        for (mut joiner, event) in [committed, (joiner, Event::Cancelled(id(), batch, outcome.clone()))] {
            let mut out = Vec::new();
            joiner.handle(NOW, event, &mut out);
            joiner.handle(NOW, Event::Changed(GroupId::new("other").unwrap()), &mut out);
            assert_eq!(out, [], "{outcome:?}");
            joiner.handle(NOW, Event::Resync, &mut out);
            assert!(out.contains(&Effect::Look(id())), "{outcome:?}: {out:?}");
        }
    }
}

/// A stopped group whose open member is being cancelled.
fn cancelling() -> (GroupJoiner, Batch<JobId>) {
    let (mut joiner, mut out) = looked(stopped());
    assert_eq!(out, [Effect::Find(id(), Cursor::default())]);
    out.clear();
    joiner.handle(NOW, Event::Found(id(), Ok((vec![waiting()], None))), &mut out);
    let [Effect::Cancel(_, batch)] = &out[..] else { panic!("{out:?}") };
    (joiner, batch.clone())
}

fn waits(job: &JobId, record: &JobRecord) -> MemberLocation {
    MemberLocation::Waits(EntryLocation::Ready(ReadyEntry::of_record(job, record)))
}

/// A group that was stopped, with one open member.
fn stopped() -> GroupState {
    let stopped = GroupRecord { stopped: Some(Stop::Member(0)), stage: Stage::Joining, ..record() };
    GroupState { ended: 1, open: 1, ..state(stopped) }
}

/// The member number 1, which waits in the queue.
fn waiting() -> OpenMember {
    let membership = Some(Membership { group: id(), role: Role::Member(1), counted: true });
    let job = JobRecord::new(Kind::new("sum").unwrap(), Payload::json(*b"1").unwrap(), Uuid::nil(), NOW);
    let name = JobId::new("sum:g:1").unwrap();
    OpenMember {
        location: waits(&name, &job),
        job: name,
        record: Stored::Value(JobRecord { membership, ..job }, 0),
    }
}

/// S3
#[test]
fn a_cancellation_ends_the_term_only_if_its_epoch_is_over() {
    for (reason, over) in [(Reason::BadVersion, true), (Reason::NoAuth, false)] {
        let (mut joiner, batch) = cancelling();
        let mut out = Vec::new();
        joiner.handle(
            NOW,
            Event::Cancelled(id(), batch, Outcome::Rejected(Rejection { at: 0, reason })),
            &mut out,
        );
        assert_eq!(out.contains(&Effect::FencedOut), over, "{out:?}");
        out.clear();
        joiner.handle(NOW, Event::Changed(id()), &mut out);
        assert_eq!(out, [], "no request follows before the next sweep");
    }
}

/// A member that moved between the list of places and the reads is found by another pass.
#[test]
fn members_that_moved_are_looked_for_in_a_bounded_number_of_passes() {
    let (mut joiner, _) = looked(stopped());
    let mut out = Vec::new();
    for pass in 1..=3 {
        out.clear();
        let moved = OpenMember { location: MemberLocation::Nowhere, ..waiting() };
        joiner.handle(NOW, Event::Found(id(), Ok((vec![moved], None))), &mut out);
        let again = if pass < 3 { Effect::Find(id(), Cursor::default()) } else { Effect::Look(id()) };
        assert_eq!(out, [again], "pass {pass}");
    }
}

#[test]
fn a_running_member_of_a_stopped_group_is_asked_to_end_once() {
    let worker = WorkerId::new(Uuid::from_u128(5));
    for (asked, asks) in [(false, true), (true, false)] {
        let (mut joiner, _) = looked(stopped());
        let assignment = Assignment { cancel: asked, ..Assignment::new(1, 1, NOW) };
        let running =
            OpenMember { location: MemberLocation::Assigned(worker, assignment.clone(), 4), ..waiting() };
        let mut out = Vec::new();
        joiner.handle(NOW, Event::Found(id(), Ok((vec![running], None))), &mut out);
        let flag = txn::flag_cancel(&waiting().job, worker, 4, &assignment);
        let flags =
            |effect: &Effect| matches!(effect, Effect::Cancel(_, batch) if batch.ops().any(|op| *op == flag));
        assert_eq!(out.iter().any(flags), asks, "{out:?}");
    }
}

#[test]
fn few_groups_are_looked_at_at_a_time_and_each_answer_makes_room_for_another() {
    let group = |n| GroupId::new(format!("g{n}")).unwrap();
    let mut joiner = GroupJoiner::new(7);
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Resync, &mut out);
    joiner.handle(NOW, Event::Seen((0..2 * BUSY).map(group).collect()), &mut out);
    assert_eq!(out, (0..BUSY).map(|n| Effect::Look(group(n))).collect::<Vec<_>>());
    for n in 0..BUSY {
        out.clear();
        joiner.handle(NOW, Event::Looked(group(n), Lookup::Found(Box::new(state(record())))), &mut out);
        assert_eq!(out, [Effect::Look(group(BUSY + n))], "{n}");
    }
    assert_eq!(joiner.open(), 2 * BUSY);
}

#[test]
fn a_group_that_was_done_and_is_deleted_is_not_counted_as_open() {
    let other = GroupId::new("other").unwrap();
    let (mut joiner, _) = looked(state(GroupRecord { stage: Stage::Done { at: NOW }, ..record() }));
    joiner.handle(NOW, Event::Seen(vec![other.clone()]), &mut Vec::new());
    joiner.handle(NOW, Event::Gone(id()), &mut Vec::new());
    assert_eq!(joiner.open(), 1);
    joiner.handle(NOW, Event::Gone(other), &mut Vec::new());
    assert_eq!(joiner.open(), 0);
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Changed(id()), &mut out);
    assert_eq!(out, [Effect::Look(id())], "a group of the same name was created");
}

#[test]
fn only_a_failed_member_of_a_group_that_fails_fast_causes_a_look_before_the_last_end() {
    for (fail_fast, end, looks) in
        [(true, End::Dead, true), (true, End::Succeeded, false), (false, End::Dead, false)]
    {
        let (mut joiner, _) = looked(state(GroupRecord { total: Some(9), fail_fast, ..record() }));
        let mut out = Vec::new();
        joiner.handle(NOW, Event::Ended(id(), Mark::Member(3), end), &mut out);
        assert_eq!(out.contains(&Effect::Look(id())), looks, "{fail_fast} {end:?}");
    }
}

#[test]
fn a_group_that_cannot_advance_is_reported_and_waits_for_the_sweep() {
    let empty = || GroupState { below: Some(0), ..state(GroupRecord { total: Some(0), ..record() }) };
    let complete = || Lookup::Found(Box::new(empty()));
    let (mut joiner, _) = looked(empty());
    let taken = || Outcome::Rejected(Rejection { at: 2, reason: Reason::NodeExists });
    let mut out = Vec::new();
    for _ in 1..STRIKES {
        joiner.handle(NOW, Event::Committed(id(), taken()), &mut out);
        joiner.handle(NOW, Event::Looked(id(), complete()), &mut out);
    }
    out.clear();
    joiner.handle(NOW, Event::Committed(id(), taken()), &mut out);
    assert!(matches!(&out[..], [Effect::Stuck(_, why)] if why.ends_with("the znode exists")), "{out:?}");
    out.clear();
    joiner.handle(NOW, Event::Resync, &mut out);
    assert_eq!(out, [Effect::Look(id())]);
}

#[test]
fn a_parent_without_a_turn_or_place_does_not_block_its_sub_jobs_group() {
    let joining = GroupRecord { stage: Stage::Finishing, ..sub_jobs() };
    let over = GroupState { parent: Some(End::Succeeded), finish: Some(End::Succeeded), ..state(joining) };
    let (mut joiner, out) = looked(over.clone());
    assert_eq!(committed(&out).len(), 5);
    let mut out = Vec::new();
    for (reason, left) in [(Reason::NoNode, 4), (Reason::NoNode, 3), (Reason::NodeExists, 2)] {
        let gone = Outcome::Rejected(Rejection { at: 2, reason });
        joiner.handle(NOW, Event::Committed(id(), gone), &mut out);
        out.clear();
        joiner.handle(NOW, Event::Looked(id(), Lookup::Found(Box::new(over.clone()))), &mut out);
        assert_eq!(committed(&out).len(), left, "the other parts are written anyway");
    }
}

#[test]
fn an_ended_member_with_open_sub_jobs_stops_their_group() {
    let stopped = GroupRecord { stopped: Some(Stop::Member(0)), stage: Stage::Joining, ..record() };
    let (mut joiner, _) = looked(GroupState { ended: 1, open: 1, ..state(stopped) });
    let member = Membership { group: id(), role: Role::Member(1), counted: true };
    let job = JobRecord::new(Kind::new("sum").unwrap(), Payload::json(*b"1").unwrap(), Uuid::nil(), NOW);
    let job = JobRecord { membership: Some(member), spawned: true, ..job }.cancel(NOW);
    let name = JobId::new("sum:g:1").unwrap();
    let nested = GroupId::of_sub_jobs(&name, &job);
    let rest =
        OpenMember { job: name.clone(), record: Stored::Value(job, 0), location: MemberLocation::Nowhere };
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Found(id(), Ok((vec![rest], None))), &mut out);
    assert!(out.contains(&Effect::Look(nested.clone())), "{out:?}");
    out.clear();
    let inner = GroupState { parent: Some(End::Succeeded), open: 1, ..state(sub_jobs()) };
    joiner.handle(NOW, Event::Looked(nested, Lookup::Found(Box::new(inner))), &mut out);
    assert_eq!(committed(&out).len(), 4, "{out:?}");
}

#[test]
fn a_done_group_causes_no_further_look() {
    let (mut joiner, out) = looked(state(GroupRecord { stage: Stage::Done { at: NOW }, ..record() }));
    assert_eq!((out.len(), joiner.open()), (0, 0));
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Resync, &mut out);
    joiner.handle(NOW, Event::Seen(vec![id()]), &mut out);
    assert_eq!(out, []);
}

const DAY: Duration = Duration::from_secs(86_400);
const START: WallMillis = WallMillis(1_000_000);

/// Looks at the group, set at `modified` by ZooKeeper's clock, at `now` by the leader's. Returns the record that is written.
fn written(
    group: &GroupRecord,
    ended: u32,
    open: u32,
    modified: WallMillis,
    now: WallMillis,
) -> Option<GroupRecord> {
    let state = GroupState { ended, open, ..GroupState::new(group.clone(), 5, modified) };
    let mut joiner = GroupJoiner::new(7);
    let mut out = Vec::new();
    joiner.handle(now, Event::Resync, &mut out);
    joiner.handle(now, Event::Seen(vec![id()]), &mut out);
    joiner.handle(now, Event::Looked(id(), Lookup::Found(Box::new(state))), &mut out);
    assert!(!out.iter().any(|effect| matches!(effect, Effect::Find(..))), "no member is cancelled: {out:?}");
    out.into_iter().find_map(|effect| match effect {
        Effect::Commit(_, ops) => ops.iter().find_map(|op| match op {
            Op::Set { data, .. } => Some(wire::decode(data).unwrap()),
            Op::Check { .. } | Op::Create { .. } | Op::Delete { .. } => None,
        }),
        _ => None,
    })
}

/// Its client ended after it had submitted two members, or before it had submitted all of them.
#[test]
fn a_group_whose_client_died_is_abandoned_after_a_day_without_a_new_member_and_keeps_its_members() {
    for total in [None, Some(3)] {
        let group = GroupRecord { total, ..record() };
        let write = |group: &GroupRecord, open, modified, now| written(group, 2 - open, open, modified, now);
        assert_eq!(write(&group, 2, START, START + DAY / 2), None);
        let counted = write(&group, 2, START, START + DAY).unwrap();
        assert_eq!((counted.stopped, counted.idle), (None, Some(Idle { members: 2, since: None })));
        let again = write(&counted, 2, START + DAY, START + 2 * DAY).unwrap();
        assert_eq!((again.stopped, again.idle.unwrap().since), (None, Some(START + DAY)));
        let abandoned = write(&again, 2, START + 2 * DAY, START + 2 * DAY).unwrap();
        assert_eq!((abandoned.stopped, abandoned.closed), (Some(Stop::Abandoned), true));
        assert_eq!(abandoned.stage, Stage::Open, "its members run on");
        assert_eq!(write(&abandoned, 1, START + 2 * DAY, START + 9 * DAY), None);
        let done = write(&abandoned, 0, START + 2 * DAY, START + 9 * DAY).unwrap();
        assert_eq!(done.stage, Stage::Done { at: START + 9 * DAY }, "without a join");
        assert!(done.sealed(&id(), 2).is_err() || total.is_some());
    }
}

#[test]
fn a_group_that_gets_members_or_has_all_of_them_is_not_abandoned() {
    let idle = |members| Some(Idle { members, since: Some(START) });
    let waits = GroupRecord { idle: idle(1), ..record() };
    let counted = written(&waits, 1, 1, START + 9 * DAY, START + 10 * DAY).unwrap();
    assert_eq!(
        (counted.stopped, counted.idle),
        (None, Some(Idle { members: 2, since: None })),
        "a new member"
    );
    let whole = GroupRecord { total: Some(2), idle: idle(2), ..record() };
    assert_eq!(written(&whole, 1, 1, START + 9 * DAY, START + 10 * DAY), None, "a member runs for long");
    let nested = GroupRecord { idle: idle(2), ..sub_jobs() };
    assert_eq!(
        written(&nested, 1, 1, START + 9 * DAY, START + 10 * DAY),
        None,
        "its parent may submit members"
    );
}

/// Only ZooKeeper's clock abandons a group.
#[test]
fn a_leader_whose_clock_is_a_year_ahead_abandons_no_group() {
    let (mut group, mut modified) = (record(), START);
    for _ in 0..10 {
        if let Some(next) = written(&group, 0, 2, modified, START + 365 * DAY) {
            group = next;
            modified = modified + Duration::from_secs(15);
        }
    }
    assert_eq!(group.stopped, None);
}

/// The first of two groups of a parent, whose own jobs have ended.
fn first_of_two() -> GroupState {
    let record = GroupRecord { further: vec![Kind::new("more").unwrap()], total: Some(0), ..sub_jobs() };
    let record = GroupRecord { stage: Stage::Joining, ..record };
    let further = vec![id().further(0)];
    GroupState { parent: Some(End::Succeeded), join: Some(End::Succeeded), further, ..state(record) }
}

/// S7
#[test]
fn a_first_group_finishes_after_its_further_groups() {
    let (mut joiner, out) = looked(first_of_two());
    assert_eq!(out, [Effect::Look(id().further(0))], "the mark of the parent is news for the further group");
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Ended(id(), Mark::Further(0), End::Succeeded), &mut out);
    assert_eq!(out, [Effect::Look(id())]);
    let mut out = Vec::new();
    let all = GroupState { further: Vec::new(), ..first_of_two() };
    joiner.handle(NOW, Event::Looked(id(), Lookup::Found(Box::new(all))), &mut out);
    let made = committed(&out);
    assert!(made.iter().any(|op| op.contains("finished")), "{made:?}");
}

#[test]
fn a_further_group_is_not_stopped_and_learns_of_the_end_of_its_parent_once() {
    let (mut joiner, out) = looked(first_of_two());
    assert_eq!(out, [Effect::Look(id().further(0))]);
    let mut out = Vec::new();
    let further = || Lookup::Found(Box::new(GroupState { open: 1, ..state(record()) }));
    joiner.handle(NOW, Event::Looked(id().further(0), further()), &mut out);
    joiner.handle(NOW, Event::Changed(id()), &mut out);
    joiner.handle(NOW, Event::Looked(id(), Lookup::Found(Box::new(first_of_two()))), &mut out);
    assert_eq!(out, [Effect::Look(id())]);
}

/// The outer group names only the first group.
#[test]
fn a_stopped_outer_group_stops_the_further_groups() {
    let open = GroupState { open: 1, ..first_of_two() };
    let (mut joiner, _) = looked(open.clone());
    joiner.condemned.insert(id());
    let mut out = Vec::new();
    joiner.handle(NOW, Event::Resync, &mut out);
    joiner.handle(NOW, Event::Looked(id(), Lookup::Found(Box::new(open))), &mut out);
    assert!(joiner.condemned.contains(&id().further(0)));
}
