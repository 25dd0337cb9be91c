//! Which workers can take a job of a given isolation (S20; see [`Isolation`]).
//!
//! | isolation | takes a worker that | waits at most |
//! | --- | --- | --- |
//! | shared | is neither exclusive nor reserved | as any job |
//! | apart | has no isolated job either; after [`APART_WAIT`] any of those above, with the fewest isolated jobs | [`APART_WAIT`] and a sweep |
//! | alone | has no job, and then is exclusive | for the runs on the reserved worker |
//!
//! **A job that runs alone must not starve on a busy cluster.** While it waits, one worker that could run it is reserved:
//! jobs that come after it in rank do not get this worker, so it drains. Jobs before it in rank still do. Reservations are
//! made again in each round, preferably of the same worker, so they end with their reason and need no clean-up. At most
//! half the workers (at least one) are exclusive or reserved at a time, so the other jobs do not starve either; a job
//! takes a worker that has no job in any case. On a single worker the rank decides, as for all jobs.
//!
//! A new leader knows the isolation of all jobs: entries and assignments contain it ([`Capacity`]).

use std::collections::BTreeMap;
use std::time::Duration;

use super::capacity::Capacity;
use super::pending::PendingJob;
use crate::job::Isolation;
use crate::name::{JobId, WorkerId};
use crate::time::Millis;

/// How long a job waits for a worker without isolated jobs. It bounds the delay of many jobs that were lost together;
/// jobs with two losses run alone in any case.
pub const APART_WAIT: Duration = Duration::from_secs(30);

/// The reserved workers and their jobs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Reservations {
    /// The last reservation of each waiting job: preferred in the next round.
    last: BTreeMap<JobId, WorkerId>,
}

/// One round of planning: jobs are considered in the order of their rank.
pub(super) struct Round<'a> {
    reservations: &'a mut Reservations,
    reserved: BTreeMap<JobId, WorkerId>,
    now: Millis,
}

impl Reservations {
    pub(super) fn round(&mut self, now: Millis) -> Round<'_> {
        Round { reservations: self, reserved: BTreeMap::new(), now }
    }
}

impl Round<'_> {
    /// Returns the workers that can take this job, or reserves one if it must wait for a worker without jobs.
    pub(super) fn able<'a>(
        &mut self,
        job: &JobId,
        waiting: &PendingJob,
        workers: &'a BTreeMap<WorkerId, Capacity>,
    ) -> Vec<(&'a WorkerId, &'a Capacity)> {
        let class = &waiting.class;
        let reserved = &self.reserved;
        let is_reserved = |id: &WorkerId| reserved.values().any(|reserved| reserved == id);
        let open = |id: &WorkerId, worker: &Capacity| !worker.is_exclusive() && !is_reserved(id);
        let candidates = workers.iter().filter(|(id, worker)| open(id, worker));
        let free = |worker: &Capacity| worker.can_take(class.kind(), class.tags());
        match class.isolation() {
            Isolation::Shared => candidates.filter(|(_, worker)| free(worker)).collect(),
            Isolation::Apart => {
                let free = candidates.filter(|(_, worker)| free(worker)).collect::<Vec<_>>();
                let Some(fewest) = free.iter().map(|(_, worker)| worker.isolated()).min() else {
                    return Vec::new();
                };
                if fewest > 0 && self.now.since(waiting.since) < APART_WAIT {
                    return Vec::new();
                }
                free.into_iter().filter(|(_, worker)| worker.isolated() == fewest).collect()
            }
            Isolation::Alone => {
                let empty = |worker: &Capacity| free(worker) && worker.used() == 0;
                let empty = candidates.clone().filter(|(_, worker)| empty(worker)).collect::<Vec<_>>();
                if empty.is_empty() {
                    let serves = |worker: &Capacity| worker.serves(class.kind(), class.tags());
                    let choices = candidates.filter(|(_, worker)| serves(worker)).collect::<Vec<_>>();
                    self.reserve(job, &choices, workers);
                }
                empty
            }
        }
    }

    fn reserve(
        &mut self,
        job: &JobId,
        choices: &[(&WorkerId, &Capacity)],
        workers: &BTreeMap<WorkerId, Capacity>,
    ) {
        let exclusive = workers.values().filter(|worker| worker.is_exclusive()).count();
        if exclusive + self.reserved.len() >= (workers.len() / 2).max(1) {
            return;
        }
        let last = self.reservations.last.get(job);
        let again = choices.iter().find(|(id, _)| Some(*id) == last);
        let fewest = || choices.iter().min_by_key(|(_, worker)| worker.used());
        if let Some((worker, _)) = again.or_else(fewest) {
            self.reserved.insert(job.clone(), **worker);
        }
    }

    /// Ends the round. `complete` means that all waiting jobs were considered.
    pub(super) fn end(mut self, complete: bool) {
        if complete {
            self.reservations.last = self.reserved;
        } else {
            self.reservations.last.append(&mut self.reserved);
        }
    }
}
