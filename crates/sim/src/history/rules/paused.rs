//! S17: a leader assigns no job of a kind that was paused before its term.
//!
//! A pause during a term reaches the leader as a hint, with a delay. A pause that existed when the epoch was claimed is
//! known to the leader before its first assignment.

use bellwether_core::path::{self, Place};

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::Spot;

#[derive(Default)]
pub(super) struct Paused {
    /// The transaction of the last claim.
    claimed: i64,
}

impl Predicate for Paused {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let Some(commit) = step.commit else { return };
        for change in &commit.changes {
            match &change.spot {
                Spot::Epoch => self.claimed = commit.zxid,
                // An attempt that is taken over has started before.
                Spot::Place(Place::Assignment(..)) if commit.moves(change, &world.truth) => {}
                Spot::Place(Place::Assignment(_, job)) if change.before.is_none() => {
                    let record = world.truth.record(job).and_then(|znode| znode.record());
                    let Some(kind) = record.map(|record| &record.kind) else { continue };
                    let pause = world.truth.get(&path::pause(kind));
                    if pause.is_some_and(|pause| pause.czxid < self.claimed) {
                        found.push(format!(
                            "{job} was assigned although {kind} was paused before the leader's term"
                        ));
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::rules::fixture::{OTHER, Story, W1, W2};

    #[test]
    fn an_assignment_concurrent_with_a_pause_is_allowed() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.pause();
        story.assign("a", W1);
        story.assert_keeps("S17");
    }

    #[test]
    fn an_assignment_by_a_leader_that_came_after_the_pause_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.pause();
        story.claim(OTHER, 2);
        story.assign_by("a", W1, OTHER, Some(2));
        story.assert_breaks("S17");
    }

    #[test]
    fn an_attempt_of_a_paused_kind_may_be_taken_over() {
        let mut story = Story::new();
        story.register(W1, "n1");
        story.register_to_take_over(W2, "n2");
        story.submit("a");
        story.assign("a", W1);
        story.pause();
        story.claim(OTHER, 2);
        story.take_over("a", W1, W2);
        story.assert_keeps("S17");
    }
}
