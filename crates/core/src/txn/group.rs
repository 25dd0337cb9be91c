//! The transactions of groups, and what a group adds to those of its jobs.
//!
//! | transaction | fenced by | if the reply is lost |
//! | --- | --- | --- |
//! | [`make_group`] | the record's absence | read it: there, with our rules ⇒ ours |
//! | [`make_sub_group`], [`mark_spawned`] | the parent's record and assignment, the group's absence | the same |
//! | [`make_chunk`] | its absence | what needs it tells |
//! | [`seal`] | the record's version | read it: our total ⇒ done |
//! | [`advance`] | epoch, the record's version | read the group: its stage tells |
//! | [`remove_member`], [`remove_chunk`], [`remove_group`] | epoch, versions, the absence of children | list it again |
//! | [`join_group`], [`leave_group`], [`rejoin_group`] | parts of a submission, an end, a retry | as the whole |
//!
//! S7 in three steps. (1) A member has its place from the multi that makes it exist, and that multi checks the group's
//! version: none comes in once the group has moved on. (2) The multi that ends a member makes its mark, and no mark is
//! made otherwise; so as many marks as the total means that all have ended. (3) A join is made in the multi that takes
//! the group from open to joining by its version, and a group that is not open never is again.

use super::{Op, fence};
use crate::group::{End, GroupRecord, Mark, Stage};
use crate::job::{Assignment, JobRecord, Membership, Role};
use crate::name::{GroupId, JobId, WorkerId};
use crate::outcome::Reason;
use crate::path::{self, GroupPlace, Place};
use crate::wire::encode;

/// Makes a group without members.
#[must_use]
pub fn make_group(id: &GroupId, record: &GroupRecord) -> Vec<Op> {
    vec![Op::create(path::group(id), encode(record)), Op::create(path::members(id), Vec::new())]
}

/// Makes the group of a running job's sub-jobs, and says so in its assignment: whoever ends the job then knows that
/// its end waits for theirs. Rejected once the attempt is closed: `token` is the version of its record, which its close
/// raises. The assignment's version alone would not tell, as that of the next attempt begins at 0 again.
#[must_use]
pub fn make_sub_group(
    id: &GroupId,
    record: &GroupRecord,
    parent: &JobId,
    token: i32,
    worker: WorkerId,
    version: i32,
    assignment: &Assignment,
) -> Vec<Op> {
    let mut ops = mark_spawned(parent, token, worker, version, assignment);
    ops.extend(make_group(id, record));
    ops
}

/// Says in a running job's assignment that it has sub-jobs, whose group is there; fenced as [`make_sub_group`].
#[must_use]
pub fn mark_spawned(
    parent: &JobId,
    token: i32,
    worker: WorkerId,
    version: i32,
    assignment: &Assignment,
) -> Vec<Op> {
    let spawned = Assignment { spawned: true, ..assignment.clone() };
    vec![
        Op::Check { path: path::record(parent), version: token },
        Op::Set { path: path::assignment(worker, parent), data: encode(&spawned), version },
    ]
}

/// Makes the parents of a chunk's places and marks, both, so that no member is submitted whose mark has no parent.
#[must_use]
pub fn make_chunk(id: &GroupId, chunk: u32) -> Vec<Op> {
    [path::mark_chunk(id, chunk), path::place_chunk(id, chunk)]
        .map(|path| Op::create(path, Vec::new()))
        .into()
}

/// Says a group's total.
#[must_use]
pub fn seal(id: &GroupId, version: i32, sealed: &GroupRecord) -> Vec<Op> {
    vec![Op::Set { path: path::group(id), data: encode(sealed), version }]
}

/// What a group adds to the submission of a member: it must be as it was read.
#[must_use]
pub fn join_group(id: &GroupId, version: i32, number: u32) -> [Op; 2] {
    [Op::Check { path: path::group(id), version }, Op::create(path::place(id, number), Vec::new())]
}

/// What a group adds to a job's end, whoever ends it. A job with sub-jobs leaves its mark with them: its own group
/// hears of its end once they are done.
#[must_use]
pub fn leave_group(job: &JobId, record: &JobRecord) -> Vec<Op> {
    let Some(end) = End::of(&record.state) else { return Vec::new() };
    if record.spawned {
        let group = GroupId::of_sub_jobs(job, record);
        return vec![Op::create(path::mark(&group, Mark::Parent, end), Vec::new())];
    }
    record.membership.as_ref().map(|membership| leave(membership, end)).unwrap_or_default()
}

