//! S1: an acknowledged job is there.
//!
//! Every submission that was accepted has a record when the answer comes, and nothing deletes a record. Retention, once
//! there is any, will allow the deletion of a record whose job is over.

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{Answer, Call, EventKind};
use crate::history::truth::Spot;

#[derive(Default)]
pub(super) struct Accepted;

impl Predicate for Accepted {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        if let EventKind::Return { call, answer: Answer::Accepted } = step.event
            && let Some(Call::Submit { job, .. }) = world.calls.get(call).map(|invoked| &invoked.what)
            && world.truth.record(job).is_none()
        {
            found.push(format!("{job} was accepted and has no record"));
        }
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            if let (Spot::Record(job), None) = (&change.spot, &change.after) {
                found.push(format!("the record of {job} was deleted"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::Answer;
    use crate::history::rules::fixture::Story;

    #[test]
    fn an_accepted_job_has_a_record() {
        let mut story = Story::new();
        let call = story.invoke_submit("a");
        story.submit("a");
        story.answer(call, Answer::Accepted);
        story.assert_keeps("S1");
    }

    #[test]
    fn one_without_a_record_is_found() {
        let mut story = Story::new();
        let call = story.invoke_submit("a");
        story.answer(call, Answer::Accepted);
        story.assert_breaks("S1");
    }

    #[test]
    fn a_record_that_is_deleted_is_found() {
        let mut story = Story::new();
        story.submit("a");
        story.delete(&["/jobs/1f/a", "/queue/1f/a"]);
        story.assert_breaks("S1");
    }
}
