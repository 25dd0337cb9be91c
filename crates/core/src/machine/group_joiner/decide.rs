//! Decides the next step of a group from one look.

use std::time::Duration;

use super::GroupState;
use crate::group::{End, GroupRecord, Idle, Stage, Stop};
use crate::job::JobRecord;
use crate::name::{GroupId, JobId, NameError};
use crate::time::WallMillis;

/// How long a group waits for its client without a new member before it is abandoned, and how often such a group is
/// counted. So it is abandoned one to two days after its last new member. A count costs one write.
pub const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// The next step of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// Wait until this many more members have ended, or something else changes.
    Wait(Option<u32>),
    /// Write this record, with the job of the new stage.
    Set(Box<GroupRecord>, Option<Box<(JobId, JobRecord)>>),
    /// The group was stopped and has open members: end them.
    EndRest,
    /// The group is done.
    Over,
}

/// Decides the next step. `condemned`: the group in which this one is nested was stopped.
pub(super) fn decide(
    id: &GroupId,
    state: &GroupState,
    condemned: bool,
    now: WallMillis,
) -> Result<Step, NameError> {
    let record = &state.record;
    match record.stage {
        Stage::Open => open(id, state, condemned, now),
        Stage::Joining if state.join.is_none() => Ok(rest(record, state)),
        Stage::Finishing if state.finish.is_none() => Ok(rest(record, state)),
        Stage::Joining | Stage::Finishing => advance(id, state, record.clone(), now),
        Stage::Done { .. } => Ok(Step::Over),
    }
}

fn open(id: &GroupId, state: &GroupState, condemned: bool, now: WallMillis) -> Result<Step, NameError> {
    let record = &state.record;
    if record.stopped.is_some() {
        return advance(id, state, record.clone(), now);
    }
    if let Some(stop) = stop(state, condemned) {
        let stopped = GroupRecord { stopped: Some(stop), closed: true, ..record.clone() };
        let is_counted = record.closed || record.total.is_some_and(|total| state.is_complete(total));
        return match advance(id, state, stopped.clone(), now)? {
            Step::Set(next, job) if is_counted || !matches!(next.stage, Stage::Done { .. }) => {
                Ok(Step::Set(next, job))
            }
            // It cannot advance yet, or members may have been added since they were counted: from now on it admits no
            // members, and its open members are ended.
            Step::Set(..) | Step::Wait(_) | Step::EndRest | Step::Over => {
                Ok(Step::Set(Box::new(stopped), None))
            }
        };
    }
    if record.parent.is_some() && state.parent.is_none() {
        // The parent may submit more members.
        return Ok(Step::Wait(None));
    }
    let set = |record| Ok(Step::Set(Box::new(record), None));
    if let Some(idle) = count_again(state, now) {
        return set(GroupRecord { idle: Some(idle), ..record.clone() });
    }
    // The parent has ended, so there are no further members: the group is closed first, then the members are counted.
    let last = record.parent.is_some();
    match (record.total, state.members) {
        (None, Some(members)) => set(GroupRecord { total: Some(members), ..record.clone() }),
        (Some(total), Some(members)) if members < total => {
            set(GroupRecord { total: Some(members), ..record.clone() })
        }
        (Some(total), _) if state.is_complete(total) => advance(id, state, record.clone(), now),
        (None, None) if last => set(GroupRecord { closed: true, ..record.clone() }),
        (None, None) => Ok(Step::Wait(None)),
        (Some(total), None) if last && state.ended.saturating_add(state.open) < total => {
            set(GroupRecord { closed: true, ..record.clone() })
        }
        (Some(total), _) => {
            let left = total.saturating_sub(state.below.unwrap_or(state.ended)).max(1);
            // Members may be missing; this shows when all existing ones have ended.
            Ok(Step::Wait(Some(if last { left.min(state.open.max(1)) } else { left })))
        }
    }
}

