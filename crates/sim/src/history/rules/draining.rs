//! S18: a draining worker gets no new jobs, and drains until it leaves.
//!
//! This holds from the transaction that marks its registration, so before the caller has an answer. Jobs that were
//! assigned before may start after it, because the worker has yet to see the mark. Once the worker has seen the mark it
//! starts nothing. Only the worker knows when that is; the simulator asserts it (`host/worker/runs`).

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
                    found.push(format!("a client was answered that {worker} drains, but it is not marked"));
                }
                Answer::WorkerGone if registration.is_some() => {
                    found.push(format!(
                        "a client was answered that {worker} does not exist, but it is registered"
                    ));
                }
                _ => {}
            }
        }
    }
}

fn changed(change: &Change, world: &World, found: &mut Found<'_>) {
    match (&change.spot, &change.before, &change.after) {
        (Spot::Place(Place::Worker(id)), Some(before), Some(after)) if marked(before) && !marked(after) => {
            found.push(format!("the draining mark of {id} was removed"));
        }
        (Spot::Place(Place::Assignment(worker, job)), None, Some(_))
            if registration(*worker, world).is_some_and(marked) =>
        {
            found.push(format!("{job} was assigned to the draining worker {worker}"));
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
    fn a_job_assigned_before_the_mark_may_start_after_it() {
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
    fn an_assignment_to_a_draining_worker_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.mark(W1, true);
        story.assign("a", W1);
        story.assert_breaks("S18");
    }

    #[test]
    fn a_removed_mark_is_found() {
        let mut story = Story::with_workers();
        story.mark(W1, true);
        story.mark(W1, false);
        story.assert_breaks("S18");
    }

    #[test]
    fn a_false_answer_is_found() {
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
