//! S5: a leader that has noticed its lost connection does not act.
//!
//! It pauses, or stops leading, as soon as the election receives the loss; a process that was frozen, as soon as it
//! continues.

use std::collections::BTreeMap;

use bellwether_core::name::NodeId;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, Leading, Life};

/// Maximum delay from the session's report to the election's.
const HEARING: u64 = 250;

#[derive(Default)]
pub(super) struct CutOff {
    nodes: BTreeMap<NodeId, Candidate>,
}

#[derive(Default)]
struct Candidate {
    active: bool,
    /// When the connection was lost; reset when the process continues.
    cut_off_since: Option<u64>,
}

impl Predicate for CutOff {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        match step.event {
            EventKind::Leadership { node, state, .. } => {
                self.nodes.entry(node.clone()).or_default().active = *state == Leading::Active;
            }
            EventKind::Link { node, up, .. } => {
                let standing = self.nodes.entry(node.clone()).or_default();
                standing.cut_off_since = if *up { None } else { standing.cut_off_since.or(Some(world.now)) };
            }
            EventKind::Node { node, is: Life::Thawed | Life::ElectionGoesOn } => {
                if let Some(Candidate { cut_off_since: Some(since), .. }) = self.nodes.get_mut(node) {
                    *since = world.now;
                }
            }
            EventKind::Node { node, is: Life::Started | Life::Stopped | Life::Killed | Life::Failed } => {
                self.nodes.remove(node);
            }
            EventKind::Node { is: Life::Frozen | Life::ElectionStalled, .. }
            | EventKind::LeaderWrites { .. }
            | EventKind::Invoke { .. }
            | EventKind::Return { .. }
            | EventKind::Run { .. }
            | EventKind::Txn { .. }
            | EventKind::Refused { .. }
            | EventKind::Evicted { .. }
            | EventKind::Healed => {}
        }
        for (node, standing) in &mut self.nodes {
            let Some(since) = standing.cut_off_since.filter(|_| standing.active && world.election_runs(node))
            else {
                continue;
            };
            if since + HEARING < world.now {
                found.push(format!("{node} leads but has been disconnected since {since} ms"));
                standing.cut_off_since = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::rules::fixture::{LEADER, Story};

    fn cut_off(story: &mut Story) {
        story.push(EventKind::Link { node: NodeId::new("n1").unwrap(), session: LEADER, up: false });
    }

    #[test]
    fn a_leader_that_pauses_is_allowed() {
        let mut story = Story::new();
        story.leads("n1", 1, Leading::Active);
        cut_off(&mut story);
        story.leads("n1", 1, Leading::Paused);
        story.pass(1_000);
        story.submit("a");
        story.assert_keeps("S5");
    }

    #[test]
    fn a_disconnected_leader_that_stays_active_is_found() {
        let mut story = Story::new();
        story.leads("n1", 1, Leading::Active);
        cut_off(&mut story);
        story.pass(1_000);
        story.submit("a");
        story.assert_breaks("S5");
    }
}
