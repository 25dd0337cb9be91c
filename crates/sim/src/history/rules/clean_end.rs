//! L6: what was used is given back.
//!
//! At the end there is no inbox without its worker and no candidate that its session does not need. That nothing is left
//! of a job but its record is held after every transaction (S1, places). Records stay: there is no retention.

use std::collections::BTreeMap;

use bellwether_core::path;

use super::Predicate;
use crate::history::checker::{Found, Step, World};

#[derive(Default)]
pub(super) struct CleanEnd;

impl Predicate for CleanEnd {
    fn observe(&mut self, _: &Step<'_>, _: &World, _: &mut Found<'_>) {}

    fn finish(&mut self, world: &World, found: &mut Found<'_>) {
        if world.healed.is_none() {
            return;
        }
        let jobs = world.truth.jobs();
        for inbox in jobs.inboxes() {
            if !jobs.worker(inbox).is_some_and(|worker| worker.registered) {
                found.push(format!("the inbox of {inbox} is left, and its worker is gone"));
            }
        }
        let mut candidates = BTreeMap::<i64, usize>::new();
        for (_, znode) in world.truth.below(path::ELECTION) {
            *candidates.entry(znode.owner).or_default() += 1;
        }
        for (session, count) in candidates {
            if session == 0 || count > 1 {
                found.push(format!("session {session:#x} has {count} candidates"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::EventKind;
    use crate::history::rules::fixture::{LEADER, OTHER, Story, W1, W2};

    #[test]
    fn inboxes_of_workers_and_one_candidate_each_are_fine() {
        let mut story = Story::with_workers();
        story.push(EventKind::Healed);
        story.candidate(LEADER, 1);
        story.candidate(OTHER, 2);
        story.assert_keeps("L6");
    }

    #[test]
    fn an_inbox_that_is_left_is_found() {
        let mut story = Story::with_workers();
        story.push(EventKind::Healed);
        story.unregister(W1);
        story.unregister(W2);
        story.assert_breaks("L6");
    }

    #[test]
    fn a_second_candidate_is_found() {
        let mut story = Story::new();
        story.push(EventKind::Healed);
        story.candidate(LEADER, 1);
        story.candidate(LEADER, 2);
        story.assert_breaks("L6");
    }
}
