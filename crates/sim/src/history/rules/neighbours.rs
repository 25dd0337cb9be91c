//! S20: a job does not die of its neighbours.
//!
//! A job whose next loss would be its last, or that has lost two workers, has its worker to itself. So the loss that ends
//! a job never comes from a run with a neighbour, unless the job permits only one loss. An assignment that does not
//! agree with its record is not run and does not count.

use std::collections::BTreeSet;

use bellwether_core::job::{AttemptOutcome, Isolation, JobState, Verdict};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path::{self, Place};

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::{Change, Spot};

#[derive(Default)]
pub(super) struct Neighbours {
    /// Assigned jobs that have, or had, a neighbour during this attempt.
    accompanied: BTreeSet<(WorkerId, JobId)>,
}

impl Predicate for Neighbours {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let Some(commit) = step.commit else { return };
        for change in &commit.changes {
            if let Spot::Record(job) = &change.spot {
                self.ended(job, change, found);
            }
        }
        for change in &commit.changes {
            let Spot::Place(Place::Assignment(worker, job)) = &change.spot else { continue };
            match (&change.before, &change.after) {
                (_, None) => drop(self.accompanied.remove(&(*worker, job.clone()))),
                (None, Some(_)) => self.assigned(*worker, world, found),
                (Some(_), Some(_)) => {}
            }
        }
    }
}

impl Neighbours {
    fn assigned(&mut self, worker: WorkerId, world: &World, found: &mut Found<'_>) {
        let held = world.truth.worker(worker).into_iter().flat_map(|worker| &worker.jobs);
        let runs = held.filter_map(|job| {
            let record = world.truth.record(job)?.record()?;
            let assignment = world.truth.get(&path::assignment(worker, job))?.assignment()?;
            assignment.agrees(record).then_some((job, record.isolation()))
        });
        let runs = runs.collect::<Vec<_>>();
        if runs.len() < 2 {
            return;
        }
        for (job, isolation) in runs {
            if isolation == Isolation::Alone {
                found.push(format!("{job} must run alone but shares {worker}"));
            }
            self.accompanied.insert((worker, job.clone()));
        }
    }

    /// Checks a job that is dead of a loss.
    fn ended(&self, job: &JobId, change: &Change, found: &mut Found<'_>) {
        let Some(record) = change.after.as_ref().and_then(|znode| znode.record()) else { return };
        let (JobState::Terminal { verdict: Verdict::Dead, .. }, Some(last)) = (&record.state, record.last)
        else {
            return;
        };
        let lost = matches!(last.how, AttemptOutcome::Lost | AttemptOutcome::LeaseExpired);
        let worker = last.attempt.worker;
        if lost && record.policy.max_losses > 1 && self.accompanied.contains(&(worker, job.clone())) {
            found.push(format!("{job} is dead of the loss of {worker}, where it had neighbours"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::rules::fixture::{Story, W1, W2};

    /// Loses the first two attempts of "a" with the neighbour "x", with the default limits.
    fn two_losses() -> Story {
        let mut story = Story::with_workers();
        story.submit("a");
        story.submit("x");
        story.assign("x", W2);
        for _ in 0..2 {
            story.assign("a", W2);
            story.lose("a", W2);
            story.promote("a");
        }
        story
    }

    #[test]
    fn a_job_that_is_dead_of_a_loss_alone_is_allowed() {
        let mut story = two_losses();
        story.assign("a", W1);
        story.lose("a", W1);
        story.assert_keeps("S20");
    }

    #[test]
    fn a_job_that_is_dead_of_a_loss_with_a_neighbour_is_found() {
        for what in ["must run alone", "is dead of the loss"] {
            let mut story = two_losses();
            story.assign("a", W2);
            story.succeed("x", W2);
            story.lose("a", W2);
            assert!(story.finds("S20", what));
        }
    }

    #[test]
    fn a_job_that_shares_a_worker_with_one_that_runs_alone_is_found() {
        let mut story = two_losses();
        story.assign("a", W1);
        story.submit("y");
        story.assign("y", W1);
        story.assert_breaks("S20");
    }

    #[test]
    fn a_job_that_permits_one_loss_may_die_with_a_neighbour() {
        let mut story = Story::with_workers();
        for job in ["a", "x"] {
            story.submit_with_losses(job, 1);
            story.assign(job, W1);
        }
        story.lose("a", W1);
        story.assert_keeps("S20");
    }

    #[test]
    fn an_assignment_that_is_not_run_is_no_neighbour() {
        let mut story = two_losses();
        story.submit("y");
        story.assign_old("y", W1, 9);
        story.assign("a", W1);
        story.lose("a", W1);
        story.assert_keeps("S20");
    }
}
