//! Reading jobs by their ids, whether they have a record or are members of a segment.
//!
//! | children of the segment | the job is in |
//! | --- | --- |
//! | a chunk `x` names it | its record; removed if that is absent |
//! | a chunk `s` names it | that chunk, as succeeded |
//! | no chunk names it | the segment, as open |
//! | the segment is absent | its record, which may outlive the segment; else removed |
//!
//! **Order of reads.** First the children of the segment, then the record or the chunk. A member moves only down this list: open,
//! succeeded, its record, removed. An extraction writes the chunk `x` and the record in one transaction. So a record that is
//! absent after a chunk `x` was seen has been removed. The other order would be wrong: a record that is absent at first may be written before
//! the children are listed. A member that the list shows as open or succeeded was so at the time of the list. If the
//! segment is absent when its data are read, it was removed after the list, and its members are searched again: then their records are
//! definite, because no segment returns. All reads of one look are in one session, in which no read is older than an earlier one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::job::JobRecord;
use bellwether_core::name::JobId;
use bellwether_core::path;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::segment::{ChunkEnd, ChunkName, Chunks, MemberId, Results, Segment, SegmentId};
use bellwether_core::wire::{self, WireError};
use bellwether_zk::{Node, ReadResult};
use futures::future::try_join;

use super::runtime::Zk;

/// Segments and chunks of one batched read. Each fits into one transaction, so a batch is not larger than one of the largest
/// records.
const PACKED_AT_ONCE: usize = 50;

/// The segment of a member without its own record.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    pub(super) id: SegmentId,
    pub(super) segment: Arc<Segment>,
}

impl Packed {
    /// The entry of the segment, and so of each open member, while it waits.
    pub(super) fn waits_at(&self) -> ReadyEntry {
        self.segment.waits_at(self.id)
    }
}

/// The stored form of a job.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) record: JobRecord,
    /// The version of the record; without one, that which its extraction will create.
    pub(super) version: i32,
    /// Its segment, if the job has no own record.
    pub(super) packed: Option<Packed>,
}

/// The znodes that contain a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// Its record, which may be absent.
    Record,
    /// Its segment: the member is open.
    Segment(MemberId),
    /// A chunk: the member has succeeded.
    Chunk(MemberId, ChunkName),
    /// Nothing: the id of a segment is not that of a job.
    NoJob,
}

impl Home {
    /// Decides by the children of the segment, or its absence.
    pub(super) fn of(member: MemberId, chunks: Option<&Chunks>) -> Self {
        match chunks.map(|chunks| chunks.of(member.number)) {
            None | Some(Some(ChunkName { end: ChunkEnd::Extracted, .. })) => Self::Record,
            Some(None) => Self::Segment(member),
            Some(Some(chunk @ ChunkName { end: ChunkEnd::Succeeded, .. })) => Self::Chunk(member, chunk),
        }
    }
}

/// The segment of a job was removed since it was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

/// The result of a read at a job's home; `None` if it is absent.
pub(super) type Fetched = Result<Option<Result<Stored, WireError>>, Gone>;

/// Reads jobs; `None` for each that does not exist.
pub(super) async fn read(zk: &Zk, ids: &[JobId]) -> ReadResult<Vec<Option<Result<Stored, WireError>>>> {
    let mut stored = vec![None; ids.len()];
    let mut sought = (0..ids.len()).collect::<Vec<_>>();
    // A segment is removed once, so this ends with the second look.
    while !sought.is_empty() {
        let few = sought.iter().map(|&at| ids[at].clone()).collect::<Vec<_>>();
        let homes = homes(zk, &few).await?;
        let fetched = fetch(zk, &few.into_iter().zip(homes).collect::<Vec<_>>()).await?;
        let mut gone = Vec::new();
        for (at, fetched) in sought.into_iter().zip(fetched) {
            match fetched {
                Ok(there) => stored[at] = there,
                Err(Gone) => gone.push(at),
            }
        }
        sought = gone;
    }
    Ok(stored)
}

/// Whether each job exists: it has a record, readable or not, or is in a segment.
pub(super) async fn exist(zk: &Zk, ids: &[JobId]) -> ReadResult<Vec<bool>> {
    let homes = homes(zk, ids).await?;
    let recorded = |at: &usize| homes[*at] == Home::Record;
    let recorded = (0..ids.len()).filter(recorded).collect::<Vec<_>>();
    let nodes = get(zk, recorded.iter().map(|&at| path::record(&ids[at])).collect(), MAX_READ_BATCH).await?;
    let mut exist = homes.iter().map(|home| *home != Home::NoJob).collect::<Vec<_>>();
    recorded.into_iter().zip(nodes).for_each(|(at, node)| exist[at] = node.is_some());
    Ok(exist)
}

/// Returns the znodes that contain each job. Each segment is listed once.
async fn homes(zk: &Zk, ids: &[JobId]) -> ReadResult<Vec<Home>> {
    let members = ids.iter().map(MemberId::of_job).collect::<Vec<_>>();
    let segments = members.iter().flatten().map(|member| member.segment).collect::<BTreeSet<_>>();
    let segments = segments.into_iter().collect::<Vec<_>>();
    let lists = list(zk, &segments).await?;
    let lists = segments.into_iter().zip(lists).collect::<BTreeMap<_, _>>();
    let homes = ids.iter().zip(members).map(|(id, member)| match member {
        Some(member) => Home::of(member, lists.get(&member.segment).and_then(Option::as_ref)),
        None if SegmentId::of_job(id).is_some() => Home::NoJob,
        None => Home::Record,
    });
    Ok(homes.collect())
}

