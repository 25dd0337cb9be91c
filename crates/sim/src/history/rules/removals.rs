//! Detects the removal of a job's record during a call about it.

use std::collections::BTreeMap;

use bellwether_core::name::JobId;

use crate::history::checker::{Step, World};
use crate::history::event::EventKind;
use crate::history::truth::Spot;

#[derive(Default)]
pub(super) struct Removals {
    /// Number of removals of each job's record.
    counts: BTreeMap<JobId, u64>,
    /// Number of removals of the job's record when each call was made.
    asked: BTreeMap<u64, u64>,
}

impl Removals {
    /// Handles an event. Returns `true` for the answer to a call during which its job's record was removed.
    pub(super) fn observe(&mut self, step: &Step<'_>, world: &World) -> bool {
        for change in step.commit.iter().flat_map(|commit| &commit.changes) {
            if let (Spot::Record(job), None) = (&change.spot, &change.after) {
                *self.counts.entry(job.clone()).or_default() += 1;
            }
        }
        if let EventKind::Invoke { call, what, .. } = step.event
            && let Some(job) = what.job()
        {
            self.asked.insert(*call, self.count(job));
        }
        let EventKind::Return { call, .. } = step.event else { return false };
        let (asked, invoked) = (self.asked.remove(call), world.calls.get(call));
        let job = invoked.and_then(|invoked| invoked.what.job());
        job.is_some_and(|job| asked != Some(self.count(job)))
    }

    fn count(&self, job: &JobId) -> u64 {
        self.counts.get(job).copied().unwrap_or_default()
    }
}
