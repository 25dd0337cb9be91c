//! Reads groups and their open members.
//!
//! A group is read in several requests, in the order that [`GroupState`] relies on. Memory is bounded by one chunk's names.
//!
//! **The worker of an open member** is not in the member's record: the record names the worker of the *last closed*
//! attempt, because an assignment does not change the record. So this module either reads the possible assignments of
//! the member, one per worker, or lists all inboxes. Few members of a page of [`REST`] members run, because all members
//! of a stopped group together run in at most as many slots as there are. Reading the assignments is therefore almost
//! always cheaper. If that were more than `PROBES` znodes, the inboxes are listed one by one, `WINDOW` at a time, with
//! one name per slot in use, for each page.
//!
//! **An inbox that cannot be listed**, because an operator has changed its access or it has more than [`MAX_INBOX`] znodes, or an
//! assignment that cannot be read, affects only its own members: the possible assignments in such inboxes are read
//! directly, up to `PROBES`, and a member that is not found waits for another pass or the next sweep.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::budget::{MAX_INBOX, MAX_READ_BATCH};
use bellwether_core::group::{End, FirstGroup, GroupRecord, Mark, Stage};
use bellwether_core::job::{Assignment, JobRecord};
use bellwether_core::machine::group_joiner::{Cursor, GroupState, Lookup, MemberLocation, OpenMember, REST};
use bellwether_core::machine::worker_registry::recovery::Stored;
use bellwether_core::name::{GroupId, JobId, WorkerId};
use bellwether_core::path;
use bellwether_core::port::{Node, ReadError, ReadResult, Requests};
use bellwether_core::ready::ReadyEntry;
use bellwether_core::txn::EntryLocation;
use bellwether_core::wire;

/// The largest number of assignments that are read directly instead of listing all inboxes: a few batched reads, each
/// of which costs about as much as a get.
const PROBES: usize = 4 * MAX_READ_BATCH;

/// Inboxes that are listed at a time, as many as a recovery has.
const WINDOW: usize = 8;

/// Reads a group.
///
/// # Errors
/// A read that is not answered.
pub async fn look(zk: &dyn Requests, group: &GroupId) -> ReadResult<Lookup> {
    let Some(node) = zk.get(path::group(group)).await? else { return Ok(Lookup::Absent) };
    let record = match wire::decode::<GroupRecord>(&node.data) {
        Ok(record) => record,
        Err(error) => return Ok(Lookup::Unreadable(error.to_string())),
    };
    let mut state = GroupState::new(record, node.version, node.modified);
    if matches!(state.record.stage, Stage::Done { .. }) {
        return Ok(Lookup::Found(Box::new(state)));
    }
    let names = zk.children(path::group(group)).await?.unwrap_or_default();
    for (mark, end) in names.iter().filter_map(|name| path::parse_mark(name)) {
        match mark {
            Mark::Parent => state.parent = Some(end),
            Mark::Join => state.join = Some(end),
            Mark::Finish => state.finish = Some(end),
            Mark::Member(_) | Mark::Further(_) => {}
        }
    }
    if let Some(first) = state.record.parent.as_ref().and_then(|parent| parent.first.as_ref()) {
        state.parent = parent_of_further(zk, first).await?;
    }
    state.further = further(zk, group, &state.record, &names).await?;
    let chunks = names.iter().filter_map(|name| path::parse_chunk(name)).collect::<Vec<_>>();
    state.open = count(zk, chunks.iter().map(|chunk| path::place_chunk(group, *chunk))).await?;
    state.ended = count(zk, chunks.iter().map(|chunk| path::mark_chunk(group, *chunk))).await?;
    if GroupState::wants_numbers(&state.record, state.ended) {
        number(zk, group, &chunks, &mut state).await?;
    }
    Ok(Lookup::Found(Box::new(state)))
}

/// Returns how the parent of a further group has ended. If an operator has deleted the first group, nothing waits for this
/// one, and it is stopped.
async fn parent_of_further(zk: &dyn Requests, first: &FirstGroup) -> ReadResult<Option<End>> {
    let Some(names) = zk.children(path::group(&first.group)).await? else { return Ok(Some(End::Cancelled)) };
    let mut marks = names.iter().filter_map(|name| path::parse_mark(name));
    Ok(marks.find(|(mark, _)| *mark == Mark::Parent).map(|(_, end)| end))
}

/// Returns the further groups without a mark in `names` that exist.
async fn further(
    zk: &dyn Requests,
    first: &GroupId,
    record: &GroupRecord,
    names: &[String],
) -> ReadResult<Vec<GroupId>> {
    let marks = names.iter().filter_map(|name| path::parse_mark(name));
    let marks = marks.map(|(mark, _)| mark).collect::<BTreeSet<_>>();
    let open = (0..).zip(record.further_groups(first)).filter(|(n, _)| !marks.contains(&Mark::Further(*n)));
    let open = open.map(|(_, group)| group).collect::<Vec<_>>();
    if open.is_empty() {
        return Ok(open);
    }
    let nodes = zk.get_many(open.iter().map(path::group).collect()).await?;
    Ok(open.into_iter().zip(nodes).filter_map(|(group, node)| node.map(|_| group)).collect())
}

