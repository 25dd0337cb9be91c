//! S10: no assignment after the end; every run has an assignment, and starts once.
//!
//! A run that starts after the end must belong to an attempt that was assigned before. So it is enough to check that
//! nothing is assigned after the end, and that each run has an assignment to its worker, with the version that the
//! record had at that time. After an operator has repaired an unreadable record, the version of the repaired record is
//! allowed, too.

use std::collections::BTreeMap;

use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path::{self, Place};

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, RunStep};
use crate::history::truth::{Change, JobPlace, Spot};

#[derive(Default)]
pub(super) struct Runs {
    /// By job, generation and attempt.
    granted: BTreeMap<(JobId, u32, u32), Grant>,
}

struct Grant {
    worker: WorkerId,
    token: i32,
    started: bool,
}

impl Predicate for Runs {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            self.assigned(change, world, found);
            self.put_back(change, world);
        }
        let EventKind::Run { worker, job, generation, attempt, token, step: RunStep::Started, .. } =
            step.event
        else {
            return;
        };
        let Some(grant) = self.granted.get_mut(&(job.clone(), *generation, *attempt)) else {
            return found.push(format!("attempt {attempt} of {job} runs but was never assigned"));
        };
        if grant.worker != *worker {
            found.push(format!(
                "attempt {attempt} of {job} runs on {worker} but was assigned to {}",
                grant.worker
            ));
        }
        if grant.token != *token {
            found.push(format!("attempt {attempt} of {job} has token {token} instead of {}", grant.token));
        }
        if std::mem::replace(&mut grant.started, true) {
            found.push(format!("attempt {attempt} of {job} was started twice"));
        }
    }
}

impl Runs {
    fn assigned(&mut self, change: &Change, world: &World, found: &mut Found<'_>) {
        let Spot::Place(Place::Assignment(worker, job)) = &change.spot else { return };
        let (None, Some(assignment)) =
            (&change.before, change.after.as_ref().and_then(|znode| znode.assignment()))
        else {
            return;
        };
        let Some(znode) = world.truth.record(job) else {
            return found.push(format!("{job} was assigned but has no record"));
        };
        let Some(record) = znode.record() else { return };
        if record.is_terminal() {
            found.push(format!("{job} was assigned after its end"));
        }
        let grant = Grant { worker: *worker, token: znode.version, started: false };
        self.granted.insert((job.clone(), record.generation, assignment.attempt), grant);
    }

    /// Handles the repair of an unreadable record: its worker may begin the attempt once with the version of the repaired
    /// record, even if it began before the damage. The close of that run is rejected, because the record was changed.
    fn put_back(&mut self, change: &Change, world: &World) {
        let Spot::Record(job) = &change.spot else { return };
        let (Some(before), Some(after)) = (&change.before, &change.after) else { return };
        let (None, Some(record)) = (before.record(), after.record()) else { return };
        let places = world.truth.jobs().get(job).into_iter().flat_map(|job| &job.places);
        let inbox = |place: &JobPlace| match place {
            JobPlace::Inbox(worker) => Some(*worker),
            JobPlace::Queue | JobPlace::Delayed(_) | JobPlace::Quarantine => None,
        };
        let Some(worker) = places.copied().find_map(|place| inbox(&place)) else { return };
        let znode = world.truth.get(&path::assignment(worker, job));
        let Some(assignment) = znode.and_then(|znode| znode.assignment()) else { return };
        let id = (job.clone(), record.generation, assignment.attempt);
        let grant = self.granted.entry(id).or_insert(Grant { worker, token: after.version, started: false });
        (grant.token, grant.started) = (after.version, false);
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::RunStep;
    use crate::history::rules::fixture::{Story, W1, W2};

    fn assigned() -> Story {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story
    }

    #[test]
    fn each_attempt_may_run_once_even_after_the_end() {
        let mut story = assigned();
        story.run("a", W1, RunStep::Started);
        story.lose("a", W1);
        story.promote("a");
        story.assign("a", W2);
        let late = story.run_of("a", W2);
        story.succeed("a", W2);
        story.push(late);
        story.assert_keeps("S10");
    }

    #[test]
    fn a_run_without_an_assignment_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.run("a", W1, RunStep::Started);
        story.assert_breaks("S10");
    }

    #[test]
    fn a_run_on_another_worker_is_found() {
        let mut story = assigned();
        story.run("a", W2, RunStep::Started);
        story.assert_breaks("S10");
    }

    #[test]
    fn a_second_run_is_found() {
        let mut story = assigned();
        story.run("a", W1, RunStep::Started);
        story.run("a", W1, RunStep::Started);
        story.assert_breaks("S10");
    }

    /// The watch events were lost: the worker learns of the assignment by its next listing.
    #[test]
    fn a_job_assigned_while_unreadable_may_run_once_after_its_record_is_repaired() {
        let mut story = Story::with_workers();
        story.submit("a");
        let record = story.overwrite("a", b"garbage".to_vec());
        story.assign_old("a", W1, 1);
        story.overwrite("a", record);
        story.run("a", W1, RunStep::Started);
        story.succeed("a", W1);
        story.assert_keeps("S10");
    }

    /// The worker lists its assignments again, and begins the attempt whose first run could not be closed.
    #[test]
    fn a_job_that_runs_while_its_record_is_damaged_may_begin_once_more_after_the_repair() {
        for times in [1, 2] {
            let mut story = assigned();
            story.run("a", W1, RunStep::Started);
            let record = story.overwrite("a", b"garbage".to_vec());
            story.overwrite("a", record);
            for _ in 0..times {
                story.run("a", W1, RunStep::Started);
            }
            if times == 1 { story.assert_keeps("S10") } else { story.assert_breaks("S10") }
        }
    }

    #[test]
    fn an_assignment_after_the_end_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.cancel("a");
        story.create_assignment("a", W1, 1);
        story.assert_breaks("S10");
    }

    #[test]
    fn an_attempt_that_was_taken_over_continues_once_at_its_new_worker() {
        for times in [1, 2] {
            let mut story = Story::new();
            story.register(W1, "n1");
            story.register_to_take_over(W2, "n2");
            story.submit("a");
            story.assign("a", W1);
            story.run("a", W1, RunStep::Started);
            story.take_over("a", W1, W2);
            (0..times).for_each(|_| story.run("a", W2, RunStep::Started));
            if times == 1 { story.assert_keeps("S10") } else { story.assert_breaks("S10") }
        }
    }
}
