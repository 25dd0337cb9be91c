//! The transactions of groups, and the operations that a group adds to the transactions of its jobs.
//!
//! | transaction | fenced by | if the reply is lost |
//! | --- | --- | --- |
//! | [`make_group`] | the record's absence | read it: exists with our rules ⇒ ours |
//! | [`make_sub_group`], [`mark_spawned`] | the parent's record and assignment, the group's absence | the same |
//! | [`extend_parent`] | the parent's record, the first group's version | read it: it lists the group ⇒ the group was created |
//! | [`make_chunk`] | its absence | the submission that needs it shows whether it exists |
//! | [`set_group`] | the record's version | read it: our total, or abandoned ⇒ done |
//! | [`advance`] | epoch, the record's version | read the stage of the group |
//! | [`remove_member`], [`remove_chunk`], [`remove_group`] | epoch, versions, the absence of children | list it again |
//! | [`join_group`], [`leave_group`], [`rejoin_group`] | parts of a submission, an end, a retry | as for the whole |
//!
//! S7 in three steps. (1) A member's place is created in the multi that creates the member, and that multi checks
//! the group's version: no member is added once the group has advanced. (2) A member's mark is created in the multi
//! that ends the member, and nowhere else: when there are as many marks as the total, all members have ended. (3)
//! The join is created in the multi that moves the group from open to joining at its version, and a group never
//! becomes open again.

use super::{Op, fence};
use crate::group::{End, FirstGroup, GroupRecord, Mark, Stage};
use crate::job::{Assignment, JobRecord, Membership, Role, is_dead_letter};
use crate::name::{GroupId, JobId, WorkerId};
use crate::outcome::Reason;
use crate::path::{self, GroupPlace, Place};
use crate::wire::encode;

/// Creates a group without members.
#[must_use]
pub fn make_group(id: &GroupId, record: &GroupRecord) -> Vec<Op> {
    vec![Op::create(path::group(id), encode(record)), Op::create(path::members(id), Vec::new())]
}

/// Creates the group of a running job's sub-jobs, and sets the flag in the job's assignment: the process that closes
/// the job then knows that its end waits for the sub-jobs. Rejected once the attempt is closed: `token` is the version of
/// the job's record, which a close raises. The version of the assignment is not enough, because the assignment of
/// the next attempt starts at version 0 again.
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

/// Records in a running job's assignment that it has sub-jobs, whose group exists. Fenced as [`make_sub_group`].
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
        check_attempt(parent, token),
        Op::Set { path: path::assignment(worker, parent), data: encode(&spawned), version },
    ]
}

/// Rejects a parent's transaction once its attempt is closed.
fn check_attempt(parent: &JobId, token: i32) -> Op {
    Op::Check { path: path::record(parent), version: token }
}

/// Sets the first group of a running job's sub-jobs, and creates the further group that it now lists. Rejected once the attempt
/// is closed: `token` is the version of the job's record, which a close raises. So no group is added after the parent's end, and
/// the first group, which leaves its stages at its version, waits for every group of the parent.
#[must_use]
pub fn extend_parent(
    parent: &JobId,
    token: i32,
    (first, version, extended): (&GroupId, i32, &GroupRecord),
    made: Option<(&GroupId, &GroupRecord)>,
) -> Vec<Op> {
    let mut ops = vec![check_attempt(parent, token)];
    ops.extend(set_group(first, version, extended));
    ops.extend(made.into_iter().flat_map(|(id, record)| make_group(id, record)));
    ops
}

/// Creates the parents of a chunk's places and marks in one multi, so that the mark of every member has a parent.
#[must_use]
pub fn make_chunk(id: &GroupId, chunk: u32) -> Vec<Op> {
    [path::mark_chunk(id, chunk), path::place_chunk(id, chunk)]
        .map(|path| Op::create(path, Vec::new()))
        .into()
}

/// Sets the record of a group: its total, or that it is abandoned.
#[must_use]
pub fn set_group(id: &GroupId, version: i32, sealed: &GroupRecord) -> Vec<Op> {
    vec![Op::Set { path: path::group(id), data: encode(sealed), version }]
}

/// The operations that a group adds to the submission of a member. The group must have the version that was read.
#[must_use]
pub fn join_group(id: &GroupId, version: i32, number: u32) -> [Op; 2] {
    [Op::Check { path: path::group(id), version }, Op::create(path::place(id, number), Vec::new())]
}

/// The operations that a group adds to a job's end. A job with sub-jobs leaves its mark in their group; the group that
/// the job itself belongs to is informed once the sub-jobs are done.
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

/// The operations that a group adds to the retry of a job that it still waits for: the mark is deleted, and the
/// place is created again. The record is set to its present value, so that a leader that counted the mark cannot
/// advance the group.
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

