//! S2: the transaction that ends a job as dead creates its dead-letter job, if the job asks for one. No other
//! transaction creates one.

use std::collections::BTreeSet;

use bellwether_core::job::{dead_letter, is_dead_letter};

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::Spot;

#[derive(Default)]
pub(super) struct DeadLetters;

impl Predicate for DeadLetters {
    fn observe(&mut self, step: &Step<'_>, _: &World, found: &mut Found<'_>) {
        let Some(commit) = &step.commit else { return };
        let (mut expected, mut created) = (BTreeSet::new(), BTreeSet::new());
        for change in &commit.changes {
            let Spot::Record(job) = &change.spot else { continue };
            let before = change.before.as_ref().and_then(|znode| znode.record());
            let Some(after) = change.after.as_ref().and_then(|znode| znode.record()) else { continue };
            match before {
                Some(before) if !before.is_terminal() => {
                    expected.extend(dead_letter(job, after).map(|(letter, _)| letter));
                }
                None if is_dead_letter(job) => {
                    created.insert(job.clone());
                }
                Some(_) | None => {}
            }
        }
        for letter in expected.difference(&created) {
            found.push(format!("a job is dead without its dead-letter job {letter}"));
        }
        for letter in created.difference(&expected) {
            found.push(format!("{letter} was created without the death of its job"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::rules::fixture::{Story, W1};

    fn one_attempt() -> Story {
        let mut story = Story::with_workers();
        story.submit_with_dead_letter("a");
        story.assign("a", W1);
        story
    }

    #[test]
    fn a_death_creates_the_dead_letter_job() {
        let mut story = one_attempt();
        story.fail("a", W1);
        story.assert_keeps("S2");
    }

    #[test]
    fn a_death_without_its_dead_letter_job_is_found() {
        let mut story = one_attempt();
        story.fail_without_dead_letter("a", W1);
        story.assert_breaks("S2");
    }

    #[test]
    fn a_dead_letter_job_of_a_living_job_is_found() {
        let mut story = Story::with_workers();
        story.submit("bill.dead:@a@1.0000beef");
        story.assert_breaks("S2");
    }
}
