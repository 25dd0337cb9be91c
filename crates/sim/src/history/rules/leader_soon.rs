//! L1: there is a new leader soon.
//!
//! The time counts from the healing, and from each later loss of a leader: a session timeout, a tick and two seconds.
//! It restarts when a node has stopped, as happens some time after an operator has drained its worker, or is killed, as
//! by a job that kills its worker, because this node may have been the only candidate, or the next one. It does not count
//! while all nodes are stopped, apart from those that never lead because their clocks are wrong.

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, Life};

const BEYOND_THE_SESSION: u64 = 2_000;

#[derive(Default)]
pub(super) struct LeaderSoon {
    without_since: Option<u64>,
}

impl Predicate for LeaderSoon {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        self.late(world, found);
        let ended = matches!(step.event, EventKind::Node { is: Life::Stopped | Life::Killed, .. });
        let left = ended || world.all_left();
        if world.is_led() || left {
            self.without_since = None;
        }
        if world.healed.is_some() && !world.is_led() && !world.all_left() {
            self.without_since.get_or_insert(world.now);
        }
    }

    fn finish(&mut self, world: &World, found: &mut Found<'_>) {
        self.late(world, found);
    }
}

impl LeaderSoon {
    fn late(&mut self, world: &World, found: &mut Found<'_>) {
        let by = self.without_since.map(|since| since + world.session_end() + BEYOND_THE_SESSION);
        if by.is_some_and(|by| by < world.now) {
            found.push(format!(
                "there has been no leader since {} ms",
                self.without_since.unwrap_or_default()
            ));
            self.without_since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::{EventKind, Leading, Life};
    use crate::history::rules::fixture::{SESSION_END, Story};

    #[test]
    fn a_leader_in_time_is_allowed() {
        let mut story = Story::new();
        story.push(EventKind::Healed);
        story.pass(SESSION_END);
        story.leads("n1", 1, Leading::Active);
        story.node("n1", Life::Killed);
        story.pass(SESSION_END);
        story.leads("n2", 1, Leading::Active);
        story.pass(10 * SESSION_END);
        story.assert_keeps("L1");
    }

    #[test]
    fn the_time_restarts_when_a_node_ends() {
        for (life, keeps) in [(Life::Stopped, true), (Life::Killed, true), (Life::Thawed, false)] {
            let mut story = Story::new();
            story.push(EventKind::Healed);
            story.pass(SESSION_END);
            story.node("n1", life);
            story.pass(SESSION_END);
            story.leads("n2", 1, Leading::Active);
            story.pass(SESSION_END);
            if keeps { story.assert_keeps("L1") } else { story.assert_breaks("L1") }
        }
    }

    #[test]
    fn the_time_counts_only_while_a_node_is_started() {
        for leads in [true, false] {
            let mut story = Story::new();
            story.push(EventKind::Healed);
            story.node("n1", Life::Stopped);
            story.push(EventKind::Healed);
            story.pass(10 * SESSION_END);
            story.node("n1", Life::Started);
            story.pass(SESSION_END);
            if leads {
                story.leads("n1", 1, Leading::Active);
            }
            story.pass(10 * SESSION_END);
            if leads { story.assert_keeps("L1") } else { story.assert_breaks("L1") }
        }
    }

    #[test]
    fn a_missing_leader_is_found() {
        let mut story = Story::new();
        story.leads("n1", 1, Leading::Active);
        story.push(EventKind::Healed);
        story.node("n1", Life::Killed);
        story.pass(SESSION_END + 3_000);
        story.assert_breaks("L1");
    }
}
