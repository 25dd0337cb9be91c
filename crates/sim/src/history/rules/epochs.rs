//! S4: epochs strictly increase, and each belongs to one session.
//!
//! Limit: after an operator has deleted `/epoch`, a node that never saw the old epochs may claim one of them again. So
//! the rule forgets the highest epoch when the znode is deleted.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::Spot;

#[derive(Default)]
pub(super) struct Epochs {
    highest: i32,
    tokens: BTreeSet<Uuid>,
}

impl Predicate for Epochs {
    fn observe(&mut self, step: &Step<'_>, _: &World, found: &mut Found<'_>) {
        let Some(commit) = step.commit else { return };
        for change in commit.changes.iter().filter(|change| change.spot == Spot::Epoch) {
            let Some(after) = &change.after else {
                self.highest = 0;
                continue;
            };
            let first = change.before.is_none() && after.version == 0;
            if after.version <= self.highest && !first {
                found.push(format!("epoch {} was claimed after {}", after.version, self.highest));
            }
            self.highest = self.highest.max(after.version);
            // A new namespace has an empty `/epoch`.
            let Some(claim) = after.epoch() else { continue };
            if claim.session != commit.session {
                let (epoch, owner, by) = (after.version, claim.session, commit.session);
                found.push(format!("epoch {epoch} of session {owner:#x} was claimed by {by:#x}"));
            }
            if !self.tokens.insert(claim.token) {
                found.push(format!("epoch {} reuses the token of an earlier claim", after.version));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::rules::fixture::{LEADER, OTHER, Story};

    #[test]
    fn claims_by_successive_sessions_are_allowed() {
        let mut story = Story::new();
        story.claim(OTHER, 2);
        story.claim(LEADER, 3);
        story.assert_keeps("S4");
    }

    #[test]
    fn a_claim_in_the_name_of_another_session_is_found() {
        let mut story = Story::new();
        story.claim_as(OTHER, LEADER, 2);
        story.assert_breaks("S4");
    }

    #[test]
    fn a_claim_that_is_written_twice_is_found() {
        let mut story = Story::new();
        story.claim(OTHER, 2);
        story.claim_again(OTHER);
        story.assert_breaks("S4");
    }
}
