//! S18: a worker that drains gets nothing new, and drains until it is gone.
//!
//! From the transaction that marks its registration, and so before whoever asked for it has an answer. What was assigned
//! before may begin after: the worker has yet to see the mark. From then on it begins nothing, which only the worker knows;
//! the simulator asks it (`node/worker/executor`).

use bellwether_core::name::WorkerId;
use bellwether_core::path::{self, Place};

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{Answer, Call, EventKind};
use crate::history::truth::{Change, Spot, Znode};

#[derive(Default)]
pub(super) struct Draining;

impl Predicate for Draining {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            changed(change, world, found);
        }
        if let EventKind::Return { call, answer } = step.event
            && let Some(Call::Drain { worker }) = world.calls.get(call).map(|invoked| &invoked.what)
        {
            let registration = registration(*worker, world);
            match answer {
                Answer::Drains if registration.is_some_and(|znode| !marked(znode)) => {
                    found.push(format!("{worker} was said to drain, and nothing tells it to"));
                }
                Answer::WorkerGone if registration.is_some() => {
                    found.push(format!("{worker} was said to be gone, and is there"));
                }
                _ => {}
            }
        }
    }
}

fn changed(change: &Change, world: &World, found: &mut Found<'_>) {
    match (&change.spot, &change.before, &change.after) {
        (Spot::Place(Place::Worker(id)), Some(before), Some(after)) if marked(before) && !marked(after) => {
            found.push(format!("{id} was told to drain, and serves again"));
        }
        (Spot::Place(Place::Assignment(worker, job)), None, Some(_))
            if registration(*worker, world).is_some_and(marked) =>
        {
            found.push(format!("{job} was assigned to {worker}, which drains"));
        }
        (_, _, _) => {}
    }
}

fn registration(worker: WorkerId, world: &World) -> Option<&Znode> {
    world.truth.get(&path::worker(worker))
}

fn marked(registration: &Znode) -> bool {
    registration.worker().is_some_and(|info| info.draining)
}

#[cfg(test)]
mod tests {
    use crate::history::event::{Answer, RunStep};
    use crate::history::rules::fixture::{Story, W1};

    #[test]
    fn what_was_assigned_before_may_begin_after() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        let call = story.invoke_drain(W1);
        story.mark(W1, true);
        story.answer(call, Answer::Drains);
        story.run("a", W1, RunStep::Started);
        story.succeed("a", W1);
        story.unregister(W1);
        story.assert_keeps("S18");
    }

    #[test]
    fn an_assignment_to_a_worker_that_drains_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.mark(W1, true);
        story.assign("a", W1);
        story.assert_breaks("S18");
    }

    #[test]
    fn a_mark_that_is_taken_back_is_found() {
        let mut story = Story::with_workers();
        story.mark(W1, true);
        story.mark(W1, false);
        story.assert_breaks("S18");
    }

    #[test]
    fn an_answer_that_is_not_true_is_found() {
        for (answer, leaves, keeps) in [
            (Answer::Drains, false, false),
            (Answer::Drains, true, true),
            (Answer::WorkerGone, false, false),
            (Answer::WorkerGone, true, true),
        ] {
            let mut story = Story::with_workers();
            let call = story.invoke_drain(W1);
            if leaves {
                story.unregister(W1);
            }
            story.answer(call, answer);
            if keeps { story.assert_keeps("S18") } else { story.assert_breaks("S18") }
        }
    }
}
