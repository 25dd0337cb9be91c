//! L10: without faults, no job waits for a sweep.
//!
//! Sweeps (every 15 s) are for hints that were lost. After the healing, and as long as no connection, process or leader
//! changes, messages and watches alone must lead to progress within [`PROMPT`]: a job with a free slot is assigned, an
//! assigned job is started, and a reported checkpoint is written.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::name::{JobId, NodeId, WorkerId};
use bellwether_core::path;

use super::Predicate;
use super::no_idling::Shunned;
use super::waiting::Waiting;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, Leading, Life, RunStep};
use crate::history::truth::Znode;

/// Clearly less than a sweep, and more than the latency of any chain of messages.
const PROMPT: u64 = 8_000;

/// Interval of sweeps.
const SWEEP: u64 = 15_000;

/// Interval of the check.
const EVERY: u64 = 1_000;

/// A run: worker, job, generation and attempt.
type Run = (WorkerId, JobId, u32, u32);

#[derive(Default)]
pub(super) struct NoSweepWaits {
    next: u64,
    /// Time of the last change that may lose a hint.
    quiet_since: u64,
    /// Whether the history contains connection changes. The history of a real cluster does not: hints may have been
    /// lost before the healing without an event, and the next sweep recovers them.
    tells_links: bool,
    leadership: BTreeMap<NodeId, (Leading, i32)>,
    shunned: Shunned,
    could_run: Waiting<JobId>,
    could_begin: Waiting<(WorkerId, JobId)>,
    /// Attempts that have started and are still assigned.
    begun: BTreeSet<(WorkerId, JobId, u32)>,
    /// Runs that have not ended, and their nodes.
    running: BTreeMap<Run, Option<NodeId>>,
    /// The oldest unwritten checkpoint of each run.
    said: BTreeMap<Run, u8>,
    could_be_written: Waiting<(Run, u8)>,
}

impl Predicate for NoSweepWaits {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        match step.event {
            EventKind::Leadership { node, state, epoch, .. } => {
                if self.leadership.insert(node.clone(), (*state, *epoch)) != Some((*state, *epoch)) {
                    self.quiet_since = world.now;
                }
            }
            EventKind::Node { node, is } => {
                self.quiet_since = world.now;
                if matches!(is, Life::Started | Life::Stopped | Life::Killed | Life::Failed) {
                    self.running.retain(|_, of| of.as_ref() != Some(node));
                }
            }
            EventKind::Link { .. } => {
                self.tells_links = true;
                self.quiet_since = world.now;
            }
            EventKind::Evicted { .. } | EventKind::Healed => self.quiet_since = world.now,
            EventKind::Run { worker, job, generation, attempt, step: RunStep::Started, .. } => {
                let node = world.truth.worker(*worker).and_then(|worker| worker.node.clone());
                self.running.insert((*worker, job.clone(), *generation, *attempt), node);
                self.begun.insert((*worker, job.clone(), *attempt));
            }
            EventKind::Run { worker, job, generation, attempt, step: RunStep::Said(checkpoint), .. } => {
                let run = (*worker, job.clone(), *generation, *attempt);
                self.said.entry(run).or_insert(*checkpoint);
            }
            EventKind::Run { worker, job, generation, attempt, step: RunStep::Ended, .. } => {
                let run = (*worker, job.clone(), *generation, *attempt);
                self.running.remove(&run);
                self.said.remove(&run);
            }
            EventKind::Invoke { .. }
            | EventKind::Return { .. }
            | EventKind::LeaderWrites { .. }
            | EventKind::Txn { .. }
            | EventKind::Refused { .. } => {}
        }
        self.shunned.observe(step, world);
        self.look(world, found);
    }

    fn finish(&mut self, world: &World, found: &mut Found<'_>) {
        self.look(world, found);
    }
}

impl NoSweepWaits {
    fn look(&mut self, world: &World, found: &mut Found<'_>) {
        let healed = world.healed.filter(|_| world.is_led());
        let Some(healed) = healed else {
            self.could_run.clear();
            self.could_begin.clear();
            return self.could_be_written.clear();
        };
        if world.now < self.next {
            return;
        }
        self.next = world.now + EVERY;
        let waits = self.shunned.could_run(world).cloned();
        let unseen = if self.tells_links { 0 } else { healed + SWEEP };
        let (quiet, now) = (self.quiet_since.max(unseen), world.now);
        for (job, since) in self.could_run.late(waits, PROMPT, quiet, now) {
            found.push(format!(
                "{job} has been waiting since {since} ms without a fault, although a worker has a free slot"
            ));
        }
        let waits: Vec<_> = world
            .truth
            .jobs()
            .workers()
            .filter(|(id, _)| self.may_begin(*id, world))
            .flat_map(|(id, worker)| worker.jobs.iter().map(move |job| (id, job.clone())))
            .filter(|(id, job)| self.is_to_begin(*id, job, world))
            .collect();
        for ((worker, job), since) in self.could_begin.late(waits, PROMPT, quiet, now) {
            found.push(format!(
                "{job}, assigned to {worker}, has not started since {since} ms without a fault"
            ));
        }
        let running = &self.running;
        self.said.retain(|run, said| running.contains_key(run) && is_unwritten(run, *said, world));
        for (((_, job, ..), said), since) in self.could_be_written.late(self.said.clone(), PROMPT, quiet, now)
        {
            found.push(format!(
                "checkpoint {said} of {job} has not been written since {since} ms without a fault"
            ));
        }
        let assigned = |worker: WorkerId, job: &JobId| {
            world.truth.worker(worker).is_some_and(|worker| worker.jobs.contains(job))
        };
        self.begun.retain(|(worker, job, _)| assigned(*worker, job));
    }

