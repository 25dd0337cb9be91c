//! S5: a member of the leader wing begins a write only while its node may act as the leader.
//!
//! The node reports the time until which it may act with each change of its leadership, before the permission changes.

use std::collections::BTreeMap;

use bellwether_core::name::NodeId;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, Leading, Life};

/// The epoch in which a node leads, and until when it may act.
#[derive(Default)]
pub(super) struct PausedWrites {
    permitted: BTreeMap<NodeId, (i32, u64)>,
}

impl Predicate for PausedWrites {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        match step.event {
            EventKind::Leadership { node, epoch, state: Leading::Active, until, .. } => {
                self.permitted.insert(node.clone(), (*epoch, until.unwrap_or(u64::MAX)));
            }
            EventKind::Leadership { node, state: Leading::Inactive | Leading::Paused, .. }
            | EventKind::Node { node, is: Life::Started | Life::Stopped | Life::Killed | Life::Failed } => {
                self.permitted.remove(node);
            }
            EventKind::LeaderWrites { node, epoch } => {
                let permitted = self.permitted.get(node);
                if permitted.is_none_or(|(leads, until)| leads != epoch || *until <= world.now) {
                    found.push(format!(
                        "{node} begins a write of epoch {epoch}, but may not act as its leader"
                    ));
                }
            }
            EventKind::Node { .. }
            | EventKind::Link { .. }
            | EventKind::Invoke { .. }
            | EventKind::Return { .. }
            | EventKind::Run { .. }
            | EventKind::Txn { .. }
            | EventKind::Refused { .. }
            | EventKind::Evicted { .. }
            | EventKind::Healed => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::rules::fixture::Story;

    fn writes(story: &mut Story, epoch: i32) {
        story.push(EventKind::LeaderWrites { node: NodeId::new("n1").unwrap(), epoch });
    }

    #[test]
    fn a_write_of_a_leader_that_may_act_is_allowed() {
        let mut story = Story::new();
        story.leads_until("n1", 1, 1_000);
        story.pass(900);
        writes(&mut story, 1);
        story.assert_keeps("S5");
    }

    #[test]
    fn a_write_after_the_permission_has_lapsed_is_found() {
        let mut story = Story::new();
        story.leads_until("n1", 1, 1_000);
        story.pass(1_000);
        writes(&mut story, 1);
        story.assert_breaks("S5");
    }

    #[test]
    fn a_write_while_the_leader_is_paused_is_found() {
        let mut story = Story::new();
        story.leads("n1", 1, Leading::Active);
        story.leads("n1", 1, Leading::Paused);
        writes(&mut story, 1);
        story.assert_breaks("S5");
    }

    #[test]
    fn a_write_of_an_earlier_epoch_is_found() {
        let mut story = Story::new();
        story.leads("n1", 2, Leading::Active);
        writes(&mut story, 1);
        story.assert_breaks("S5");
    }
}
