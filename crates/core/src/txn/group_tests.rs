//! The fences of each group transaction as ZooKeeper sees them: one test per row of the module's table.

use uuid::Uuid;

use super::*;
use crate::group::{End, FirstGroup, GroupRecord, Mark, Parent, Stage};
use crate::job::{JobState, Membership, Payload, Policy, Role, Verdict, dead_letter};
use crate::name::{GroupId, Kind, Lane};
use crate::outcome::Reason;

const NOW: WallMillis = WallMillis(9);

fn id() -> GroupId {
    GroupId::new("g").unwrap()
}

fn group() -> GroupRecord {
    GroupRecord::new(Kind::new("sum").unwrap(), Uuid::nil(), NOW)
}

fn job() -> JobId {
    JobId::new("sum:g:3").unwrap()
}

fn worker() -> WorkerId {
    WorkerId::new(Uuid::from_u128(7))
}

fn part() -> Membership {
    Membership { group: id(), role: Role::Member(3), counted: true }
}

fn member() -> JobRecord {
    let payload = Payload::json(*b"1").unwrap();
    let record = JobRecord::new(Kind::new("sum").unwrap(), payload, Uuid::nil(), NOW);
    JobRecord { membership: Some(part()), ..record }
}

/// One line per operation: its type, path and version.
fn shape(ops: &[Op]) -> Vec<String> {
    let lines = ops.iter().map(|op| match op {
        Op::Check { path, version } => format!("check {path} at {version}"),
        Op::Create { path, .. } => format!("create {path}"),
        Op::Set { path, version, .. } => format!("set {path} at {version}"),
        Op::Delete { path, version: Some(version) } => format!("delete {path} at {version}"),
        Op::Delete { path, version: None } => format!("delete {path}"),
    });
    lines.collect()
}

fn lines<const N: usize>(lines: [(&str, String); N]) -> Vec<String> {
    lines.into_iter().map(|(what, path)| format!("{what} {path}")).collect()
}

/// S7
#[test]
fn a_member_joins_at_the_group_version_that_was_read() {
    let made = shape(&join_group(&id(), 5, 3));
    assert_eq!(
        made,
        [format!("check {} at 5", path::group(&id())), format!("create {}", path::place(&id(), 3))]
    );
}

/// S7
#[test]
fn a_group_advances_at_the_version_that_was_read_and_checks_the_epoch() {
    let joining = GroupRecord { stage: Stage::Joining, ..group() };
    let join = joining.stage_job(&id(), NOW).unwrap();
    let ops = advance(4, &id(), 5, &joining, join.as_ref(), None);
    let (name, record) = &join.unwrap();
    let made = [("create", path::record(name)), ("create", ready(name, record))];
    let fences = ["check /epoch at 4".to_owned(), format!("set {} at 5", path::group(&id()))];
    assert_eq!(shape(&ops), [fences.to_vec(), lines(made)].concat());
}

/// S7
#[test]
fn a_group_is_sealed_at_the_version_that_was_read() {
    assert_eq!(shape(&set_group(&id(), 5, &group())), [format!("set {} at 5", path::group(&id()))]);
}

/// S7
#[test]
fn an_end_replaces_the_place_by_a_mark_and_a_parent_marks_its_sub_job_group() {
    let over = member().cancel(NOW);
    let mark = path::mark(&id(), Mark::Member(3), End::Cancelled);
    assert_eq!(
        shape(&leave_group(&job(), &over)),
        lines([("delete", path::place(&id(), 3)), ("create", mark)])
    );
    let parent = JobRecord { spawned: true, ..over };
    let nested = GroupId::of_sub_jobs(&job(), &parent);
    let told = path::mark(&nested, Mark::Parent, End::Cancelled);
    assert_eq!(shape(&leave_group(&job(), &parent)), lines([("create", told)]));
    assert_eq!(leave_group(&job(), &member()), [], "the member is open");
    let apart = Membership { counted: false, ..part() };
    assert_eq!(leave_group(&job(), &JobRecord { membership: Some(apart), ..member().cancel(NOW) }), []);
}

/// S7
#[test]
fn a_sub_job_group_is_fenced_by_the_parents_open_attempt() {
    let assignment = Assignment::new(2, 5, NOW);
    let ops = make_sub_group(&id(), &group(), &job(), 6, worker(), 1, &assignment);
    let fences = [
        format!("check {} at 6", path::record(&job())),
        format!("set {} at 1", path::assignment(worker(), &job())),
    ];
    let made = lines([("create", path::group(&id())), ("create", path::members(&id()))]);
    assert_eq!(shape(&ops), [fences.to_vec(), made].concat());
    let Op::Set { data, .. } = &ops[1] else { panic!("{ops:?}") };
    let told: Assignment = crate::wire::decode(data).unwrap();
    assert_eq!(told, Assignment { spawned: true, ..assignment });
}

