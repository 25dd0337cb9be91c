//! L8: no unplanned exit, and no idle worker while there is work for it.
//!
//! After the healing, and while there is a leader, a queued job must be assigned within [`IDLE`] if it is first in its
//! lane, its kind is not paused, and a worker that serves it has a free slot and no job from which it is isolated; while
//! a job waits to run alone, other jobs may wait for it. [`IDLE`] is a sweep of the leader, in
//! case every watch event was lost, plus some seconds. A worker from which the leader took back an attempt is shunned
//! and counts as having no free slot, until it registers again or there is another leader.

use std::collections::BTreeMap;

use bellwether_core::job::Isolation;
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path::{self, Place};
use bellwether_core::worker::WorkerInfo;

use super::Predicate;
use super::waiting::Waiting;
use crate::history::checker::{Found, Step, World};
use crate::history::event::{EventKind, Life};
use crate::history::truth::{JobPlace, Spot, Truth, Worker};

const IDLE: u64 = 20_000;

/// Interval of the check, which reads every job.
const EVERY: u64 = 1_000;

/// How long a shunned worker gets no jobs: a minute, plus up to one sweep of the leader.
const SHUNNED: u64 = 75_000;

#[derive(Default)]
pub(super) struct NoIdling {
    next: u64,
    shunned: Shunned,
    could_run: Waiting<JobId>,
}

/// The shunned workers, and since when.
#[derive(Default)]
pub(super) struct Shunned(BTreeMap<WorkerId, u64>);

impl Shunned {
    pub(super) fn observe(&mut self, step: &Step<'_>, world: &World) {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            match &change.spot {
                Spot::Epoch => self.0.clear(),
                Spot::Place(Place::Worker(worker)) => drop(self.0.remove(worker)),
                // A revocation sets the inbox.
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

    /// Iterates over the queued jobs for which a worker has a free slot.
    pub(super) fn could_run<'a>(&self, world: &'a World) -> impl Iterator<Item = &'a JobId> + use<'a> {
        let truth = &world.truth;
        let free: Vec<_> = truth
            .jobs()
            .workers()
            .filter(|(id, worker)| worker.registered && !self.contains(*id, world))
            .filter_map(|(id, worker)| {
                let info = truth.get(&path::worker(id))?.worker()?;
                let open = Open::of(id, worker, truth);
                (!info.draining && worker.jobs.len() < info.open_slots()).then_some((info, open))
            })
            .collect();
        let waits_alone = truth.jobs().all().any(|(job, seen)| {
            seen.places.contains(&JobPlace::Queue) && isolation(job, truth) == Some(Isolation::Alone)
        });
        let jobs = (!free.is_empty()).then(|| truth.jobs().all());
        jobs.into_iter().flatten().filter_map(move |(job, seen)| {
            let record = truth.record(job)?.record()?;
            let lane = record.placement.lane.as_ref();
            let first =
                lane.is_none_or(|lane| truth.jobs().lane(lane).next().is_some_and(|(_, head)| head == job));
            let queued = seen.places.contains(&JobPlace::Queue);
            let paused = truth.get(&path::pause(&record.kind)).is_some();
            let isolation = record.isolation();
            let served = || {
                let takes = |(info, open): &(&WorkerInfo, Open)| {
                    info.can_run(&record.kind, &record.placement) && open.takes(isolation)
                };
                // A worker may be reserved for a job that waits to run alone.
                (!waits_alone || isolation == Isolation::Alone) && free.iter().any(takes)
            };
            (queued && !paused && first && served()).then_some(job)
        })
    }
}

/// Which jobs a worker with a free slot can take.
struct Open {
    jobs: usize,
    /// The highest isolation of its jobs.
    isolation: Isolation,
}

impl Open {
    fn of(id: WorkerId, worker: &Worker, truth: &Truth) -> Self {
        let of = |job: &JobId| Some(truth.get(&path::assignment(id, job))?.assignment()?.isolation);
        let isolation = worker.jobs.iter().filter_map(of).max().unwrap_or_default();
        Self { jobs: worker.jobs.len(), isolation }
    }

    fn takes(&self, isolation: Isolation) -> bool {
        match isolation {
            Isolation::Shared => self.isolation < Isolation::Alone,
            Isolation::Apart => self.isolation == Isolation::Shared,
            Isolation::Alone => self.jobs == 0,
        }
    }
}

fn isolation(job: &JobId, truth: &Truth) -> Option<Isolation> {
    Some(truth.record(job)?.record()?.isolation())
}

impl Predicate for NoIdling {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        if let EventKind::Node { node, is: Life::Failed } = step.event {
            found.push(format!("{node} exited unplanned"));
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
            found.push(format!("{job} has been waiting since {since} ms, although a worker has a free slot"));
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
    fn a_job_that_is_assigned_at_the_sweep_is_allowed() {
        let mut story = queued();
        story.pass(15_000);
        story.assign("a", W1);
        story.assign("b", W1);
        story.pass(IDLE);
        story.assert_keeps("L8");
    }

    #[test]
    fn a_job_that_waits_although_a_worker_is_free_is_found() {
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
    fn a_job_may_wait_while_the_worker_is_shunned() {
        let mut story = shunned();
        story.pass(IDLE + EVERY);
        story.assert_keeps("L8");
    }

    #[test]
    fn a_job_that_waits_although_the_worker_registered_again_is_found() {
        let mut story = shunned();
        story.mark(W1, false);
        story.pass(EVERY + 1);
        story.submit("c");
        story.pass(IDLE + EVERY);
        story.assert_breaks("L8");
    }

    #[test]
    fn an_unplanned_exit_is_found() {
        let mut story = Story::new();
        story.node("n1", Life::Failed);
        story.assert_breaks("L8");
    }
}