/// Counts the children of these znodes.
async fn count(zk: &dyn Requests, paths: impl Iterator<Item = String>) -> ReadResult<u32> {
    let paths = paths.collect::<Vec<_>>();
    let mut sum = 0;
    for paths in paths.chunks(MAX_READ_BATCH) {
        let nodes = zk.get_many(paths.to_vec()).await?;
        sum += nodes.iter().flatten().map(|node| node.children).sum::<usize>();
    }
    Ok(u32::try_from(sum).unwrap_or(u32::MAX))
}

/// Counts members by their numbers. Places are listed first: a member that ends in between is in both lists and is
/// counted once.
async fn number(
    zk: &dyn Requests,
    group: &GroupId,
    chunks: &[u32],
    state: &mut GroupState,
) -> ReadResult<()> {
    let total = state.record.total.unwrap_or(0);
    let (mut members, mut places, mut marks, mut below) = (0, 0, 0, 0);
    for chunk in chunks {
        let Members { open, ended } = members_of(zk, group, *chunk).await?;
        members += open.iter().filter(|number| !ended.contains_key(number)).count() + ended.len();
        places += open.len();
        marks += ended.len();
        below += ended.range(..total).count();
        let failed = ended.into_iter().find(|(_, end)| *end != End::Succeeded);
        state.failed = state.failed.or(failed.map(|(number, _)| number));
    }
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    (state.open, state.ended, state.below) = (count(places), count(marks), Some(count(below)));
    state.members = state.record.closed.then_some(count(members));
    Ok(())
}

/// The members of one chunk, by number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Members {
    /// The members that have a place.
    pub open: BTreeSet<u32>,
    /// The members that had ended when the marks were listed, each with its result.
    pub ended: BTreeMap<u32, End>,
}

/// Lists the members of a chunk: first the places, then the marks.
///
/// # Errors
/// A read that is not answered.
pub async fn members_of(zk: &dyn Requests, group: &GroupId, chunk: u32) -> ReadResult<Members> {
    let open = zk.children(path::place_chunk(group, chunk)).await?.unwrap_or_default();
    let ended = zk.children(path::mark_chunk(group, chunk)).await?.unwrap_or_default();
    Ok(Members {
        open: open.iter().filter_map(|name| path::parse_place(name)).collect(),
        ended: ended.iter().filter_map(|name| path::parse_member_mark(name)).collect(),
    })
}

/// Finds at most [`REST`] members that have a place, starting at the cursor. Returns the next cursor, or `None` at the
/// end.
///
/// # Errors
/// A read that is not answered.
pub async fn rest(
    zk: &dyn Requests,
    group: &GroupId,
    from: Cursor,
) -> ReadResult<(Vec<OpenMember>, Option<Cursor>)> {
    let record = zk.get(path::group(group)).await?;
    let record = record.and_then(|node| wire::decode::<GroupRecord>(&node.data).ok());
    // Without a record there are no members to end.
    let Some(record) = record else { return Ok((Vec::new(), None)) };
    let chunks = zk.children(path::members(group)).await?.unwrap_or_default();
    let mut chunks = chunks.iter().filter_map(|name| path::parse_chunk(name)).collect::<Vec<_>>();
    chunks.sort_unstable();
    for chunk in chunks.into_iter().filter(|chunk| *chunk >= from.chunk) {
        let places = zk.children(path::place_chunk(group, chunk)).await?.unwrap_or_default();
        let first = if chunk == from.chunk { from.from } else { 0 };
        let mut open = places.iter().filter_map(|name| path::parse_place(name)).collect::<Vec<_>>();
        open.retain(|number| *number >= first);
        open.sort_unstable();
        open.truncate(REST);
        let Some(last) = open.last() else { continue };
        let next = Cursor { chunk, from: last + 1 };
        // The submission of a member has checked its id.
        let jobs = open.iter().filter_map(|number| JobId::member(&record.kind, group, *number).ok());
        return Ok((stand(zk, jobs.collect()).await?, Some(next)));
    }
    Ok((Vec::new(), None))
}

