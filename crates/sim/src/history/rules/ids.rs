//! S11: one id is one job.
//!
//! A caller whose submission was accepted submitted the job that exists; a caller with a conflict submitted another
//! one. If the record was removed by retention during the call, the answer is not checked.

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
                found.push(format!("{job} was accepted, but another job has this id"));
            }
            (Answer::Conflict, Some(true)) => {
                found.push(format!("{job} was reported as a conflict with itself"))
            }
            (Answer::Ignored, Some(true)) => {
                found.push(format!("{job} was ignored as another job, but it is the same job"))
            }
            (Answer::Ignored, None) => {
                found.push(format!("{job} was ignored as another job, but no job has this id"))
            }
            (Answer::Conflict, None) => {
                found.push(format!("{job} was reported as a conflict, but no job has this id"))
            }
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
    fn an_ignored_submission_without_another_job_is_found() {
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