fn leave(membership: &Membership, end: End) -> Vec<Op> {
    let Membership { group, role, counted } = membership;
    if !counted {
        return Vec::new();
    }
    let mark = Op::create(path::mark(group, (*role).into(), end), Vec::new());
    match role {
        Role::Member(number) => vec![Op::delete(path::place(group, *number)), mark],
        Role::Join | Role::Finish => vec![mark],
    }
}

/// What a group adds to the retry of one of its jobs that it still waits for: the mark goes, and the place comes back.
/// The record is set to what it is, so that nobody who counted the mark takes the group on.
#[must_use]
pub fn rejoin_group(membership: &Membership, before: End, version: i32, group: &GroupRecord) -> Vec<Op> {
    let Membership { group: id, role, .. } = membership;
    let mut ops = vec![
        Op::Set { path: path::group(id), data: encode(group), version },
        Op::delete(path::mark(id, (*role).into(), before)),
    ];
    match role {
        Role::Member(number) => ops.push(Op::create(path::place(id, *number), Vec::new())),
        Role::Join | Role::Finish => {}
    }
    ops
}

/// Takes a group on: its record by version, with the job of the stage that it comes to. With its last stage the end of
/// its parent, if that is known, is told to the parent's own group.
#[must_use]
pub fn advance(
    epoch: i32,
    id: &GroupId,
    version: i32,
    group: &GroupRecord,
    job: Option<&(JobId, JobRecord)>,
    parent: Option<End>,
) -> Vec<Op> {
    let mut ops = vec![fence(epoch), Op::Set { path: path::group(id), data: encode(group), version }];
    if let Some((job, record)) = job {
        ops.extend(super::submit(job, record, 0));
    }
    let outer = group.parent.as_ref().and_then(|parent| parent.membership.as_ref());
    if let (Stage::Done { .. }, Some(outer), Some(end)) = (group.stage, outer, parent) {
        ops.extend(leave(outer, end));
    }
    ops
}

/// Removes a member of a group that is done: its mark, and its record at the version that was read, if it is there.
#[must_use]
pub fn remove_member(id: &GroupId, number: u32, end: End, record: Option<(&JobId, i32)>) -> Vec<Op> {
    let record = record.map(|(job, version)| super::remove_record(job, version));
    record.into_iter().chain([Op::delete(path::mark(id, Mark::Member(number), end))]).collect()
}

/// Removes the parents of a chunk without places and marks. One that has any stays.
#[must_use]
pub fn remove_chunk(id: &GroupId, chunk: u32) -> [Op; 2] {
    [path::mark_chunk(id, chunk), path::place_chunk(id, chunk)].map(Op::delete)
}

/// Removes a group without members, with the marks and records of its other jobs.
#[must_use]
pub fn remove_group(id: &GroupId, version: i32, marks: &[(Mark, End)], records: &[(JobId, i32)]) -> Vec<Op> {
    let records = records.iter().map(|(job, version)| super::remove_record(job, *version));
    let marks = marks.iter().map(|(mark, end)| Op::delete(path::mark(id, *mark, *end)));
    let group = Op::Delete { path: path::group(id), version: Some(version) };
    records.chain(marks).chain([Op::delete(path::members(id)), group]).collect()
}

/// The part of a job's end at which its transaction was rejected because an operator's hand was there before: a turn or
/// a place that is gone, a mark that is there, a group that is not. Whoever ends the job does so [`without_part`].
#[must_use]
pub fn gone_part(ops: &[Op], at: usize, reason: &Reason) -> Option<String> {
    let gone = match reason {
        Reason::NoNode | Reason::NodeExists => ops.get(at).filter(|op| op.is_part_of_end()),
        Reason::BadVersion
        | Reason::NotEmpty
        | Reason::NoAuth
        | Reason::NotSent
        | Reason::OverBudget(_)
        | Reason::Refused(_)
        | Reason::Other(_) => None,
    };
    gone.map(|op| op.path().to_owned())
}

/// Takes a [`gone_part`] of a job's end out of its transaction. The other parts stay. A job whose sub-jobs' group is gone
/// ends its own place instead. One rule for whoever ends jobs; `record` is the record as the transaction leaves it.
pub fn without_part(record: &JobRecord, gone: &str, ops: &mut Vec<Op>) {
    let Some(at) = ops.iter().position(|op| op.path() == gone && op.is_part_of_end()) else { return };
    let part = ops.remove(at);
    let parent = matches!(path::parse(part.path()), Place::Group(GroupPlace::Mark(_, Mark::Parent, _)));
    if let (true, Some(membership), Some(end)) = (parent, &record.membership, End::of(&record.state)) {
        ops.extend(leave(membership, end));
    }
}
