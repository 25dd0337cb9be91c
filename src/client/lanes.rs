//! Whose turn it is in a lane: why a queued job of it waits.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::job::{QueueEntry, Turn, TurnIndex};
use bellwether_core::name::{JobId, Lane};
use bellwether_core::path;
use bellwether_core::wire;
use bellwether_zk::{Node, ReadResult, Zk};
use futures::future::try_join_all;

use super::error::Error;
use super::link::{Deadline, Link};
use super::view::{JobView, State, Waiting};

/// Generation and job.
type Spot = (u32, JobId);

/// Says of each queued job with a lane whether another one comes first. All turns of its lane are read: the order of a
/// lane is not told by names.
pub(super) async fn tell_turns<'a>(
    link: &Link,
    by: Deadline,
    views: impl IntoIterator<Item = &'a mut JobView>,
) -> Result<(), Error> {
    let waits = |view: &&mut JobView| view.state == State::Queued && view.lane.is_some();
    let views = views.into_iter().filter(waits).collect::<Vec<_>>();
    let lanes = views.iter().filter_map(|view| view.lane.clone()).collect::<BTreeSet<_>>();
    if lanes.is_empty() {
        return Ok(());
    }
    let lanes = lanes.into_iter().collect::<Vec<_>>();
    let orders = link.read(by, |zk| orders(zk.clone(), lanes.clone())).await?;
    let mut without = Vec::new();
    for view in views {
        let Some(order) = view.lane.as_ref().and_then(|lane| orders.get(lane)) else { continue };
        let own = (view.generation, view.id.clone());
        if !order.contains(&own) {
            without.push(view);
        } else if let Some((_, first)) = order.first().filter(|first| **first != own) {
            view.waiting = Some(Waiting::Lane);
            view.behind = Some(first.clone());
        }
    }
    tell_without(link, by, without).await
}

/// A job that ended since it was placed has no turn, and rightly so. One whose entry is in the queue still, of the same
/// generation, was open all the time, and so should its turn have been there.
async fn tell_without(link: &Link, by: Deadline, views: Vec<&mut JobView>) -> Result<(), Error> {
    if views.is_empty() {
        return Ok(());
    }
    let paths = views.iter().map(|view| path::queue_entry(&view.id)).collect::<Vec<_>>();
    let nodes = link.read(by, |zk| zk.get_many(paths.clone())).await?;
    for (view, node) in views.into_iter().zip(nodes) {
        let entry = node.and_then(|node| wire::decode::<QueueEntry>(&node.data).ok());
        if entry.is_some_and(|entry| entry.generation == view.generation) {
            view.waiting = Some(Waiting::NoTurn);
        }
    }
    Ok(())
}

/// The turns of each lane in their order.
async fn orders(zk: Zk, lanes: Vec<Lane>) -> ReadResult<BTreeMap<Lane, Vec<Spot>>> {
    let lists =
        lanes.chunks(MAX_READ_BATCH).map(|lanes| zk.children_many(lanes.iter().map(path::lane).collect()));
    let lists = try_join_all(lists).await?.into_iter().flatten();
    let turns = lanes.iter().zip(lists).flat_map(|(lane, names)| {
        let spots = names.into_iter().flatten().filter_map(|name| path::parse_turn(&name));
        spots.map(move |spot| (lane, spot))
    });
    let turns = turns.collect::<Vec<_>>();
    let reads = turns.chunks(MAX_READ_BATCH).map(|turns| {
        let path = |(lane, (generation, job)): &(&Lane, Spot)| {
            path::turn(&Turn { lane: (*lane).clone(), generation: *generation }, job)
        };
        zk.get_many(turns.iter().map(path).collect())
    });
    let nodes = try_join_all(reads).await?.into_iter().flatten();
    let mut orders = lanes.iter().map(|lane| (lane, BTreeMap::new())).collect::<BTreeMap<_, _>>();
    for ((lane, spot), node) in turns.into_iter().zip(nodes) {
        // Absent: it has ended since it was listed.
        if let (Some(node), Some(order)) = (node, orders.get_mut(lane)) {
            order.insert((node.created, index(&node), spot.clone()), spot);
        }
    }
    Ok(orders.into_iter().map(|(lane, order)| (lane.clone(), order.into_values().collect())).collect())
}

/// As the leader takes it: one that cannot be read comes after the others of its transaction.
fn index(node: &Node) -> u32 {
    wire::decode(&node.data).map_or(u32::MAX, |TurnIndex(index)| index)
}
