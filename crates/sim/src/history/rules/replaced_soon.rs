//! L1: a silent leader is replaced as soon as the candidates have waited for its beat.
//!
//! It is asked when no node has failed, frozen, stalled or started for longer than a session lives: then the next candidate
//! in the queue is a node that runs. The time counts from the kill or freeze of the leader, or the stall of its election: the
//! wait and two seconds.

use bellwether_core::name::NodeId;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, Leading, Life};

const BEYOND_THE_WAIT: u64 = 2_000;

#[derive(Default)]
pub(super) struct ReplacedSoon {
    leader: Option<NodeId>,
    /// The last change of a node's life, and the healing.
    disturbed: u64,
    lost: Option<Lost>,
}

struct Lost {
    leader: NodeId,
    at: u64,
}

impl Predicate for ReplacedSoon {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        self.late(world, found);
        match step.event {
            EventKind::Leadership { node, state: Leading::Active, .. } => {
                self.leader = Some(node.clone());
                self.lost = self.lost.take().filter(|lost| lost.leader == *node);
            }
            EventKind::Leadership { node, state: Leading::Inactive, .. } => {
                self.leader = self.leader.take().filter(|leader| leader != node);
            }
            EventKind::Node { node, is } => {
                let calm = self.disturbed + world.session_end() + BEYOND_THE_WAIT < world.now;
                let silent = matches!(is, Life::Killed | Life::Frozen | Life::ElectionStalled);
                let others = world.nodes.keys().any(|other| other != node && world.election_runs(other));
                let was_led = self.leader.as_ref() == Some(node);
                let asked = world.healed.is_some() && calm && silent && others && was_led;
                self.lost = asked.then(|| Lost { leader: node.clone(), at: world.now });
                self.disturbed = world.now;
            }
            EventKind::Healed => self.disturbed = world.now,
            EventKind::Leadership { state: Leading::Paused, .. }
            | EventKind::Link { .. }
            | EventKind::LeaderWrites { .. }
            | EventKind::Evicted { .. }
            | EventKind::Invoke { .. }
            | EventKind::Return { .. }
            | EventKind::Run { .. }
            | EventKind::Txn { .. }
            | EventKind::Refused { .. } => {}
        }
    }

    fn finish(&mut self, world: &World, found: &mut Found<'_>) {
        self.late(world, found);
    }
}

impl ReplacedSoon {
    fn late(&mut self, world: &World, found: &mut Found<'_>) {
        let is_late = |lost: &mut Lost| lost.at + world.wait() + BEYOND_THE_WAIT < world.now;
        if let Some(Lost { leader, at }) = self.lost.take_if(is_late) {
            found.push(format!("{leader} is silent since {at} ms, and no other node leads"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::{EventKind, Leading, Life};
    use crate::history::rules::fixture::{SESSION_END, Story};

    fn led() -> Story {
        let mut story = Story::new();
        story.node("n1", Life::Started);
        story.node("n2", Life::Started);
        story.leads("n1", 1, Leading::Active);
        story.push(EventKind::Healed);
        story.pass(2 * SESSION_END);
        // Its last beat.
        story.leads_until("n1", 1, 2_700);
        story
    }

    #[test]
    fn a_silent_leader_that_is_replaced_in_time_is_allowed() {
        for silent in [Life::Killed, Life::Frozen, Life::ElectionStalled] {
            let mut story = led();
            story.node("n1", silent);
            story.pass(4_900);
            story.leads("n2", 2, Leading::Active);
            story.assert_keeps("L1");
        }
    }

    #[test]
    fn a_silent_leader_that_is_not_replaced_is_found() {
        for silent in [Life::Killed, Life::Frozen, Life::ElectionStalled] {
            let mut story = led();
            story.node("n1", silent);
            story.pass(5_100);
            story.leads("n2", 2, Leading::Active);
            story.pass(10);
            story.assert_breaks("L1");
        }
    }

    #[test]
    fn after_another_disturbance_the_sessions_bound_applies() {
        let mut story = led();
        story.node("n2", Life::Started);
        story.node("n1", Life::Killed);
        story.pass(SESSION_END);
        story.leads("n2", 2, Leading::Active);
        story.assert_keeps("L1");
    }
}
