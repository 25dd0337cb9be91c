//! Finding the place of open jobs.
//!
//! A record shows that a job is open; the place that holds its entry shows where it is. Record and places cannot be
//! read in one instant, and a job may move in between. It is in exactly one place at any time, so a job that was
//! found in no place has moved: everything is read again, up to a limit.
//!
//! An open member of a segment is where its segment is, which waits and is assigned as one job.

use std::collections::{BTreeSet, HashMap};

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::job::{Assignment, Delay, JobRecord};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::wire::{self, WireError};
use bellwether_zk::{Node, ReadResult};
use futures::future::try_join_all;

use super::error::Error;
use super::packed::{self, Packed, Stored};
use super::runtime::Zk;
use super::session::{Deadline, Session};

/// Limit of looks for a job that was found in no place.
const LOOKS: u32 = 5;

/// A job's record with its version, and its place.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) record: JobRecord,
    pub(super) version: i32,
    pub(super) place: Location,
    /// Its segment, if it has no own record. Then `record` is the one that its extraction would write.
    pub(super) packed: Option<Packed>,
}

impl Found {
    fn of(Stored { record, version, packed }: Stored) -> Self {
        let place = if record.is_terminal() { Location::Terminal } else { Location::Nowhere };
        Self { record, version, place, packed }
    }

    /// The id under which it waits or is assigned.
    fn holder(&self, job: &JobId) -> JobId {
        self.packed.as_ref().map_or_else(|| job.clone(), |packed| packed.id.job())
    }

    /// Its entry while it waits for a worker.
    fn entry(&self, job: &JobId) -> ReadyEntry {
        self.packed.as_ref().map_or_else(|| ReadyEntry::of_record(job, &self.record), Packed::waits_at)
    }
}

/// Where a job is.
#[derive(Debug, Clone)]
pub(super) enum Location {
    Terminal,
    /// It waits for a worker, with this entry.
    Queued(ReadyEntry),
    Delayed(Delay),
    Assigned {
        worker: WorkerId,
        assignment: Result<Assignment, WireError>,
        version: i32,
    },
    /// A worker or the leader could not read its record or assignment.
    Quarantined {
        note: String,
    },
    Nowhere,
}

/// Finds up to 100 jobs; `None` for each that does not exist.
pub(super) async fn locate(
    session: &Session,
    by: Deadline,
    jobs: &[JobId],
) -> Result<Vec<Option<Result<Found, WireError>>>, Error> {
    let mut found = vec![None; jobs.len()];
    let mut sought = (0..jobs.len()).collect::<Vec<_>>();
    for _ in 0..LOOKS {
        let ids = sought.iter().map(|&at| jobs[at].clone()).collect::<Vec<_>>();
        let looked = session.read(by, |zk| look(zk.clone(), ids.clone())).await?;
        let mut nowhere = Vec::new();
        for (at, look) in sought.into_iter().zip(looked) {
            if let Some(Ok(Found { place: Location::Nowhere, .. })) = &look {
                nowhere.push(at);
            }
            found[at] = look;
        }
        if nowhere.is_empty() {
            break;
        }
        sought = nowhere;
    }
    Ok(found)
}

