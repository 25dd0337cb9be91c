//! L2: a dead worker's jobs are taken back soon.
//!
//! Its ephemeral is deleted at most a session timeout and a tick after its death. Its inbox is empty [`RECOVERY`] after
//! that, if all faults are healed and there is a leader throughout.

use std::collections::BTreeMap;

use bellwether_core::name::WorkerId;
use bellwether_core::path::Place;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::Spot;

const RECOVERY: u64 = 1_000;

#[derive(Default)]
pub(super) struct RecoveredSoon {
    dead: BTreeMap<WorkerId, u64>,
}

impl Predicate for RecoveredSoon {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let has_jobs = |id: WorkerId| world.truth.worker(id).is_some_and(|worker| !worker.jobs.is_empty());
        self.dead.retain(|id, _| has_jobs(*id));
        if !world.is_led() || world.healed.is_none() {
            // The deaths so far are left to the next leader's recovery.
            self.dead.clear();
            return;
        }
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            if let (Spot::Place(Place::Worker(id)), None) = (&change.spot, &change.after)
                && has_jobs(*id)
            {
                self.dead.insert(*id, world.now);
            }
        }
        self.late(world, found);
    }

    fn finish(&mut self, world: &World, found: &mut Found<'_>) {
        if world.is_led() {
            self.late(world, found);
        }
    }
}

impl RecoveredSoon {
    fn late(&mut self, world: &World, found: &mut Found<'_>) {
        self.dead.retain(|id, since| {
            let late = *since + RECOVERY < world.now;
            if late {
                found.push(format!("{id} left at {since} ms and its inbox is still not empty"));
            }
            !late
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::{EventKind, Leading};
    use crate::history::rules::fixture::{Story, W1};

    fn dies_with_a_job() -> Story {
        let mut story = Story::with_workers();
        story.leads("n2", 1, Leading::Active);
        story.push(EventKind::Healed);
        story.submit("a");
        story.assign("a", W1);
        story.unregister(W1);
        story
    }

    #[test]
    fn a_job_that_is_taken_back_in_time_is_allowed() {
        let mut story = dies_with_a_job();
        story.pass(500);
        story.lose("a", W1);
        story.pass(5_000);
        story.assert_keeps("L2");
    }

    #[test]
    fn without_a_leader_a_job_may_stay() {
        let mut story = dies_with_a_job();
        story.leads("n2", 0, Leading::Inactive);
        story.pass(5_000);
        story.assert_keeps("L2");
    }

    /// Its election hangs, so it reports nothing, and its members send nothing.
    #[test]
    fn when_the_trust_of_the_leader_has_ended_a_job_may_stay() {
        let mut story = Story::with_workers();
        story.leads_until("n2", 1, 700);
        story.push(EventKind::Healed);
        story.submit("a");
        story.assign("a", W1);
        story.unregister(W1);
        story.pass(5_000);
        story.assert_keeps("L2");
    }

    #[test]
    fn a_job_that_stays_is_found() {
        let mut story = dies_with_a_job();
        story.pass(5_000);
        story.assert_breaks("L2");
    }
}
