//! S16: a job is not assigned before its start time or after its expiry.
//!
//! Both are wall-clock times, and so is the time of the assignment, which its leader writes. The leader that assigns
//! checks the expiry by its own clock, so that comparison is exact. The start time was checked by the leader that
//! promoted the job, possibly another one, so the clocks may differ.

use bellwether_core::path::Place;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::Spot;

/// Maximum difference of two leaders' clocks in these histories, in milliseconds.
const SKEW: u64 = 6_000;

#[derive(Default)]
pub(super) struct Times;

impl Predicate for Times {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            let Spot::Place(Place::Assignment(_, job)) = &change.spot else { continue };
            let (None, Some(after)) = (&change.before, &change.after) else { continue };
            let record = world.truth.record(job).and_then(|znode| znode.record());
            let (Some(assignment), Some(record)) = (after.assignment(), record) else { continue };
            let at = assignment.assigned_at;
            if record.is_overdue(at) {
                found
                    .push(format!("{job} was assigned at {at}, after its expiry at {:?}", record.expires_at));
            }
            let not_before = record.entry(0).not_before;
            if at.0 + SKEW < not_before.0 {
                found.push(format!("{job} was assigned at {at}, before its start time {not_before}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::time::WallMillis;

    use super::*;
    use crate::history::rules::fixture::{Story, W1};

    /// Creates a delayed job, promotes it and assigns it at `at`.
    fn delayed(not_before: u64, at: u64) -> Story {
        let mut story = Story::with_workers();
        story.submit_with_times("a", Some(not_before), u64::MAX);
        story.promote("a");
        story.assign_at("a", W1, WallMillis(at));
        story
    }

    fn expiring(expires_at: u64, at: u64) -> Story {
        let mut story = Story::with_workers();
        story.submit_with_times("a", None, expires_at);
        story.assign_at("a", W1, WallMillis(at));
        story
    }

    #[test]
    fn an_assignment_in_time_is_allowed_and_clocks_may_differ() {
        delayed(SKEW + 5, 5).assert_keeps("S16");
        expiring(5, 5).assert_keeps("S16");
    }

    #[test]
    fn an_assignment_before_its_time_is_found() {
        delayed(SKEW + 6, 5).assert_breaks("S16");
    }

    #[test]
    fn an_assignment_after_its_expiry_is_found() {
        expiring(5, 6).assert_breaks("S16");
    }
}
