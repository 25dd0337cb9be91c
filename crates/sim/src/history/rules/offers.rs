//! S24: an assignment obeys the registration of its worker, which an operator may have changed.
//!
//! A worker takes over attempts only while it offers no slot (S20).
//!
//! At an assignment the worker serves the kind, offers the tags, and has at most as many jobs as slots. This holds from the
//! transaction that changes the registration, so before the operator has an answer. And a worker keeps the settings that
//! the operator has written: its own writes do not change them.

use std::collections::BTreeSet;

use bellwether_core::name::JobId;
use bellwether_core::path::{self, Place};
use bellwether_core::segment::MemberId;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::{Change, Commit, Spot};

#[derive(Default)]
pub(super) struct Offers;

impl Predicate for Offers {
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>) {
        let Some(commit) = step.commit else { return };
        for change in &commit.changes {
            changed(change, commit, world, found);
        }
    }
}

fn changed(change: &Change, commit: &Commit, world: &World, found: &mut Found<'_>) {
    match (&change.spot, &change.before, &change.after) {
        (Spot::Place(Place::Worker(id)), Some(before), Some(after)) if commit.session == before.owner => {
            let (Some(before), Some(after)) = (before.worker(), after.worker()) else { return };
            if before.settings != after.settings {
                found.push(format!(
                    "{id} changed its settings from {:?} to {:?}",
                    before.settings, after.settings
                ));
            }
        }
        (Spot::Place(Place::Assignment(worker, job)), None, Some(_)) => {
            let registration = world.truth.get(&path::worker(*worker)).and_then(|znode| znode.worker());
            let record = world.truth.record(job).and_then(|znode| znode.record());
            let (Some(info), Some(record)) = (registration, record) else { return };
            if !info.can_run(&record.kind, &record.placement) {
                found.push(format!("{job} was assigned to {worker}, which does not take {}", record.kind));
            }
            if commit.moves(change, &world.truth) {
                // It offers no slot until the takeover is complete.
                if info.slots > 0 {
                    found.push(format!("{job} was taken over by {worker}, which offers slots"));
                }
                return;
            }
            let held = world.truth.worker(*worker).map_or(0, |worker| units(&worker.jobs));
            if held > info.open_slots() {
                let slots = info.open_slots();
                found.push(format!("{job} was assigned to {worker}: {held} jobs for {slots} slots"));
            }
        }
        (_, _, _) => {}
    }
}

/// Counts jobs. The members of a segment count as one: they are assigned as one job, and the leader may not know yet that they were
/// extracted.
fn units(jobs: &BTreeSet<JobId>) -> usize {
    let unit = |job: &JobId| MemberId::of_job(job).map_or_else(|| job.clone(), |member| member.segment.job());
    jobs.iter().map(unit).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use bellwether_core::segment::SegmentId;
    use bellwether_core::worker::WorkerSettings;
    use uuid::Uuid;

    use super::*;
    use crate::history::rules::fixture::{Story, W1, W2, kind};

    fn paused() -> WorkerSettings {
        WorkerSettings::default().paused_kinds(vec![kind()])
    }

    #[test]
    fn the_members_of_a_segment_count_as_one_job() {
        let segment = SegmentId::new(Uuid::nil(), 4, 100).unwrap();
        let members = (0..4).map(|number| MemberId { segment, number }.job());
        let jobs = members.chain([JobId::new("a").unwrap()]).collect();
        assert_eq!(units(&jobs), 2);
    }

    #[test]
    fn a_job_assigned_before_its_kind_is_paused_may_stay() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.assign("a", W1);
        story.set_worker(W1, paused());
        story.succeed("a", W1);
        story.assert_keeps("S24");
    }

    #[test]
    fn an_assignment_of_a_kind_that_is_paused_on_its_worker_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.set_worker(W1, paused());
        story.assign("a", W1);
        story.assert_breaks("S24");
    }

    #[test]
    fn an_assignment_beyond_the_slots_is_found() {
        let mut story = Story::with_workers();
        story.submit("a");
        story.submit("b");
        story.assign("a", W1);
        story.set_worker(W1, WorkerSettings::default().slots(1));
        story.assign("b", W1);
        story.assert_breaks("S24");
    }

    #[test]
    fn a_worker_that_forgets_its_settings_is_found() {
        let mut story = Story::with_workers();
        story.set_worker(W1, paused());
        story.forget_settings(W1);
        story.assert_breaks("S24");
    }

    #[test]
    fn a_worker_takes_over_only_before_it_offers_slots() {
        for offers in [false, true] {
            let mut story = Story::new();
            story.register(W1, "n1");
            if offers {
                story.register(W2, "n2")
            } else {
                story.register_to_take_over(W2, "n2")
            }
            story.submit("a");
            story.assign("a", W1);
            story.take_over("a", W1, W2);
            if offers { story.assert_breaks("S24") } else { story.assert_keeps("S24") }
        }
    }
}
