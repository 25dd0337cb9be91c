//! S11: one id is one job.
//!
//! Whoever is told that a job was accepted asked for the job that is there; whoever is told of a conflict asked for
//! another. Of an answer to a call during which the record went, because its retention was over, nothing is known.

use super::Predicate;
use super::removals::Removals;
use crate::history::Digest;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{Answer, Call, EventKind};

#[derive(Default)]
pub(super) struct Ids {
    removals: Removals,
}

impl Predicate for Ids {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let gone_since = self.removals.observe(step, world);
        let EventKind::Return { call, answer } = step.event else { return };
        if gone_since {
            return;
        }
        let asked = world.calls.get(call).map(|invoked| &invoked.what);
        let Some(Call::Submit { job, kind, payload, .. }) = asked else { return };
        let record = world.truth.record(job).and_then(|znode| znode.record());
        let same =
            record.map(|record| record.kind == *kind && Digest::of(record.payload.bytes()) == *payload);
        match (answer, same) {
            (Answer::Accepted, Some(false)) => {
                found.push(format!("{job} was accepted, and what is there is another job"));
            }
            (Answer::Conflict, Some(true)) => found.push(format!("{job} is in conflict with itself")),
            (Answer::Ignored, Some(true)) => {
                found.push(format!("{job} was taken for another and is the same"))
            }
            (Answer::Ignored, None) => {
                found.push(format!("{job} was taken for another, and nothing is there"))
            }
            (Answer::Conflict, None) => found.push(format!("{job} is in conflict with nothing")),
            (_, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::Answer;
    use crate::history::rules::fixture::Story;

    #[test]
    fn the_same_job_is_accepted_and_another_is_a_conflict() {
        let mut story = Story::new();
        let [first, again] = [(); 2].map(|()| story.invoke_submit("a"));
        let other = story.invoke_submit_of("a", b"other");
        story.submit("a");
        story.answer(first, Answer::Accepted);
        story.answer(again, Answer::Accepted);
        story.answer(other, Answer::Conflict);
        story.assert_keeps("S11");
    }

    #[test]
    fn another_job_that_is_accepted_is_found() {
        let mut story = Story::new();
        let other = story.invoke_submit_of("a", b"other");
        story.submit("a");
        story.answer(other, Answer::Accepted);
        story.assert_breaks("S11");
    }

    #[test]
    fn one_that_is_ignored_for_another_that_is_not_there_is_found() {
        let mut story = Story::new();
        let other = story.invoke_submit_of("a", b"other");
        story.submit("a");
        story.answer(other, Answer::Ignored);
        story.assert_keeps("S11");
        let mut story = Story::new();
        let same = story.invoke_submit("a");
        story.submit("a");
        story.answer(same, Answer::Ignored);
        story.assert_breaks("S11");
    }

    #[test]
    fn a_conflict_with_itself_is_found() {
        let mut story = Story::new();
        let call = story.invoke_submit("a");
        story.submit("a");
        story.answer(call, Answer::Conflict);
        story.assert_breaks("S11");
    }
}
