//! L8: no unplanned exit, and no idle worker while there is work for it.
//!
//! Once all is healed and somebody leads, a job that waits in the queue, that comes first in its lane and that a worker
//! with a free slot serves, of a kind that is not paused, is assigned within [`IDLE`]: a sweep of the leader, should every hint have been lost, and
//! some seconds. A worker from which the leader took an attempt has no free slot: it gets nothing for a while, until it
//! registers anew or another leads.

use std::collections::BTreeMap;

use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path::{self, Place};

use super::Predicate;
use super::waiting::Waiting;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, Life};
use crate::history::truth::{JobPlace, Spot};

const IDLE: u64 = 20_000;

/// How often the whole is looked at: it costs a look at every job.
const EVERY: u64 = 1_000;

/// For how long a worker that is shunned gets nothing: a minute, and up to a sweep of the leader.
const SHUNNED: u64 = 75_000;

#[derive(Default)]
pub(super) struct NoIdling {
    next: u64,
    shunned: Shunned,
    could_run: Waiting<JobId>,
}

/// The workers that are shunned, and since when.
#[derive(Default)]
pub(super) struct Shunned(BTreeMap<WorkerId, u64>);

impl Shunned {
    pub(super) fn observe(&mut self, step: &Step<'_>, world: &World) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            match &change.spot {
                Spot::Epoch => self.0.clear(),
                Spot::Place(Place::Worker(worker)) => drop(self.0.remove(worker)),
                // A revocation sets it.
                Spot::Place(Place::Inbox(worker)) if change.before.is_some() && change.after.is_some() => {
                    self.0.insert(*worker, world.now);
                }
                _ => {}
            }
        }
    }

    fn contains(&self, worker: WorkerId, world: &World) -> bool {
        self.0.get(&worker).is_some_and(|since| world.now < since + SHUNNED)
    }

    /// The jobs that wait in the queue although a worker has a free slot for them.
    pub(super) fn could_run<'a>(&self, world: &'a World) -> impl Iterator<Item = &'a JobId> + use<'a> {
        let truth = &world.truth;
        let free: Vec<_> = truth
            .jobs()
            .workers()
            .filter(|(id, worker)| worker.registered && !self.contains(*id, world))
            .filter_map(|(id, worker)| {
                let info = truth.get(&path::worker(id))?.worker()?;
                (!info.draining && worker.jobs.len() < info.slots as usize).then_some(info)
            })
            .collect();
        let jobs = (!free.is_empty()).then(|| truth.jobs().all());
        jobs.into_iter().flatten().filter_map(move |(job, seen)| {
            let record = truth.record(job)?.record()?;
            let lane = record.placement.lane.as_ref();
            let first =
                lane.is_none_or(|lane| truth.jobs().lane(lane).next().is_some_and(|(_, head)| head == job));
            let queued = seen.places.contains(&JobPlace::Queue);
            let paused = truth.get(&path::pause(&record.kind)).is_some();
            let served = || free.iter().any(|info| info.can_run(&record.kind, &record.placement));
            (queued && !paused && first && served()).then_some(job)
        })
    }
}

impl Predicate for NoIdling {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        if let EventKind::Node { node, is: Life::Failed } = step.event {
            found.push(format!("{node} ended by itself"));
        }
        self.shunned.observe(step, world);
        self.look(world, found);
    }

    fn finish(&mut self, world: &World, found: &mut Found<'_>) {
        self.look(world, found);
    }
}

impl NoIdling {
    fn look(&mut self, world: &World, found: &mut Found<'_>) {
        if !world.is_led() || world.healed.is_none() {
            return self.could_run.clear();
        }
        if world.now < self.next {
            return;
        }
        self.next = world.now + EVERY;
        let waits = self.shunned.could_run(world).cloned();
        for (job, since) in self.could_run.late(waits, IDLE, 0, world.now) {
            found.push(format!("{job} waits since {since} ms, and a worker has a free slot"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::event::Leading;
    use crate::history::rules::fixture::{Story, W1};

    fn queued() -> Story {
        let mut story = Story::with_workers();
        story.leads("n1", 1, Leading::Active);
        story.push(EventKind::Healed);
        story.submit("a");
        story.pass(EVERY + 1);
        story.submit("b");
        story
    }

    #[test]
    fn a_job_that_is_assigned_at_the_sweep_is_fine() {
        let mut story = queued();
        story.pass(15_000);
        story.assign("a", W1);
        story.assign("b", W1);
        story.pass(IDLE);
        story.assert_keeps("L8");
    }

    #[test]
    fn a_job_that_is_left_beside_a_free_worker_is_found() {
        let mut story = queued();
        story.pass(IDLE + EVERY);
        story.assert_breaks("L8");
    }

    #[test]
    fn a_job_of_a_paused_kind_may_wait() {
        let mut story = queued();
        story.pause();
        story.pass(IDLE + EVERY);
        story.assert_keeps("L8");
    }

    fn shunned() -> Story {
        let mut story = Story::new();
        story.register(W1, "n1");
        story.leads("n1", 1, Leading::Active);
        story.push(EventKind::Healed);
        story.set_inbox(W1);
        story.submit("a");
        story.pass(EVERY + 1);
        story.submit("b");
        story
    }

    #[test]
    fn a_job_beside_a_worker_that_is_shunned_may_wait() {
        let mut story = shunned();
        story.pass(IDLE + EVERY);
        story.assert_keeps("L8");
    }

    #[test]
    fn a_job_that_is_left_beside_a_worker_that_registered_anew_is_found() {
        let mut story = shunned();
        story.mark(W1, false);
        story.pass(EVERY + 1);
        story.submit("c");
        story.pass(IDLE + EVERY);
        story.assert_breaks("L8");
    }

    #[test]
    fn a_process_that_gives_up_is_found() {
        let mut story = Story::new();
        story.node("n1", Life::Failed);
        story.assert_breaks("L8");
    }
}