/// S7
#[test]
fn a_further_group_is_fenced_by_the_parents_open_attempt_and_the_first_groups_version() {
    let further = id().further(0);
    let ops = extend_parent(&job(), 6, (&id(), 5, &group()), Some((&further, &group())));
    let fences = [format!("check {} at 6", path::record(&job())), format!("set {} at 5", path::group(&id()))];
    let made = lines([("create", path::group(&further)), ("create", path::members(&further))]);
    assert_eq!(shape(&ops), [fences.to_vec(), made].concat());
}

/// S7
#[test]
fn a_retry_deletes_the_mark_and_raises_the_group_version() {
    let ops = rejoin_group(&part(), End::Dead, 5, &group());
    let moved = vec![format!("set {} at 5", path::group(&id()))];
    let back =
        lines([("delete", path::mark(&id(), Mark::Member(3), End::Dead)), ("create", path::place(&id(), 3))]);
    assert_eq!(shape(&ops), [moved, back].concat());
}

/// S6, S7
#[test]
fn the_last_stage_ends_the_turn_of_the_parent_and_marks_its_end() {
    let parent = Parent {
        job: job(),
        kind: Kind::new("sum").unwrap(),
        generation: 1,
        finish: false,
        first: None,
        membership: Some(part()),
        depth: 1,
        lane: Some(Lane::new("x").unwrap()),
        outer_lanes: Vec::new(),
    };
    let nested = GroupId::new("nested").unwrap();
    let done = GroupRecord { stage: Stage::Done { at: NOW }, parent: Some(parent), ..group() };
    let ops = advance(4, &nested, 5, &done, None, Some(End::Dead));
    let turn = path::turn(&done.parent.as_ref().unwrap().turn().unwrap(), &job());
    let mark = path::mark(&id(), Mark::Member(3), End::Dead);
    let ends = lines([("delete", turn), ("delete", path::place(&id(), 3)), ("create", mark)]);
    assert_eq!(shape(&ops)[2..], ends);
    for stage in [Stage::Open, Stage::Joining, Stage::Finishing] {
        let open = GroupRecord { stage, ..done.clone() };
        assert_eq!(advance(4, &nested, 5, &open, None, Some(End::Dead)).len(), 2, "{stage:?}");
    }
}

/// S6, S7
#[test]
fn the_last_stage_of_a_further_group_marks_it_in_the_first_one_and_leaves_the_parent_alone() {
    let parent = Parent {
        job: job(),
        kind: Kind::new("sum").unwrap(),
        generation: 1,
        finish: false,
        first: Some(FirstGroup { group: id(), number: 2 }),
        membership: Some(part()),
        depth: 1,
        lane: Some(Lane::new("x").unwrap()),
        outer_lanes: Vec::new(),
    };
    let done = GroupRecord { stage: Stage::Done { at: NOW }, parent: Some(parent), ..group() };
    let ops = advance(4, &id().further(2), 5, &done, None, Some(End::Dead));
    assert_eq!(shape(&ops)[2..], lines([("create", path::mark(&id(), Mark::Further(2), End::Dead))]));
}

#[test]
fn a_group_is_removed_at_the_version_that_was_read() {
    let last = remove_group(&id(), 5, &[(Mark::Join, End::Succeeded)], &[(job(), 3)]);
    assert_eq!(
        shape(&last),
        [
            format!("delete {} at 3", path::record(&job())),
            format!("delete {}", path::mark(&id(), Mark::Join, End::Succeeded)),
            format!("delete {}", path::members(&id())),
            format!("delete {} at 5", path::group(&id())),
        ]
    );
}

fn ready(job: &JobId, record: &JobRecord) -> String {
    path::ready_entry(&ReadyEntry::of_record(job, record))
}

/// A job that is dead, and asks for a dead-letter job.
fn dead() -> JobRecord {
    let state = JobState::Terminal { verdict: Verdict::Dead, at: NOW };
    let policy = Policy { dead_letter: true, ..Policy::default() };
    JobRecord { membership: None, policy, state, ..member() }
}

#[test]
fn every_end_as_dead_creates_the_dead_letter_job() {
    let (letter, record) = dead_letter(&job(), &dead()).unwrap();
    let created = lines([("create", path::record(&letter)), ("create", ready(&letter, &record))]);
    let waiting = EntryLocation::Ready(ReadyEntry::of_record(&job(), &member()));
    for ops in
        [close(&job(), worker(), 4, None, &dead(), &Next::Terminal), cancel(&job(), 4, &dead(), &waiting)]
    {
        assert_eq!(shape(&ops)[2..], created);
    }
}

/// The end of a job never fails because of its dead-letter job.
#[test]
fn a_dead_letter_job_that_exists_is_left_out() {
    let whole = close(&job(), worker(), 4, None, &dead(), &Next::Terminal);
    for at in [2, 3] {
        let gone = gone_part(&whole, at, &Reason::NodeExists).unwrap();
        let mut ops = whole.clone();
        without_part(&job(), &dead(), &gone, &mut ops);
        assert_eq!(ops, whole[..2]);
    }
    assert_eq!(gone_part(&whole, 0, &Reason::NoNode), None);
}
