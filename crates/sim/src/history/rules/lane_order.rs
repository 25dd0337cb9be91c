//! S6: a lane's assignments are disjoint, and in the order of its turns.
//!
//! When a job of a lane is assigned, no turn stands before its own, and no other job of the lane is in an inbox.

use bellwether_core::name::{JobId, Lane};
use bellwether_core::path::Place;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::{JobPlace, Spot};

#[derive(Default)]
pub(super) struct LaneOrder;

impl Predicate for LaneOrder {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            if let (Spot::Place(Place::Assignment(_, job)), None) = (&change.spot, &change.before)
                && let Some(record) = world.truth.record(job).and_then(|znode| znode.record())
                && let Some(lane) = &record.placement.lane
            {
                check(job, lane, world, found);
            }
        }
    }
}

fn check(job: &JobId, lane: &Lane, world: &World, found: &mut Found<'_>) {
    let jobs = world.truth.jobs();
    let mut before = true;
    for (_, other) in jobs.lane(lane) {
        if other == job {
            before = false;
            continue;
        }
        let assigned = jobs
            .get(other)
            .is_some_and(|job| job.places.iter().any(|place| matches!(place, JobPlace::Inbox(_))));
        if assigned {
            found.push(format!("{job} and {other} of lane {lane} are assigned at once"));
        } else if before {
            found.push(format!("{job} of lane {lane} is assigned before {other}"));
        }
    }
    if before {
        found.push(format!("{job} of lane {lane} is assigned without a turn"));
    }
}

#[cfg(test)]
mod tests {
    use crate::history::rules::fixture::{Story, W1, W2};

    #[test]
    fn one_after_the_other_is_fine() {
        let mut story = Story::with_workers();
        story.submit_in_lane("a", "x");
        story.submit_in_lane("b", "x");
        story.submit_in_lane("c", "y");
        story.assign("a", W1);
        story.assign("c", W1);
        story.succeed("a", W1);
        story.assign("b", W2);
        story.assert_keeps("S6");
    }

    #[test]
    fn two_at_once_are_found() {
        let mut story = Story::with_workers();
        story.submit_in_lane("a", "x");
        story.submit_in_lane("b", "x");
        story.assign("a", W1);
        story.assign("b", W2);
        story.assert_breaks("S6");
    }

    #[test]
    fn one_that_is_overtaken_is_found() {
        let mut story = Story::with_workers();
        story.submit_in_lane("a", "x");
        story.submit_in_lane("b", "x");
        story.assign("b", W1);
        story.assert_breaks("S6");
    }
}
