//! The order of lanes: why a queued job of a lane waits.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use bellwether_core::budget::{MAX_LANE_LISTS, MAX_READ_BATCH};
use bellwether_core::job::{JobRecord, Turn, TurnIndex};
use bellwether_core::name::{JobId, Lane};
use bellwether_core::path;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::wire;
use bellwether_zk::{Node, ReadResult};
use futures::TryFutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::error::Error;
use super::runtime::Zk;
use super::session::{Deadline, Session};
use super::view::{JobView, State, WaitReason};

/// Maximum number of lists in flight, each with its reads.
const LISTS_IN_FLIGHT: usize = 2;

/// Maximum number of reads in flight for one list. Both lists together use eight of the 64 requests of a session.
const READS_IN_FLIGHT: usize = 4;

/// Generation and job.
pub(super) type Spot = (u32, JobId);

/// The first job of each lane, as far as it was read. The names of turns do not show their order, so all turns of a
/// lane must be read. This is done once per listing, or once per call for many jobs. Memory: one job id per lane.
#[derive(Debug, Default)]
pub(super) struct Turns {
    first: BTreeMap<Lane, Spot>,
}

impl Turns {
    /// Adds to each queued job with a lane whether another job comes first. At most [`MAX_READ_BATCH`] views.
    pub(super) async fn tell<'a>(
        &mut self,
        session: &Session,
        by: Deadline,
        views: impl IntoIterator<Item = &'a mut JobView>,
    ) -> Result<(), Error> {
        let mut waiting = Vec::new();
        for view in views {
            if view.state == State::Queued
                && let Some(lane) = view.lane.clone()
            {
                waiting.push((Turn { lane, generation: view.generation }, view));
            }
        }
        if waiting.is_empty() {
            return Ok(());
        }
        let lanes = waiting.iter().map(|(turn, _)| &turn.lane).filter(|lane| !self.first.contains_key(*lane));
        let lanes = lanes.cloned().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
        if !lanes.is_empty() {
            self.first.extend(session.read(by, |zk| firsts(zk.clone(), lanes.clone())).await?);
        }
        let paths = waiting.iter().map(|(turn, view)| path::turn(turn, &view.id)).collect::<Vec<_>>();
        let own = session.read(by, |zk| zk.get_many(paths.clone())).await?;
        let mut without = Vec::new();
        for ((turn, view), own) in waiting.into_iter().zip(own) {
            if own.is_none() {
                without.push(view);
            } else if let Some((generation, first)) = self.first.get(&turn.lane)
                && (*generation, first) != (turn.generation, &view.id)
            {
                view.waiting = Some(WaitReason::Lane);
                view.behind = Some(first.clone());
            }
        }
        tell_without(session, by, without).await
    }
}

/// Marks the jobs without a turn. A job that ended since it was located has correctly no turn. But if its entry of the same
/// generation still exists, the job was open all the time, and its turn should exist.
async fn tell_without(session: &Session, by: Deadline, views: Vec<&mut JobView>) -> Result<(), Error> {
    if views.is_empty() {
        return Ok(());
    }
    let paths = views.iter().map(|view| path::record(&view.id)).collect::<Vec<_>>();
    let records = session.read(by, |zk| zk.get_many(paths.clone())).await?;
    let waiting = views.into_iter().zip(records).filter_map(|(view, node)| {
        let record = wire::decode::<JobRecord>(&node?.data).ok()?;
        let is_same = !record.is_terminal() && record.generation == view.generation;
        is_same.then(|| (path::ready_entry(&ReadyEntry::of_record(&view.id, &record)), view))
    });
    let (paths, views): (Vec<_>, Vec<_>) = waiting.unzip();
    if paths.is_empty() {
        return Ok(());
    }
    let entries = session.read(by, |zk| zk.get_many(paths.clone())).await?;
    for (view, _) in views.into_iter().zip(entries).filter(|(_, entry)| entry.is_some()) {
        view.waiting = Some(WaitReason::NoTurn);
    }
    Ok(())
}

/// Returns the first turn of each lane that has one.
pub(super) async fn firsts(zk: Zk, lanes: Vec<Lane>) -> ReadResult<BTreeMap<Lane, Spot>> {
    let few = lanes.chunks(MAX_LANE_LISTS).map(<[_]>::to_vec).collect::<Vec<_>>();
    let found = stream::iter(few).map(move |few| firsts_of_few(zk.clone(), few));
    let found = found.buffered(LISTS_IN_FLIGHT).try_collect::<Vec<_>>().await?;
    Ok(found.into_iter().flatten().collect())
}

async fn firsts_of_few(zk: Zk, lanes: Vec<Lane>) -> ReadResult<BTreeMap<Lane, Spot>> {
    let lists = zk.children_many(lanes.iter().map(path::lane).collect()).await?;
    let turns = lanes.into_iter().zip(lists).flat_map(|(lane, names)| {
        let spots = names.into_iter().flatten().filter_map(|name| path::parse_turn(&name));
        spots.map(move |(generation, job)| (Turn { lane: lane.clone(), generation }, job))
    });
    let reads = stream::iter(turns).chunks(MAX_READ_BATCH).map(move |page| {
        let nodes = zk.get_many(page.iter().map(|(turn, job)| path::turn(turn, job)).collect());
        nodes.map_ok(|nodes| (page, nodes))
    });
    let mut reads = reads.buffered(READS_IN_FLIGHT);
    let mut firsts = BTreeMap::<Lane, (i64, u32, Spot)>::new();
    while let Some((page, nodes)) = reads.try_next().await? {
        for ((Turn { lane, generation }, job), node) in page.into_iter().zip(nodes) {
            // Absent: the job has ended since the lane was listed.
            let Some(node) = node else { continue };
            let place = (node.created, index(&node), (generation, job));
            match firsts.entry(lane) {
                Entry::Vacant(first) => drop(first.insert(place)),
                Entry::Occupied(mut first) if place < *first.get() => drop(first.insert(place)),
                Entry::Occupied(_) => {}
            }
        }
    }
    Ok(firsts.into_iter().map(|(lane, (_, _, spot))| (lane, spot)).collect())
}

/// Returns the index as the leader reads it: an unreadable turn comes after the others of its transaction.
fn index(node: &Node) -> u32 {
    wire::decode(&node.data).map_or(u32::MAX, |TurnIndex(index)| index)
}

#[cfg(test)]
mod tests;