/// Lists the chunks of segments; `None` for each that is absent.
pub(super) async fn list(zk: &Zk, segments: &[SegmentId]) -> ReadResult<Vec<Option<Chunks>>> {
    let mut lists = Vec::with_capacity(segments.len());
    for few in segments.chunks(MAX_READ_BATCH) {
        let few = zk.children_many(few.iter().copied().map(path::segment).collect()).await?;
        lists.extend(few.into_iter().map(|names| names.map(|names| chunks(&names))));
    }
    Ok(lists)
}

/// Parses the names of a segment's children.
pub(super) fn chunks(names: &[String]) -> Chunks {
    Chunks::of_names(names.iter().map(String::as_str))
}

/// Reads jobs at their homes. Each segment and each chunk is read once.
pub(super) async fn fetch(zk: &Zk, jobs: &[(JobId, Home)]) -> ReadResult<Vec<Fetched>> {
    let records = jobs.iter().filter(|(_, home)| *home == Home::Record);
    let records = records.map(|(id, _)| path::record(id)).collect();
    let packs = jobs.iter().flat_map(|(_, home)| match *home {
        Home::Segment(member) => [Some(path::segment(member.segment)), None],
        Home::Chunk(MemberId { segment, .. }, chunk) => {
            [Some(path::segment(segment)), Some(path::segment_chunk(segment, chunk))]
        }
        Home::Record | Home::NoJob => [None, None],
    });
    let packs = packs.flatten().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    let (records, nodes) =
        try_join(get(zk, records, MAX_READ_BATCH), get(zk, packs.clone(), PACKED_AT_ONCE)).await?;
    let packs = Packs::of(packs.into_iter().zip(nodes).collect(), jobs.iter().map(|(_, home)| *home));
    let mut records = records.into_iter();
    let fetched = jobs.iter().map(|(_, home)| match home {
        Home::NoJob => Ok(None),
        Home::Record => {
            let node = records.next().expect("a node for each record");
            Ok(node.map(|node| recorded(&node)))
        }
        Home::Segment(member) => packs.member(*member, None),
        Home::Chunk(member, chunk) => packs.member(*member, Some(*chunk)),
    });
    Ok(fetched.collect())
}

fn recorded(node: &Node) -> Result<Stored, WireError> {
    Ok(Stored { record: wire::decode(&node.data)?, version: node.version, packed: None })
}

/// Reads znodes in batches of this size, one after the other.
async fn get(zk: &Zk, paths: Vec<String>, at_once: usize) -> ReadResult<Vec<Option<Node>>> {
    let mut nodes = Vec::with_capacity(paths.len());
    for few in paths.chunks(at_once) {
        nodes.append(&mut zk.get_many(few.to_vec()).await?);
    }
    Ok(nodes)
}

/// The segments and chunks of one look; absent ones are left out.
#[derive(Default)]
struct Packs {
    segments: BTreeMap<SegmentId, Result<Arc<Segment>, WireError>>,
    chunks: BTreeMap<(SegmentId, ChunkName), Result<Results, WireError>>,
}

impl Packs {
    fn of(nodes: BTreeMap<String, Option<Node>>, homes: impl Iterator<Item = Home>) -> Self {
        let node = |path: String| nodes.get(&path)?.as_ref();
        let mut packs = Self::default();
        for home in homes {
            let (Home::Segment(member) | Home::Chunk(member, _)) = home else { continue };
            let id = member.segment;
            if !packs.segments.contains_key(&id)
                && let Some(node) = node(path::segment(id))
            {
                packs.segments.insert(id, wire::decode(&node.data).map(Arc::new));
            }
            if let Home::Chunk(_, chunk) = home
                && !packs.chunks.contains_key(&(id, chunk))
                && let Some(node) = node(path::segment_chunk(id, chunk))
            {
                packs.chunks.insert((id, chunk), wire::decode(&node.data));
            }
        }
        packs
    }

    fn member(&self, MemberId { segment: id, number }: MemberId, chunk: Option<ChunkName>) -> Fetched {
        let Some(segment) = self.segments.get(&id) else { return Err(Gone) };
        let segment = match segment {
            Ok(segment) => segment,
            Err(error) => return Ok(Some(Err(error.clone()))),
        };
        let record = match chunk.map(|chunk| self.chunks.get(&(id, chunk))) {
            None => segment.record(number).ok_or("its segment does not have it"),
            Some(None) => return Err(Gone),
            Some(Some(Err(error))) => return Ok(Some(Err(error.clone()))),
            Some(Some(Ok(results))) => {
                segment.succeeded(number, results).ok_or("its chunk has no result of it")
            }
        };
        let packed = Some(Packed { id, segment: Arc::clone(segment) });
        let record = record.map_err(|reason| WireError::Value(reason.to_owned()));
        Ok(Some(record.map(|record| Stored { record, version: 0, packed })))
    }
}

#[cfg(test)]
mod tests;