async fn look(zk: Zk, jobs: Vec<JobId>) -> ReadResult<Vec<Option<Result<Found, WireError>>>> {
    let stored = packed::read(&zk, &jobs).await?;
    let mut found = stored.into_iter().map(|job| job.map(|job| job.map(Found::of))).collect::<Vec<_>>();
    // The places are read in the order in which jobs move: a job that is no longer queued is assigned by then.
    let ready = |job: &JobId, found: &Found| Some(path::ready_entry(&found.entry(job)));
    let entries = get(&zk, open(&found, &jobs), ready).await?;
    for (at, _) in entries {
        if let Some(Ok(found)) = &mut found[at] {
            found.place = Location::Queued(found.entry(&jobs[at]));
        }
    }
    if open(&found, &jobs).is_empty() {
        return Ok(found);
    }
    let inboxes = inboxes(&zk).await?;
    let worker_of = |job: &JobId, found: &Found| inboxes.get(&found.holder(job)).copied();
    let assigned = open(&found, &jobs);
    let assigned = assigned.into_iter().filter_map(|(at, job, found)| Some((at, worker_of(job, found)?)));
    let assigned = assigned.collect::<HashMap<_, _>>();
    let holds = open(&found, &jobs).into_iter().filter(|(at, ..)| assigned.contains_key(at)).collect();
    let assignment =
        |job: &JobId, found: &Found| Some(path::assignment(worker_of(job, found)?, &found.holder(job)));
    let nodes = get(&zk, holds, assignment).await?;
    let nodes = nodes.into_iter().map(|(at, node)| (at, (assigned[&at], node)));
    place(&mut found, nodes.collect(), |(worker, node)| Location::Assigned {
        worker,
        assignment: wire::decode(&node.data),
        version: node.version,
    });
    let delayed =
        get(&zk, open(&found, &jobs), |job, found| Some(path::delayed_entry(found.record.delay()?, job)));
    let delayed = delayed.await?;
    for (at, _) in delayed {
        if let Some(Ok(found)) = &mut found[at]
            && let Some(delay) = found.record.delay()
        {
            found.place = Location::Delayed(delay);
        }
    }
    let notes =
        get(&zk, open(&found, &jobs), |job, found| Some(path::quarantine(&found.holder(job)))).await?;
    place(&mut found, notes, |node| Location::Quarantined {
        note: String::from_utf8_lossy(&node.data).into_owned(),
    });
    Ok(found)
}

/// Returns the jobs whose place is not known yet.
fn open<'a>(
    found: &'a [Option<Result<Found, WireError>>],
    jobs: &'a [JobId],
) -> Vec<(usize, &'a JobId, &'a Found)> {
    let unplaced = |(at, found): (usize, &'a Option<Result<Found, WireError>>)| match found {
        Some(Ok(found @ Found { place: Location::Nowhere, .. })) => Some((at, &jobs[at], found)),
        Some(Ok(_) | Err(_)) | None => None,
    };
    found.iter().enumerate().filter_map(unplaced).collect()
}

/// Reads a znode per job, once if it is that of several jobs. Returns the existing ones with the job's position.
async fn get(
    zk: &Zk,
    jobs: Vec<(usize, &JobId, &Found)>,
    path: impl Fn(&JobId, &Found) -> Option<String>,
) -> ReadResult<Vec<(usize, Node)>> {
    let asked = jobs.into_iter().filter_map(|(at, job, found)| Some((at, path(job, found)?)));
    let asked = asked.collect::<Vec<_>>();
    let paths = asked.iter().map(|(_, path)| path.clone()).collect::<BTreeSet<_>>();
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let nodes = zk.get_many(paths.iter().cloned().collect()).await?;
    let nodes = paths.into_iter().zip(nodes).collect::<HashMap<_, _>>();
    Ok(asked.into_iter().filter_map(|(at, path)| Some((at, nodes.get(&path)?.clone()?))).collect())
}

fn place<T>(
    found: &mut [Option<Result<Found, WireError>>],
    nodes: Vec<(usize, T)>,
    place: impl Fn(T) -> Location,
) {
    for (at, node) in nodes {
        if let Some(Ok(found)) = &mut found[at] {
            found.place = place(node);
        }
    }
}

/// Returns which worker each assigned job is on: as many entries as there are slots in use.
pub(super) async fn inboxes(zk: &Zk) -> ReadResult<HashMap<JobId, WorkerId>> {
    let workers = zk.children(path::ASSIGNMENTS.to_owned()).await?.unwrap_or_default();
    let workers = workers.iter().filter_map(|name| WorkerId::parse(name)).collect::<Vec<_>>();
    let lists = workers
        .chunks(MAX_READ_BATCH)
        .map(|workers| zk.children_many(workers.iter().copied().map(path::inbox).collect()));
    let lists = try_join_all(lists).await?.into_iter().flatten();
    let held = workers.iter().zip(lists).flat_map(|(worker, jobs)| {
        // Other znodes are ignored: their names are not job ids.
        jobs.unwrap_or_default().into_iter().filter_map(|job| Some((JobId::new(job).ok()?, *worker)))
    });
    Ok(held.collect())
}

#[cfg(test)]
mod tests;
