//! L7: every call is answered within its deadline.

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::EventKind;

/// Delay from the deadline until the caller receives the answer.
const TELLING: u64 = 250;

#[derive(Default)]
pub(super) struct BoundedCalls;

impl Predicate for BoundedCalls {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let EventKind::Return { call, .. } = step.event else { return };
        let deadline = world.calls.get(call).and_then(|invoked| invoked.deadline);
        if let Some(deadline) = deadline.filter(|deadline| deadline + TELLING < world.now) {
            found.push(format!("call {call} was answered {} ms late", world.now - deadline));
        }
    }

    fn finish(&mut self, world: &World, found: &mut Found<'_>) {
        for (call, invoked) in &world.calls {
            if invoked.deadline.is_some_and(|deadline| deadline + TELLING < world.now) {
                found.push(format!("call {call} of client {} was never answered", invoked.client));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::Answer;
    use crate::history::rules::fixture::Story;

    fn unknown() -> Answer {
        Answer::Unknown { why: "no answer in time".to_owned() }
    }

    #[test]
    fn an_answer_in_time_is_allowed() {
        let mut story = Story::new();
        let call = story.invoke_read_within("a", 1_000);
        story.pass(1_000);
        story.answer(call, unknown());
        story.assert_keeps("L7");
    }

    #[test]
    fn an_answer_too_late_or_never_is_found() {
        let mut story = Story::new();
        let call = story.invoke_read_within("a", 1_000);
        story.pass(2_000);
        story.answer(call, unknown());
        story.assert_breaks("L7");
        let mut story = Story::new();
        story.invoke_read_within("a", 1_000);
        story.pass(2_000);
        story.assert_breaks("L7");
    }
}