    /// Returns whether a worker exists, is not draining, and has a free slot.
    fn may_begin(&self, id: WorkerId, world: &World) -> bool {
        let registration = |id| world.truth.get(&path::worker(id));
        let Some((znode, info)) = registration(id).and_then(|znode| Some((znode, znode.worker()?))) else {
            return false;
        };
        // A process that has given up its session registers again; its old registration stays until the old session
        // ends.
        let newer = |other: &Znode| {
            other.czxid > znode.czxid && other.worker().is_some_and(|other| other.node == info.node)
        };
        if world.truth.jobs().workers().any(|(other, _)| registration(other).is_some_and(newer)) {
            return false;
        }
        let occupied = self.running.values().filter(|node| node.as_ref() == Some(&info.node)).count();
        !info.draining && world.runs(&info.node) && occupied < info.open_slots()
    }

    fn is_to_begin(&self, worker: WorkerId, job: &JobId, world: &World) -> bool {
        let assignment = world.truth.get(&path::assignment(worker, job)).and_then(|znode| znode.assignment());
        assignment.is_some_and(|it| !self.begun.contains(&(worker, job.clone(), it.attempt)))
    }
}

/// Returns whether the attempt is still assigned and its assignment has an older checkpoint.
fn is_unwritten((worker, job, _, attempt): &Run, checkpoint: u8, world: &World) -> bool {
    let assignment = world.truth.get(&path::assignment(*worker, job)).and_then(|znode| znode.assignment());
    assignment.filter(|it| it.attempt == *attempt).is_some_and(|it| {
        let written = it.progress.as_ref().and_then(|progress| progress.checkpoint().first());
        written.is_none_or(|written| *written < checkpoint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::rules::fixture::{Story, W1, W2};

    fn healed() -> Story {
        let mut story = Story::new();
        story.register(W1, "n1");
        story.leads("n1", 1, Leading::Active);
        story.push(EventKind::Link { node: NodeId::new("n1").unwrap(), session: 1, up: true });
        story.push(EventKind::Healed);
        story.submit("a");
        story.pass(EVERY + 1);
        story.submit("b");
        story
    }

    #[test]
    fn a_job_that_waits_for_a_sweep_is_found() {
        let mut story = healed();
        story.pass(PROMPT + EVERY);
        story.assert_breaks("L10");
    }

    #[test]
    fn an_assignment_to_a_worker_whose_process_registered_again_may_wait() {
        let mut story = healed();
        story.assign("a", W1);
        story.register(W2, "n1");
        story.assign("b", W2);
        story.run("b", W2, RunStep::Started);
        story.pass(EVERY + 1);
        story.flag("a", W1);
        story.pass(PROMPT + EVERY);
        story.assert_keeps("L10");
    }

    #[test]
    fn a_checkpoint_that_is_not_written_is_found() {
        let mut story = healed();
        story.assign("a", W1);
        story.run("a", W1, RunStep::Started);
        story.run("a", W1, RunStep::Said(1));
        story.assign("b", W1);
        story.run("b", W1, RunStep::Started);
        story.pass(EVERY + 1);
        story.run("a", W1, RunStep::Said(2));
        story.pass(PROMPT + EVERY);
        story.run("a", W1, RunStep::Said(3));
        story.assert_breaks("L10");
    }

    #[test]
    fn a_checkpoint_of_a_process_that_was_killed_is_lost() {
        let mut story = healed();
        story.assign("a", W1);
        story.run("a", W1, RunStep::Started);
        story.run("a", W1, RunStep::Said(1));
        story.node("n1", Life::Killed);
        story.pass(EVERY + 1);
        story.submit("c");
        story.pass(PROMPT + EVERY);
        story.submit("d");
        story.assert_keeps("L10");
    }

    #[test]
    fn a_job_may_wait_for_the_first_sweep_if_connection_changes_are_not_recorded() {
        for (wait, keeps) in [(SWEEP, true), (SWEEP + PROMPT + 2 * EVERY, false)] {
            let mut story = Story::new();
            story.register(W1, "n1");
            story.leads("n1", 1, Leading::Active);
            story.push(EventKind::Healed);
            story.submit("a");
            story.pass(EVERY + 1);
            story.submit("b");
            story.pass(wait);
            if keeps { story.assert_keeps("L10") } else { story.assert_breaks("L10") }
        }
    }

    #[test]
    fn a_job_may_wait_after_leadership_changed() {
        let mut story = healed();
        story.pass(PROMPT - EVERY);
        story.leads("n1", 1, Leading::Paused);
        story.leads("n1", 1, Leading::Active);
        story.pass(PROMPT - EVERY);
        story.assert_keeps("L10");
    }

    #[test]
    fn an_assignment_that_is_not_started_is_found() {
        let mut story = healed();
        story.assign("a", W1);
        story.assign("b", W1);
        story.pass(EVERY + 1);
        story.submit("c");
        story.assign("c", W1);
        story.pass(PROMPT + EVERY);
        story.assert_breaks("L10");
    }
}
