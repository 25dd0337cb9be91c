//! L3: every job that can run ends.
//!
//! Checked at the end of the history; the recorder must wait until the time limit has passed. A job can run if a
//! registered worker serves it and it is not in quarantine.

use bellwether_core::worker::WorkerInfo;

use super::Predicate;
use crate::history::checker::{Found, Step, World};
use crate::history::truth::JobPlace;

#[derive(Default)]
pub(super) struct Settled;

impl Predicate for Settled {
    fn observe(&mut self, _: &Step<'_>, _: &World, _: &mut Found<'_>) {}

    fn finish(&mut self, world: &World, found: &mut Found<'_>) {
        if world.healed.is_none() {
            return;
        }
        let truth = &world.truth;
        let workers: Vec<_> = truth.below("/workers").filter_map(|(_, znode)| znode.worker()).collect();
        for (job, seen) in truth.jobs().all() {
            let Some(record) = truth.record(job).and_then(|znode| znode.record()) else { continue };
            let aside = seen.places.contains(&JobPlace::Quarantine);
            let runs = |info: &&WorkerInfo| {
                info.can_run(&record.kind, &record.placement) && info.settings.value.starts(&record.kind)
            };
            let served = workers.iter().any(runs);
            if !record.is_terminal() && served && !aside {
                found.push(format!("{job} is still open: {:?}", seen.places));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::event::EventKind;
    use crate::history::rules::fixture::{Story, W1, W2};

    #[test]
    fn a_job_that_ended_or_has_no_worker_is_allowed() {
        let mut story = Story::with_workers();
        story.push(EventKind::Healed);
        story.submit("a");
        story.assign("a", W1);
        story.succeed("a", W1);
        story.unregister(W1);
        story.unregister(W2);
        story.submit("b");
        story.assert_keeps("L3");
    }

    #[test]
    fn a_job_that_stays_open_is_found() {
        let mut story = Story::with_workers();
        story.push(EventKind::Healed);
        story.submit("a");
        story.assert_breaks("L3");
    }
}