/// Finds the locations of these jobs. A job that moves in the meantime has the location `Nowhere`; the next pass finds
/// it.
async fn stand(zk: &dyn Requests, jobs: Vec<JobId>) -> ReadResult<Vec<OpenMember>> {
    let records = readable(zk, jobs.iter().map(path::record).collect()).await?;
    let members = jobs.into_iter().zip(records).map(|(job, record)| OpenMember {
        job,
        record: stored(record),
        location: MemberLocation::Nowhere,
    });
    let mut rest = members.collect::<Vec<_>>();
    // At most two entries are possible: a delayed job becomes ready.
    let possible = rest.iter().enumerate().flat_map(|(at, rest)| entries(rest).map(move |entry| (at, entry)));
    let possible = possible.collect::<Vec<_>>();
    for possible in possible.chunks(MAX_READ_BATCH) {
        let paths = possible.iter().map(|(at, entry)| entry.path(&rest[*at].job)).collect();
        for ((at, entry), node) in possible.iter().zip(readable(zk, paths).await?) {
            if node.is_some() {
                rest[*at].location = MemberLocation::Waits(entry.clone());
            }
        }
    }
    let sought =
        rest.iter().enumerate().filter(|(_, rest)| sought(rest)).map(|(at, _)| at).collect::<Vec<_>>();
    if sought.is_empty() {
        return Ok(rest);
    }
    let workers = zk.children(path::ASSIGNMENTS.to_owned()).await?.unwrap_or_default();
    let workers = workers.iter().filter_map(|name| WorkerId::parse(name)).collect::<Vec<_>>();
    let held = if sought.len() * workers.len() <= PROBES {
        let of = |at: &usize| workers.iter().map(|worker| (*at, *worker)).collect::<Vec<_>>();
        sought.iter().flat_map(of).collect::<Vec<_>>()
    } else {
        let Holders { jobs, unlisted } = holders(zk, &workers).await?;
        let held = sought.iter().filter_map(|at| Some((*at, *jobs.get(&rest[*at].job)?))).collect::<Vec<_>>();
        let found = held.iter().map(|(at, _)| *at).collect::<BTreeSet<_>>();
        let not_found = sought.iter().filter(|at| !found.contains(at));
        let of = |worker: WorkerId| not_found.clone().map(move |at| (*at, worker));
        let probed = unlisted.into_iter().flat_map(of).take(PROBES).collect::<Vec<_>>();
        [held, probed].concat()
    };
    for held in held.chunks(MAX_READ_BATCH) {
        let paths = held.iter().map(|(at, worker)| path::assignment(*worker, &rest[*at].job)).collect();
        for ((at, worker), node) in held.iter().zip(readable(zk, paths).await?) {
            let Some(node) = node else { continue };
            if let Ok(assignment) = wire::decode::<Assignment>(&node.data) {
                rest[*at].location = MemberLocation::Assigned(*worker, assignment, node.version);
            }
        }
    }
    Ok(rest)
}

/// The entries that a job may have: ready, or delayed.
fn entries(rest: &OpenMember) -> impl Iterator<Item = EntryLocation> + use<> {
    let open = match &rest.record {
        Stored::Value(record, _) if !record.is_terminal() => Some(record),
        Stored::Value(..) | Stored::Absent | Stored::Unreadable(_) => None,
    };
    let ready = open.map(|record| EntryLocation::Ready(ReadyEntry::of_record(&rest.job, record)));
    let delayed = open.and_then(|record| record.delay()).map(EntryLocation::Delayed);
    ready.into_iter().chain(delayed)
}

fn sought(rest: &OpenMember) -> bool {
    rest.location == MemberLocation::Nowhere
        && matches!(&rest.record, Stored::Value(record, _) if !record.is_terminal())
}

/// The contents of all inboxes.
#[derive(Default)]
struct Holders {
    /// The worker of each assigned job: one entry per slot in use.
    jobs: BTreeMap<JobId, WorkerId>,
    /// The workers whose inboxes cannot be listed.
    unlisted: Vec<WorkerId>,
}

async fn holders(zk: &dyn Requests, workers: &[WorkerId]) -> ReadResult<Holders> {
    let mut holders = Holders::default();
    for workers in workers.chunks(WINDOW) {
        // A request is sent when its method is called.
        let lists = workers.iter().map(|worker| zk.children(path::inbox(*worker))).collect::<Vec<_>>();
        for (worker, list) in workers.iter().zip(lists) {
            match list.await {
                Ok(names) if names.as_ref().is_none_or(|names| names.len() <= MAX_INBOX) => {
                    let jobs = names.iter().flatten().filter_map(|name| JobId::new(name).ok());
                    holders.jobs.extend(jobs.map(|job| (job, *worker)));
                }
                Ok(_) | Err(ReadError::Refused(_)) => holders.unlisted.push(*worker),
                Err(lost @ ReadError::Disconnected) => return Err(lost),
            }
        }
    }
    Ok(holders)
}

/// Reads znodes. A znode whose access is denied is omitted like an absent one: it must not hide the others.
async fn readable(zk: &dyn Requests, paths: Vec<String>) -> ReadResult<Vec<Option<Node>>> {
    match zk.get_many(paths.clone()).await {
        Err(ReadError::Refused(_)) => {}
        answer => return answer,
    }
    let mut nodes = Vec::with_capacity(paths.len());
    for paths in paths.chunks(WINDOW) {
        let reads = paths.iter().map(|path| zk.get(path.clone())).collect::<Vec<_>>();
        for read in reads {
            nodes.push(match read.await {
                Ok(node) => node,
                Err(ReadError::Refused(_)) => None,
                Err(lost @ ReadError::Disconnected) => return Err(lost),
            });
        }
    }
    Ok(nodes)
}

fn stored(node: Option<Node>) -> Stored<JobRecord> {
    match node {
        None => Stored::Absent,
        Some(node) => match wire::decode(&node.data) {
            Ok(value) => Stored::Value(value, node.version),
            Err(error) => Stored::Unreadable(error.to_string()),
        },
    }
}
