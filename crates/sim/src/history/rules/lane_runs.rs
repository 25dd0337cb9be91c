//! S19: the runs of a lane do not overlap, also if a server is cut off from its leader.
//!
//! A run lasts until it is recorded as ended, or until its process ends. Limits: a frozen process cannot stop its runs,
//! so a run that starts in the meantime is allowed. The same applies to runs on a session that was ended before its
//! timeout, and to runs that were taken from their worker because their lease was over: a worker that does not renew
//! may continue the run, or start an attempt that it read before.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::job::AttemptOutcome;
use bellwether_core::name::{JobId, Lane, NodeId, WorkerId};
use bellwether_core::path::Place;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, Life, RunStep};
use crate::history::truth::Spot;

type Run = (WorkerId, JobId, u32, u32);

#[derive(Default)]
pub(super) struct LaneRuns {
    running: BTreeMap<Run, (Lane, Option<NodeId>)>,
    /// Runs whose leases were over.
    taken: BTreeSet<Run>,
    /// Sessions that were ended before their timeout.
    evicted: BTreeSet<i64>,
}

impl Predicate for LaneRuns {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            if let (Spot::Place(Place::Assignment(_, job)), Some(assignment)) =
                (&change.spot, change.after.as_ref().and_then(|znode| znode.assignment()))
                && let Some(from) = step.commit.and_then(|commit| commit.moved_from(change, &world.truth))
            {
                // The former worker only served the process that runs it.
                self.running.remove(&(from, job.clone(), assignment.generation, assignment.attempt));
            }
            let (Spot::Record(job), Some(record)) =
                (&change.spot, change.after.as_ref().and_then(|znode| znode.record()))
            else {
                continue;
            };
            if let Some(last) = record.last.filter(|last| last.how == AttemptOutcome::LeaseExpired) {
                let run = (last.attempt.worker, job.clone(), record.generation, last.attempt.number);
                self.running.remove(&run);
                self.taken.insert(run);
            }
        }
        match step.event {
            EventKind::Run { worker, job, generation, attempt, step: RunStep::Started, .. } => {
                if self.taken.contains(&(*worker, job.clone(), *generation, *attempt)) {
                    return;
                }
                // The worker does not know yet that its session was ended before its timeout.
                let session = world.truth.worker(*worker).map(|worker| worker.session);
                if session.is_some_and(|session| self.evicted.contains(&session)) {
                    return;
                }
                let record = world.truth.record(job).and_then(|znode| znode.record());
                let Some(lane) = record.and_then(|record| record.placement.lane.clone()) else { return };
                for ((_, other, _, _), (taken, node)) in &self.running {
                    if *taken == lane && node.as_ref().is_none_or(|node| world.runs(node)) {
                        found.push(format!("{job} of lane {lane} starts while {other} runs"));
                    }
                }
                let node = world.truth.worker(*worker).and_then(|worker| worker.node.clone());
                self.running.insert((*worker, job.clone(), *generation, *attempt), (lane, node));
            }
            EventKind::Run { worker, job, generation, attempt, step: RunStep::Ended, .. } => {
                self.running.remove(&(*worker, job.clone(), *generation, *attempt));
            }
            EventKind::Node { node, is: Life::Started | Life::Stopped | Life::Killed | Life::Failed } => {
                self.running.retain(|_, (_, runs_on)| runs_on.as_ref() != Some(node));
            }
            EventKind::Evicted { session } => {
                self.evicted.insert(*session);
                let theirs = |worker| world.truth.worker(worker).is_some_and(|it| it.session == *session);
                self.running.retain(|(worker, ..), _| !theirs(*worker));
            }
            EventKind::Run { step: RunStep::Said(_), .. }
            | EventKind::Node {
                is: Life::Frozen | Life::Thawed | Life::ElectionStalled | Life::ElectionGoesOn,
                ..
            }
            | EventKind::Link { .. }
            | EventKind::LeaderWrites { .. }
            | EventKind::Invoke { .. }
            | EventKind::Return { .. }
            | EventKind::Leadership { .. }
            | EventKind::Txn { .. }
            | EventKind::Refused { .. }
            | EventKind::Healed => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::{EventKind, Life, RunStep};
    use crate::history::rules::fixture::{Story, W1, W2, session_of};

    fn lane_of_two() -> Story {
        let mut story = Story::with_workers();
        story.submit_in_lane("a", "x");
        story.submit_in_lane("b", "x");
        story.assign("a", W1);
        story.run("a", W1, RunStep::Started);
        story.lose("a", W1);
        story.promote("a");
        story
    }

    #[test]
    fn a_run_may_follow_one_that_ended_or_whose_node_ended_or_is_frozen() {
        let mut story = lane_of_two();
        story.run("a", W1, RunStep::Ended);
        story.assign("a", W2);
        story.run("a", W2, RunStep::Started);
        story.assert_keeps("S19");
        for fate in [Life::Killed, Life::Frozen] {
            let mut story = lane_of_two();
            story.node("n1", fate);
            story.assign("a", W2);
            story.run("a", W2, RunStep::Started);
            story.assert_keeps("S19");
        }
    }

    #[test]
    fn a_run_whose_lease_is_over_may_continue_or_start_late() {
        for late in [false, true] {
            let mut story = Story::with_workers();
            story.submit_in_lane("a", "x");
            story.assign("a", W1);
            let run = story.run_of("a", W1);
            if !late {
                story.push(run.clone());
            }
            story.pass(600_000);
            story.revoke("a", W1);
            story.promote("a");
            story.assign("a", W2);
            story.run("a", W2, RunStep::Started);
            if late {
                story.push(run);
            }
            story.assert_keeps("S19");
        }
    }

    #[test]
    fn a_run_on_an_evicted_session_may_continue_or_start_late() {
        for late in [false, true] {
            let mut story = Story::with_workers();
            story.submit_in_lane("a", "x");
            story.assign("a", W1);
            let run = story.run_of("a", W1);
            if !late {
                story.push(run.clone());
            }
            story.push(EventKind::Evicted { session: session_of(W1) });
            story.lose("a", W1);
            story.promote("a");
            story.assign("a", W2);
            story.run("a", W2, RunStep::Started);
            if late {
                story.push(run);
            }
            story.assert_keeps("S19");
        }
    }

    #[test]
    fn overlapping_runs_are_found() {
        let mut story = lane_of_two();
        story.assign("a", W2);
        story.run("a", W2, RunStep::Started);
        story.assert_breaks("S19");
    }

    #[test]
    fn a_run_that_was_taken_over_continues_and_holds_its_lane() {
        let mut story = Story::new();
        story.register(W1, "n1");
        story.register_to_take_over(W2, "n2");
        story.submit_in_lane("a", "x");
        story.submit_in_lane("b", "x");
        story.assign("a", W1);
        story.run("a", W1, RunStep::Started);
        story.take_over("a", W1, W2);
        story.run("a", W2, RunStep::Started);
        story.succeed("a", W2);
        story.assign("b", W1);
        story.run("b", W1, RunStep::Started);
        story.assert_breaks("S19");
    }
}
