//! L3 for groups: a group advances as soon as it can.
//!
//! Checked at the end, some time after the healing and after the last change of the group. A group that is not done
//! must wait for its total, for members that were not submitted, or for a job that is open. (That open jobs end is also
//! part of L3.)

use std::collections::BTreeMap;

use bellwether_core::job::Membership;
use bellwether_core::name::GroupId;
use bellwether_core::path::{GroupPlace, Place};

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::Spot;

/// The time that a leader may need in addition to a session's end: a sweep and some rounds of requests.
const LATE: u64 = 30_000;

#[derive(Default)]
pub(super) struct GroupProgress {
    /// When each group last changed.
    since: BTreeMap<GroupId, u64>,
}

impl Predicate for GroupProgress {
    fn observe(&mut self, step: &Step<'_>, world: &World, _: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            let group = match &change.spot {
                Spot::Place(Place::Group(
                    GroupPlace::Record(group) | GroupPlace::Mark(group, ..) | GroupPlace::Member(group, _),
                )) => Some(group),
                Spot::Record(_) => {
                    let record = change.after.as_ref().and_then(|znode| znode.record());
                    record.and_then(|record| record.membership.as_ref()).map(|Membership { group, .. }| group)
                }
                Spot::Quarantine(_) | Spot::Epoch | Spot::Candidate | Spot::Retention | Spot::Place(_) => {
                    None
                }
            };
            if let Some(group) = group {
                self.since.insert(group.clone(), world.now);
            }
        }
    }

    fn finish(&mut self, world: &World, found: &mut Found<'_>) {
        let Some(healed) = world.healed else { return };
        let truth = &world.truth;
        for (id, _) in truth.groups().all() {
            let Some(group) = truth.group(id) else { continue };
            let since = self.since.get(id).copied().unwrap_or_default().max(healed);
            if !truth.rests(id, group) && world.now > since + world.session_end() + LATE {
                found.push(format!(
                    "{id} is {:?} and does not advance, although it waits for nothing",
                    group.stage
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::EventKind;
    use crate::history::rules::fixture::{Story, W1};

    #[test]
    fn a_group_that_does_not_advance_is_found_once_it_is_late() {
        for (total, late) in [(Some(1), true), (Some(1), false), (Some(2), true), (None, true)] {
            let mut story = Story::with_workers();
            story.group("g", |group| group.total = total);
            story.member("g", 0);
            story.assign("sum:g:0", W1);
            story.succeed("sum:g:0", W1);
            story.push(EventKind::Healed);
            story.pass(if late { 50_000 } else { 5_000 });
            story.invoke_submit("b");
            if late && total == Some(1) { story.assert_breaks("L3") } else { story.assert_keeps("L3") }
        }
    }
}
