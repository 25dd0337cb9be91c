//! The invariants for each transaction.

use bellwether_core::group::{End, GroupRecord, Stage, Stop};
use bellwether_core::job::{JobRecord, Role};
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::path::{self, GroupPlace, Place};
use bellwether_core::txn::Op;

use super::leader::{ended, open};
use super::model::Invariant;
use super::stage::Cast;
use crate::fixture::{WALL, ready};
use crate::zookeeper::ZooKeeper;

/// Returns the invariant that a transaction from `was` to `is` broke.
pub(super) fn broken(cast: &Cast, was: &ZooKeeper, is: &ZooKeeper, ops: &[Op]) -> Option<Invariant> {
    for part in &cast.jobs {
        let Some((record, version)) = is.value::<JobRecord>(&part.record) else { continue };
        let places = [ready(is, &part.id).is_some(), is.znodes.contains_key(&part.assigned)];
        if places.into_iter().filter(|there| *there).count() != usize::from(!record.is_terminal()) {
            return Some(Invariant::OnePlace);
        }
        match was.value::<JobRecord>(&part.record) {
            Some((before, then)) if then != version && before.is_terminal() => {
                return Some(Invariant::OneEnd);
            }
            Some(_) => {}
            None => {
                if let Some(invariant) = made(was, is, &record) {
                    return Some(invariant);
                }
            }
        }
        let over = over(is, &record, &part.id);
        if !is_where_it_counts(is, &record, over) {
            return Some(Invariant::PlaceOrMark);
        }
        let turn = record.turn().map(|turn| path::turn(&turn, &part.id));
        if turn.is_some_and(|turn| is.znodes.contains_key(&turn) == over) {
            return Some(Invariant::Turn);
        }
    }
    ops.iter().find_map(|op| marked(was, is, op))
}

/// Checks a new job of a group.
fn made(was: &ZooKeeper, is: &ZooKeeper, record: &JobRecord) -> Option<Invariant> {
    let membership = record.membership.as_ref()?;
    let group = &membership.group;
    let (before, _) = was.value::<GroupRecord>(&path::group(group))?;
    let (after, _) = is.value::<GroupRecord>(&path::group(group))?;
    let holds = match membership.role {
        Role::Member(number) => before.admits(group, number, None).is_ok(),
        Role::Join => {
            before.stage == Stage::Open && (all_ended(was, group, &after) || stopped(was, group, &after))
        }
        Role::Finish => {
            let joined = !before.join || ends(was, group, "join").is_some();
            let further = after.further_groups(group).any(|further| is_open(was, &further));
            before.next_stage(WALL) == Stage::Finishing
                && joined
                && ends(was, group, "parent").is_some()
                && !further
        }
    };
    let invariant =
        if matches!(membership.role, Role::Member(_)) { Invariant::Sealed } else { Invariant::AfterTheLast };
    (!holds).then_some(invariant)
}

/// Returns whether all members have ended, and the parent that might submit more.
fn all_ended(zk: &ZooKeeper, group: &GroupId, record: &GroupRecord) -> bool {
    let ended = ended(zk, group).len();
    let parent = record.parent.is_none() || parent_end(zk, group, record).is_some();
    record.stopped.is_none()
        && parent
        && record.total.is_some_and(|total| usize::try_from(total).is_ok_and(|total| total == ended))
        && open(zk, group).is_empty()
}

/// Checks that a stopped group has a valid reason.
fn stopped(zk: &ZooKeeper, group: &GroupId, record: &GroupRecord) -> bool {
    let failed = |end: End| end != End::Succeeded;
    match record.stopped {
        Some(Stop::Member(number)) => {
            record.fail_fast && ended(zk, group).get(&number).is_some_and(|end| failed(*end))
        }
        Some(Stop::Parent) => parent_end(zk, group, record).is_some_and(failed),
        Some(Stop::Outer) => {
            let outer = record.parent.as_ref().and_then(|parent| parent.membership.as_ref());
            let outer = outer.and_then(|outer| zk.value::<GroupRecord>(&path::group(&outer.group)));
            outer.is_some_and(|(outer, _)| outer.stopped.is_some())
        }
        // No day passes in the model.
        Some(Stop::Abandoned) | None => false,
    }
}

/// Returns how the parent ended. The mark is in its first group.
fn parent_end(zk: &ZooKeeper, group: &GroupId, record: &GroupRecord) -> Option<End> {
    let first = record.parent.as_ref().and_then(|parent| parent.first.as_ref());
    ends(zk, first.map_or(group, |first| &first.group), "parent")
}

fn is_open(zk: &ZooKeeper, group: &GroupId) -> bool {
    zk.value::<GroupRecord>(&path::group(group)).is_some_and(|(group, _)| !group.is_done())
}

/// Returns how another job of the group ended.
fn ends(zk: &ZooKeeper, group: &GroupId, who: &str) -> Option<End> {
    let there = |end: &End| zk.znodes.contains_key(&format!("{}/{who}-{}", path::group(group), end.letter()));
    End::ALL.into_iter().find(there)
}

/// Returns whether a job and its sub-jobs have ended.
fn over(zk: &ZooKeeper, record: &JobRecord, job: &JobId) -> bool {
    let sub_jobs =
        record.spawned.then(|| zk.value(&path::group(&GroupId::of_sub_jobs(job, record)))).flatten();
    let first = GroupId::of_sub_jobs(job, record);
    let waits = sub_jobs.is_some_and(|(group, _): (GroupRecord, _)| {
        !group.is_done() || group.further_groups(&first).any(|further| is_open(zk, &further))
    });
    record.is_terminal() && !waits
}

/// Returns whether a member has a place while it is open and a mark afterwards. A member with sub-jobs is open until
/// their group is done.
fn is_where_it_counts(zk: &ZooKeeper, record: &JobRecord, over: bool) -> bool {
    let Some(membership) = &record.membership else { return true };
    let Role::Member(number) = membership.role else { return true };
    let place = zk.znodes.contains_key(&path::place(&membership.group, number));
    let mark = ended(zk, &membership.group).contains_key(&number);
    (place, mark) == (!over, over)
}

/// Checks that the end of a parent with sub-jobs is marked only after its finished job.
fn marked(was: &ZooKeeper, is: &ZooKeeper, op: &Op) -> Option<Invariant> {
    let Op::Set { path, .. } = op else { return None };
    let Place::Group(GroupPlace::Record(group)) = path::parse(path) else { return None };
    let (before, _) = was.value::<GroupRecord>(path)?;
    let (after, _) = is.value::<GroupRecord>(path)?;
    let done = !matches!(before.stage, Stage::Done { .. }) && matches!(after.stage, Stage::Done { .. });
    let finishes = after.parent.as_ref().is_some_and(|parent| parent.finish);
    let ended = match (finishes, after.join) {
        (true, _) => ends(was, &group, "finish").is_some(),
        (false, true) => ends(was, &group, "join").is_some(),
        (false, false) => {
            parent_end(was, &group, &after).is_some()
                && (after.stopped.is_some() || all_ended(was, &group, &after))
        }
    };
    let further = after.further_groups(&group).any(|further| is_open(was, &further));
    (done && (!ended || !open(was, &group).is_empty() || further)).then_some(Invariant::Done)
}
