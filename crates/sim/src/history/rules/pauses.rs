//! L5: a pause ends before the trust ends.
//!
//! A node that pauses reports until when it trusts its term, and reports another state by then. A node that is frozen,
//! or whose election is stalled, has [`WAKING`] after it continues.

use std::collections::BTreeMap;

use bellwether_core::name::NodeId;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, Leading, Life};

const WAKING: u64 = 100;

#[derive(Default)]
pub(super) struct Pauses {
    until: BTreeMap<NodeId, u64>,
}

impl Predicate for Pauses {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        match step.event {
            EventKind::Leadership { node, state: Leading::Paused, until: Some(until), .. } => {
                self.until.insert(node.clone(), *until);
            }
            EventKind::Leadership { node, .. } => {
                self.until.remove(node);
            }
            EventKind::Node { node, is: Life::Thawed | Life::ElectionGoesOn } => {
                if let Some(until) = self.until.get_mut(node) {
                    *until = world.now.max(*until) + WAKING;
                }
            }
            EventKind::Node { node, is: Life::Stopped | Life::Killed | Life::Failed | Life::Started } => {
                self.until.remove(node);
            }
            EventKind::Node { is: Life::Frozen | Life::ElectionStalled, .. }
            | EventKind::Link { .. }
            | EventKind::LeaderWrites { .. }
            | EventKind::Invoke { .. }
            | EventKind::Return { .. }
            | EventKind::Run { .. }
            | EventKind::Txn { .. }
            | EventKind::Refused { .. }
            | EventKind::Evicted { .. }
            | EventKind::Healed => {}
        }
        self.late(world, found);
    }

    fn finish(&mut self, world: &World, found: &mut Found<'_>) {
        self.late(world, found);
    }
}

impl Pauses {
    fn late(&mut self, world: &World, found: &mut Found<'_>) {
        self.until.retain(|node, until| {
            let late = world.election_runs(node) && *until + WAKING < world.now;
            if late {
                found.push(format!("{node} is still paused, but its trust ended at {until} ms"));
            }
            !late
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::Leading;
    use crate::history::rules::fixture::Story;

    #[test]
    fn a_pause_that_ends_in_time_is_allowed() {
        let mut story = Story::new();
        story.pauses_until("n1", 1, 1_000);
        story.pass(900);
        story.leads("n1", 1, Leading::Active);
        story.pass(9_000);
        story.assert_keeps("L5");
    }

    #[test]
    fn a_pause_that_lasts_too_long_is_found() {
        let mut story = Story::new();
        story.pauses_until("n1", 1, 1_000);
        story.pass(2_000);
        story.assert_breaks("L5");
    }
}
