//! Where a job is: as `src/client/locate.rs`, for one job.

use bellwether_core::job::{Assignment, JobRecord, JobState};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path;
use bellwether_core::wire;

use super::{Deadline, Shell, TooLate};
use crate::zk::Znode;
use crate::zk::ask;

/// How often a job that was found nowhere is looked for again.
const LOOKS: u32 = 5;

pub(super) struct Found {
    pub(super) record: JobRecord,
    pub(super) version: i32,
    pub(super) place: Place,
}

pub(super) enum Place {
    Terminal,
    Queued,
    Delayed(u64),
    Assigned { worker: WorkerId, assignment: Assignment, version: i32 },
    Quarantined,
    Nowhere,
}

impl Shell {
    /// `None` is absent.
    pub(super) async fn locate(&self, by: Deadline, job: &JobId) -> Result<Option<Found>, TooLate> {
        let mut found = None;
        for _ in 0..LOOKS {
            found = self.look_once(by, job).await?;
            if !matches!(found, Some(Found { place: Place::Nowhere, .. })) {
                break;
            }
        }
        Ok(found)
    }

    pub(super) async fn znode(&self, by: Deadline, path: String) -> Result<Option<Znode>, TooLate> {
        self.read(by, || ask::get(path.clone()), ask::got).await
    }

    /// The record and its version.
    pub(super) async fn record(
        &self,
        by: Deadline,
        job: &JobId,
    ) -> Result<Option<(JobRecord, i32)>, TooLate> {
        let znode = self.znode(by, path::record(job)).await?;
        Ok(znode.and_then(|znode| Some((wire::decode(&znode.data).ok()?, znode.version))))
    }

    async fn look_once(&self, by: Deadline, job: &JobId) -> Result<Option<Found>, TooLate> {
        let Some((record, version)) = self.record(by, job).await? else { return Ok(None) };
        let place = self.place(by, job, &record).await?;
        Ok(Some(Found { record, version, place }))
    }

    /// The places are asked in the order in which jobs move: what is not queued any more is assigned by then.
    async fn place(&self, by: Deadline, job: &JobId, record: &JobRecord) -> Result<Place, TooLate> {
        let not_before = match record.state {
            JobState::Terminal { .. } => return Ok(Place::Terminal),
            JobState::Open { not_before } => not_before,
        };
        if self.znode(by, path::queue_entry(job)).await?.is_some() {
            return Ok(Place::Queued);
        }
        let workers = self.read(by, || ask::children(path::ASSIGNMENTS.to_owned()), ask::listed).await?;
        let workers: Vec<_> = workers.iter().flatten().filter_map(|name| WorkerId::parse(name)).collect();
        let inboxes = || ask::children_many(workers.iter().map(|worker| path::inbox(*worker)));
        let lists = self.read(by, inboxes, ask::listed_many).await?;
        let has = |names: &Option<Vec<String>>| names.iter().flatten().any(|name| name == job.as_str());
        let holder = workers.iter().zip(&lists).find(|(_, names)| has(names)).map(|(worker, _)| *worker);
        if let Some(worker) = holder
            && let Some(znode) = self.znode(by, path::assignment(worker, job)).await?
            && let Ok(assignment) = wire::decode(&znode.data)
        {
            return Ok(Place::Assigned { worker, assignment, version: znode.version });
        }
        if let Some(minute) = not_before.map(bellwether_core::time::WallMillis::minute)
            && self.znode(by, path::delayed_entry(minute, job)).await?.is_some()
        {
            return Ok(Place::Delayed(minute));
        }
        let aside = self.znode(by, path::quarantine(job)).await?.is_some();
        Ok(if aside { Place::Quarantined } else { Place::Nowhere })
    }
}
