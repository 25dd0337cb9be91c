//! S6: the assignments of a lane are disjoint, and in the order of its turns.
//!
//! When a job of a lane is assigned, its turn is the first one, and no other job of the lane is in an inbox.

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
            found.push(format!("{job} and {other} of lane {lane} are assigned at the same time"));
        } else if before {
            found.push(format!("{job} of lane {lane} is assigned ahead of {other}"));
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
    fn assignments_in_order_are_allowed() {
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
    fn two_assignments_at_the_same_time_are_found() {
        let mut story = Story::with_workers();
        story.submit_in_lane("a", "x");
        story.submit_in_lane("b", "x");
        story.assign("a", W1);
        story.assign("b", W2);
        story.assert_breaks("S6");
    }

    #[test]
    fn an_overtaken_job_is_found() {
        let mut story = Story::with_workers();
        story.submit_in_lane("a", "x");
        story.submit_in_lane("b", "x");
        story.assign("b", W1);
        story.assert_breaks("S6");
    }
}
