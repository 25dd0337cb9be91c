//! S5: two running nodes never act as leader at the same time.
//!
//! A node is active from its report until its next report or the reported end of its trust, whichever is first. A
//! frozen node is not counted. After it continues, it has [`WAKING`] to stop.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::name::NodeId;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, Leading, Life};

/// How long a process may need after a freeze to notice the time.
const WAKING: u64 = 100;

#[derive(Default)]
pub(super) struct OneLeader {
    active: BTreeMap<NodeId, Active>,
    /// Sessions that were ended before their timeout.
    evicted: BTreeSet<i64>,
    told: BTreeSet<(i32, i32)>,
}

struct Active {
    session: i64,
    epoch: i32,
    until: Option<u64>,
    /// Start of the period that counts.
    from: u64,
}

impl Predicate for OneLeader {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        match step.event {
            EventKind::Leadership { node, session, epoch, state: Leading::Active, until } => {
                // The owner of an evicted session still extends its trust by earlier replies.
                if !self.evicted.contains(session) {
                    let (session, epoch, until, from) = (*session, *epoch, *until, world.now);
                    self.active.insert(node.clone(), Active { session, epoch, until, from });
                }
            }
            EventKind::Leadership { node, state: Leading::Inactive | Leading::Paused, .. } => {
                self.active.remove(node);
            }
            EventKind::Node { node, is: Life::Started | Life::Stopped | Life::Killed | Life::Failed } => {
                self.active.remove(node);
            }
            EventKind::Node { node, is: Life::Thawed } => {
                if let Some(active) = self.active.get_mut(node) {
                    active.from = world.now + WAKING;
                }
            }
            EventKind::Evicted { session } => {
                self.evicted.insert(*session);
                self.active.retain(|_, active| active.session != *session);
            }
            EventKind::Node { is: Life::Frozen | Life::ElectionStalled | Life::ElectionGoesOn, .. }
            | EventKind::Link { .. }
            | EventKind::LeaderWrites { .. }
            | EventKind::Invoke { .. }
            | EventKind::Return { .. }
            | EventKind::Run { .. }
            | EventKind::Txn { .. }
            | EventKind::Refused { .. }
            | EventKind::Healed => {}
        }
        if self.active.len() < 2 {
            return;
        }
        let counts = |node: &NodeId, active: &Active| {
            world.runs(node) && active.from <= world.now && active.until.is_none_or(|until| world.now < until)
        };
        let now: Vec<_> = self.active.iter().filter(|(node, active)| counts(node, active)).collect();
        if let [(one, first), (two, second), ..] = now[..]
            && self.told.insert((first.epoch, second.epoch))
        {
            found.push(format!(
                "{one} is active in epoch {} and {two} in epoch {}",
                first.epoch, second.epoch
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::rules::fixture::{LEADER, OTHER, Story};

    #[test]
    fn successive_leaders_are_allowed() {
        let mut story = Story::new();
        story.leads("n1", 1, Leading::Active);
        story.leads("n1", 1, Leading::Paused);
        story.leads("n2", 2, Leading::Active);
        story.node("n2", Life::Killed);
        story.leads("n1", 3, Leading::Active);
        story.assert_keeps("S5");
    }

    #[test]
    fn a_frozen_leader_may_be_replaced_and_has_time_to_stop_when_it_continues() {
        let mut story = Story::new();
        story.leads("n1", 1, Leading::Active);
        story.node("n1", Life::Frozen);
        story.leads("n2", 2, Leading::Active);
        story.node("n1", Life::Thawed);
        story.pass(50);
        story.leads("n1", 0, Leading::Inactive);
        story.assert_keeps("S5");
    }

    #[test]
    fn a_leader_whose_trust_has_ended_is_not_counted() {
        let mut story = Story::new();
        story.leads_until("n1", 1, 5);
        story.pass(10);
        story.leads("n2", 2, Leading::Active);
        story.assert_keeps("S5");
    }

    #[test]
    fn a_leader_whose_session_was_evicted_is_not_counted() {
        let mut story = Story::new();
        story.leads("n1", 1, Leading::Active);
        story.push(EventKind::Evicted { session: LEADER });
        story.push(EventKind::Leadership {
            node: NodeId::new("n2").unwrap(),
            session: OTHER,
            epoch: 2,
            state: Leading::Active,
            until: None,
        });
        story.assert_keeps("S5");
    }

    #[test]
    fn two_leaders_at_the_same_time_are_found() {
        let mut story = Story::new();
        story.leads("n1", 1, Leading::Active);
        story.leads("n2", 2, Leading::Active);
        story.assert_breaks("S5");
    }

    #[test]
    fn a_leader_that_stays_active_after_a_freeze_is_found() {
        let mut story = Story::new();
        story.leads("n1", 1, Leading::Active);
        story.node("n1", Life::Frozen);
        story.leads("n2", 2, Leading::Active);
        story.node("n1", Life::Thawed);
        story.pass(200);
        story.submit("a");
        story.assert_breaks("S5");
    }
}
