//! S16: a job is not assigned before its time, nor after its expiry.
//!
//! Both are wall times, and so is when an attempt was assigned, as its leader wrote it. The leader that assigns decides
//! by its clock that a job has not expired, so that is exact. That it is time for the job was decided by the leader that
//! promoted it, maybe another one, so that the two clocks may differ.

use bellwether_core::path::Place;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::Spot;

/// By how much the clocks of two leaders may differ in these histories, in milliseconds.
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
                found.push(format!("{job} was assigned at {at}, and expired at {:?}", record.expires_at));
            }
            let not_before = record.entry().not_before;
            if at.0 + SKEW < not_before.0 {
                found.push(format!("{job} was assigned at {at}, and may not start before {not_before}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::time::WallMillis;

    use super::*;
    use crate::history::rules::fixture::{Story, W1};

    /// Promoted, and assigned then.
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
    fn an_assignment_in_time_is_fine_and_clocks_may_differ() {
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
