//! Finding the place of open jobs.
//!
//! A record shows that a job is open; the place that holds its entry shows where it is. Record and places cannot be
//! read in one instant, and a job may move in between. It is in exactly one place at any time, so a job that was
//! found in no place has moved: everything is read again, up to a limit.

use std::collections::HashMap;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::job::{Assignment, Delay, JobRecord};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::wire::{self, WireError};
use bellwether_zk::{Node, ReadResult};
use futures::future::try_join_all;

use super::error::Error;
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
    let records = zk.get_many(jobs.iter().map(path::record).collect()).await?;
    let mut found = records.into_iter().map(|node| node.map(|node| read(&node))).collect::<Vec<_>>();
    // The places are read in the order in which jobs move: a job that is no longer queued is assigned by then.
    let ready =
        |job: &JobId, record: &JobRecord| Some(path::ready_entry(&ReadyEntry::of_record(job, record)));
    let entries = get(&zk, open(&found, &jobs), ready).await?;
    for (at, _) in entries {
        if let Some(Ok(found)) = &mut found[at] {
            found.place = Location::Queued(ReadyEntry::of_record(&jobs[at], &found.record));
        }
    }
    if open(&found, &jobs).is_empty() {
        return Ok(found);
    }
    let inboxes = inboxes(&zk).await?;
    let assigned = open(&found, &jobs).into_iter().filter_map(|(at, job, _)| Some((at, *inboxes.get(job)?)));
    let assigned = assigned.collect::<HashMap<_, _>>();
    let holds = open(&found, &jobs).into_iter().filter(|(at, ..)| assigned.contains_key(at)).collect();
    let nodes = get(&zk, holds, |job, _| Some(path::assignment(*inboxes.get(job)?, job))).await?;
    let nodes = nodes.into_iter().map(|(at, node)| (at, (assigned[&at], node)));
    place(&mut found, nodes.collect(), |(worker, node)| Location::Assigned {
        worker,
        assignment: wire::decode(&node.data),
        version: node.version,
    });
    let delayed =
        get(&zk, open(&found, &jobs), |job, record| Some(path::delayed_entry(record.delay()?, job)));
    let delayed = delayed.await?;
    for (at, _) in delayed {
        if let Some(Ok(found)) = &mut found[at]
            && let Some(delay) = found.record.delay()
        {
            found.place = Location::Delayed(delay);
        }
    }
    let notes = get(&zk, open(&found, &jobs), |job, _| Some(path::quarantine(job))).await?;
    place(&mut found, notes, |node| Location::Quarantined {
        note: String::from_utf8_lossy(&node.data).into_owned(),
    });
    Ok(found)
}

fn read(node: &Node) -> Result<Found, WireError> {
    let record = wire::decode::<JobRecord>(&node.data)?;
    let place = if record.is_terminal() { Location::Terminal } else { Location::Nowhere };
    Ok(Found { record, version: node.version, place })
}

/// Returns the jobs whose place is not known yet.
fn open<'a>(
    found: &'a [Option<Result<Found, WireError>>],
    jobs: &'a [JobId],
) -> Vec<(usize, &'a JobId, &'a JobRecord)> {
    let unplaced = |(at, found): (usize, &'a Option<Result<Found, WireError>>)| match found {
        Some(Ok(Found { record, place: Location::Nowhere, .. })) => Some((at, &jobs[at], record)),
        Some(Ok(_) | Err(_)) | None => None,
    };
    found.iter().enumerate().filter_map(unplaced).collect()
}

/// Reads a znode per job. Returns the existing ones with the job's position.
async fn get(
    zk: &Zk,
    jobs: Vec<(usize, &JobId, &JobRecord)>,
    path: impl Fn(&JobId, &JobRecord) -> Option<String>,
) -> ReadResult<Vec<(usize, Node)>> {
    let asked = jobs.into_iter().filter_map(|(at, job, record)| Some((at, path(job, record)?)));
    let (at, paths): (Vec<_>, Vec<_>) = asked.unzip();
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let nodes = zk.get_many(paths).await?;
    Ok(at.into_iter().zip(nodes).filter_map(|(at, node)| Some((at, node?))).collect())
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