fn stop(state: &GroupState, condemned: bool) -> Option<Stop> {
    match (state.parent, state.failed) {
        (Some(End::Cancelled | End::Dead), _) => Some(Stop::Parent),
        (_, Some(member)) if state.record.fail_fast => Some(Stop::Member(member)),
        (_, _) if condemned => Some(Stop::Outer),
        (_, _) => is_abandoned(state).then_some(Stop::Abandoned),
    }
}

/// The number of members, if the group waits for its client to submit more or to seal it.
fn awaited(state: &GroupState) -> Option<u32> {
    let members = state.ended.saturating_add(state.open);
    let waits = state.record.total.is_none_or(|total| members < total);
    (state.record.parent.is_none() && waits).then_some(members)
}

/// Whether the group has waited for its client for [`ABANDONED_AFTER`] without a new member. Both times are ZooKeeper's: the
/// record was set at both counts, so a wrong clock of a leader abandons no group early.
fn is_abandoned(state: &GroupState) -> bool {
    let (Some(members), Some(idle)) = (awaited(state), state.record.idle) else { return false };
    let since = idle.since.unwrap_or(state.modified);
    idle.members == members && state.modified.since(since) >= ABANDONED_AFTER
}

/// The new count of a group that waits for its client, if it is due by the leader's clock.
fn count_again(state: &GroupState, now: WallMillis) -> Option<Idle> {
    let members = awaited(state)?;
    let is_due = state.modified + ABANDONED_AFTER <= now;
    let unchanged = state.record.idle.filter(|idle| idle.members == members);
    let since = unchanged.map(|idle| idle.since.unwrap_or(state.modified));
    is_due.then_some(Idle { members, since })
}

/// Advances to the next stage. A stopped group is not done while one of its members is open.
fn advance(
    id: &GroupId,
    state: &GroupState,
    record: GroupRecord,
    now: WallMillis,
) -> Result<Step, NameError> {
    let next = GroupRecord { stage: record.next_stage(now), ..record };
    match next.stage {
        // The finished job runs after the parent's own end, and the last stage reports that end to the parent's group.
        Stage::Finishing | Stage::Done { .. } if next.parent.is_some() && state.parent.is_none() => {
            return Ok(rest(&next, state));
        }
        // The same for the parent's further groups.
        Stage::Finishing | Stage::Done { .. } if !state.further.is_empty() => return Ok(rest(&next, state)),
        Stage::Done { .. } if next.stopped.is_some() && state.open > 0 => return Ok(rest(&next, state)),
        Stage::Open | Stage::Joining | Stage::Finishing | Stage::Done { .. } => {}
    }
    let job = next.stage_job(id, now)?;
    Ok(Step::Set(Box::new(next), job.map(Box::new)))
}

