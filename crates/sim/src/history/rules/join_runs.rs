//! S7: a join runs after all members of its group, and a parent's finished handler after the parent, the join and the parent's
//! further groups.
//!
//! Checked at each run of one of them, and not only when it is created: every member below the total must then have its
//! mark and no place, unless the group was stopped. This includes sub-jobs of members: the mark of a member is created
//! when its own sub-jobs have ended. After the removal of a group nothing is checked.

use bellwether_core::group::{End, GroupRecord, Mark, Stage};
use bellwether_core::job::Role;
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::path;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, RunStep};
use crate::history::truth::{Truth, Value};

#[derive(Default)]
pub(super) struct JoinRuns;

impl Predicate for JoinRuns {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let EventKind::Run { job, step: RunStep::Started, .. } = step.event else { return };
        let truth = &world.truth;
        let record = truth.record(job).and_then(|znode| znode.record());
        let Some(part) = record.and_then(|record| record.membership.as_ref()) else { return };
        let Some(Value::Group(group)) = truth.get(&path::group(&part.group)).map(|znode| &*znode.value)
        else {
            return;
        };
        match part.role {
            Role::Member(_) => {}
            Role::Join => joins(job, &part.group, group, truth, found),
            Role::Finish => finishes(job, &part.group, group, truth, found),
        }
    }
}

fn joins(job: &JobId, id: &GroupId, group: &GroupRecord, truth: &Truth, found: &mut Found<'_>) {
    if group.stage == Stage::Open {
        found.push(format!("{job} runs while its group is open"));
    }
    if group.stopped.is_some() {
        return;
    }
    let Some(total) = group.total else {
        return found.push(format!("{job} runs before the total of its group is set"));
    };
    for number in 0..total {
        if !has_ended(truth, id, Mark::Member(number)) {
            found.push(format!("{job} runs before member {number} has ended"));
        }
        if truth.get(&path::place(id, number)).is_some() {
            found.push(format!("{job} runs before the place of member {number} is deleted"));
        }
    }
}

fn finishes(job: &JobId, id: &GroupId, group: &GroupRecord, truth: &Truth, found: &mut Found<'_>) {
    if group.join && !has_ended(truth, id, Mark::Join) {
        found.push(format!("{job} runs before the join has ended"));
    }
    if !has_ended(truth, id, Mark::Parent) {
        found.push(format!("{job} runs before its parent has ended"));
    }
    for (number, further) in (0..).zip(group.further_groups(id)) {
        if !has_ended(truth, id, Mark::Further(number)) {
            found.push(format!("{job} runs before {further} is done"));
        }
    }
}

fn has_ended(truth: &Truth, group: &GroupId, mark: Mark) -> bool {
    End::ALL.iter().any(|end| truth.get(&path::mark(group, mark, *end)).is_some())
}

#[cfg(test)]
mod tests {
    use crate::history::event::RunStep;
    use crate::history::rules::fixture::{Story, W1};

    /// Text of this rule's violations about early runs. Another rule checks the stages.
    const EARLY: &str = " runs before ";

    #[test]
    fn a_join_after_all_members_is_allowed() {
        let mut story = Story::with_group("g", 2, false);
        story.end_member("g", 0);
        story.end_member("g", 1);
        story.join("g");
        story.assign("sum.join:@g", W1);
        story.run("sum.join:@g", W1, RunStep::Started);
        assert!(!story.finds("S7", EARLY));
    }

    #[test]
    fn a_join_before_the_last_member_is_found_unless_the_group_was_stopped() {
        for stopped in [false, true] {
            let mut story = Story::with_group("g", 2, stopped);
            story.end_member("g", 0);
            story.join("g");
            story.assign("sum.join:@g", W1);
            story.run("sum.join:@g", W1, RunStep::Started);
            assert_eq!(story.finds("S7", EARLY), !stopped);
        }
    }

    #[test]
    fn a_finished_handler_before_the_parents_end_or_the_join_is_found() {
        for (parent, join) in [(true, true), (false, true), (true, false)] {
            let mut story = Story::with_sub_jobs("a");
            story.mark_ends(parent, join);
            let finish = story.finish();
            story.assign(&finish, W1);
            story.run(&finish, W1, RunStep::Started);
            assert_eq!(story.finds("S7", EARLY), !(parent && join));
        }
    }
}