/// Advances a group: sets its record at `version` and creates the job of the new stage. The last stage also ends the
/// parent: it deletes the parent's turn in its lane and marks its end, if it is known, in its own group. The last stage of a
/// further group leaves a mark in the first one instead, which ends the parent after all of them.
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
    let (Stage::Done { .. }, Some(above)) = (group.stage, &group.parent) else { return ops };
    if let Some(FirstGroup { group: first, number }) = &above.first {
        ops.extend(parent.map(|end| Op::create(path::mark(first, Mark::Further(*number), end), Vec::new())));
        return ops;
    }
    ops.extend(above.turn().map(|turn| Op::delete(path::turn(&turn, &above.job))));
    if let (Some(outer), Some(end)) = (&above.membership, parent) {
        ops.extend(leave(outer, end));
    }
    ops
}

/// Removes a member of a finished group: its mark, and its record at the version that was read, if it exists.
#[must_use]
pub fn remove_member(id: &GroupId, number: u32, end: End, record: Option<(&JobId, i32)>) -> Vec<Op> {
    let record = record.map(|(job, version)| super::remove_record(job, version));
    record.into_iter().chain([Op::delete(path::mark(id, Mark::Member(number), end))]).collect()
}

/// Removes the parents of a chunk that has no places and marks. Rejected if it has any.
#[must_use]
pub fn remove_chunk(id: &GroupId, chunk: u32) -> [Op; 2] {
    [path::mark_chunk(id, chunk), path::place_chunk(id, chunk)].map(Op::delete)
}

/// Removes a group without members, including the marks and records of its other jobs.
#[must_use]
pub fn remove_group(id: &GroupId, version: i32, marks: &[(Mark, End)], records: &[(JobId, i32)]) -> Vec<Op> {
    let records = records.iter().map(|(job, version)| super::remove_record(job, *version));
    let marks = marks.iter().map(|(mark, end)| Op::delete(path::mark(id, *mark, *end)));
    let group = Op::Delete { path: path::group(id), version: Some(version) };
    records.chain(marks).chain([Op::delete(path::members(id)), group]).collect()
}

/// The part of a job's end that caused its transaction to be rejected, because an operator changed the namespace: a
/// deleted turn or place, an existing mark, a deleted group, or an existing dead-letter job. The caller ends the job
/// [`without_part`].
#[must_use]
pub fn gone_part(ops: &[Op], at: usize, reason: &Reason) -> Option<String> {
    let gone = match reason {
        Reason::NoNode | Reason::NodeExists => {
            ops.get(at).filter(|op| op.is_part_of_end()).or_else(|| letter(ops, ops.get(at)?))
        }
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

/// The creation of a dead-letter job's record, if the operation creates a znode of that job.
fn letter<'a>(ops: &'a [Op], op: &Op) -> Option<&'a Op> {
    let created = |op: &&Op| matches!(op, Op::Create { .. }) && letter_of(op.path()).is_some();
    ops.iter().filter(created).find(|record| {
        record.path() == op.path() || letter_of(record.path()).is_some_and(|letter| is_entry(op, &letter))
    })
}

/// Whether the operation is about the entry of this job.
fn is_entry(op: &Op, job: &JobId) -> bool {
    matches!(path::parse(op.path()), Place::Ready(entry) if entry.job() == job)
}

/// The dead-letter job with this record.
fn letter_of(record: &str) -> Option<JobId> {
    let name = record.strip_prefix(path::JOBS)?.rsplit('/').next()?;
    JobId::new(name).ok().filter(is_dead_letter)
}

/// Removes a [`gone_part`] of a job's end from its transaction. The other parts stay. If the group of a job's
/// sub-jobs was deleted, the job frees its own turn and place instead. All callers that end jobs use this function.
/// `record` is the record as the transaction writes it.
pub fn without_part(job: &JobId, record: &JobRecord, gone: &str, ops: &mut Vec<Op>) {
    if ops.iter().any(|op| op.path() == gone && letter(ops, op).is_some()) {
        let letter = letter_of(gone);
        ops.retain(|op| op.path() != gone && !letter.as_ref().is_some_and(|letter| is_entry(op, letter)));
        return;
    }
    let Some(at) = ops.iter().position(|op| op.path() == gone && op.is_part_of_end()) else { return };
    let part = ops.remove(at);
    let parent = matches!(path::parse(part.path()), Place::Group(GroupPlace::Mark(_, Mark::Parent, _)));
    if !parent {
        return;
    }
    ops.extend(record.turn().map(|turn| Op::delete(path::turn(&turn, job))));
    if let (Some(membership), Some(end)) = (&record.membership, End::of(&record.state)) {
        ops.extend(leave(membership, end));
    }
}