/// Waits, and ends the open members of a stopped group. The members of an abandoned group keep running.
fn rest(record: &GroupRecord, state: &GroupState) -> Step {
    match record.stopped {
        Some(Stop::Abandoned) => Step::Wait(Some(state.open.max(1))),
        Some(Stop::Member(_) | Stop::Parent | Stop::Outer) if state.open > 0 => Step::EndRest,
        Some(Stop::Member(_) | Stop::Parent | Stop::Outer) | None => Step::Wait(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::group::Parent;
    use crate::name::Kind;

    const NOW: WallMillis = WallMillis(1_000);

    fn id() -> GroupId {
        GroupId::new("g").unwrap()
    }

    /// A group of sub-jobs without a join and without a finished job.
    fn nested(change: impl FnOnce(&mut GroupState)) -> GroupState {
        let kind = Kind::new("sum").unwrap();
        let parent = Parent {
            job: JobId::new("p:x").unwrap(),
            kind: kind.clone(),
            generation: 1,
            finish: false,
            first: None,
            membership: None,
            depth: 1,
            lane: None,
            outer_lanes: Vec::new(),
        };
        let record = GroupRecord::new(kind, uuid::Uuid::nil(), WallMillis(1));
        let record = GroupRecord { join: false, parent: Some(parent), ..record };
        let mut state = GroupState::new(record, 0, WallMillis(1));
        change(&mut state);
        state
    }

    fn step(state: &GroupState) -> Step {
        decide(&id(), state, false, NOW).unwrap()
    }

    /// The record that the step writes.
    fn written(state: &GroupState) -> GroupRecord {
        match step(state) {
            Step::Set(record, None) => *record,
            other => panic!("expected a record, got {other:?}"),
        }
    }

    #[test]
    fn a_stage_waits_for_its_own_job_only() {
        for (stage, other) in [(Stage::Joining, Stage::Finishing), (Stage::Finishing, Stage::Joining)] {
            let waiting = nested(|state| {
                (state.record.stage, state.parent) = (stage, Some(End::Succeeded));
                match other {
                    Stage::Joining => state.join = Some(End::Succeeded),
                    _ => state.finish = Some(End::Succeeded),
                }
            });
            assert_eq!(step(&waiting), Step::Wait(None), "{stage:?}");
            let over = nested(|state| {
                (state.record.stage, state.parent) = (stage, Some(End::Succeeded));
                (state.join, state.finish) = (Some(End::Succeeded), Some(End::Succeeded));
            });
            assert_eq!(written(&over).stage, Stage::Done { at: NOW });
        }
    }

    #[test]
    fn a_group_is_not_done_before_its_parent_has_ended() {
        let joined = nested(|state| {
            (state.record.stage, state.join) = (Stage::Joining, Some(End::Succeeded));
            state.record.stopped = Some(Stop::Member(3));
        });
        assert_eq!(step(&joined), Step::Wait(None));
    }

    /// After the parent's end there are no further members.
    #[test]
    fn after_the_end_of_its_parent_a_group_is_closed_and_its_members_are_counted() {
        let ended = |total, ended, open| {
            nested(|state| {
                (state.parent, state.record.total) = (Some(End::Succeeded), total);
                (state.ended, state.open) = (ended, open);
            })
        };
        let closed = written(&ended(Some(5), 2, 1));
        assert_eq!((closed.closed, closed.total), (true, Some(5)), "members are missing");
        for open in [2, 3] {
            assert_eq!(step(&ended(Some(5), 3, open)), Step::Wait(Some(2)), "no member is missing");
        }
        let counted = |members| {
            nested(|state| {
                (state.parent, state.record.total) = (Some(End::Succeeded), Some(5));
                (state.record.closed, state.members, state.ended, state.open) = (true, members, 3, 1);
            })
        };
        assert_eq!(written(&counted(Some(4))).total, Some(4));
        assert_eq!(step(&counted(Some(5))), Step::Wait(Some(1)));
    }

    #[test]
    fn a_failed_member_stops_only_a_group_that_fails_fast() {
        for fail_fast in [false, true] {
            let mut state = nested(|state| (state.failed, state.open) = (Some(3), 1));
            state.record.fail_fast = fail_fast;
            match step(&state) {
                Step::Wait(None) if !fail_fast => {}
                Step::Set(record, None) if fail_fast => {
                    assert_eq!((record.stopped, record.closed), (Some(Stop::Member(3)), true));
                }
                other => panic!("{fail_fast}: {other:?}"),
            }
        }
    }

    /// Its members were counted before it was stopped, so it needs no second look.
    #[test]
    fn a_closed_group_whose_parent_failed_is_done_in_one_step() {
        let over = |closed| nested(|state| (state.parent, state.record.closed) = (Some(End::Dead), closed));
        assert_eq!(written(&over(true)).stage, Stage::Done { at: NOW });
        let open = written(&over(false));
        assert_eq!((open.stage, open.closed, open.stopped), (Stage::Open, true, Some(Stop::Parent)));
    }
}
