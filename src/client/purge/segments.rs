//! Segments in a purge: one whose members have all left is removed as a whole, if all of those that succeeded are selected.
//! The members with records are purged like any record.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::budget::{MAX_READ_BATCH, MAX_TXN_OPS, MIN_RETENTION};
use bellwether_core::change::ChangeKind;
use bellwether_core::machine::janitor::{FoundSegment, segment_paths};
use bellwether_core::outcome::Reason;
use bellwether_core::path::{self, Bucket};
use bellwether_core::retention;
use bellwether_core::segment::{ChunkEnd, Chunks, Segment, SegmentId};
use bellwether_core::time::WallMillis;
use bellwether_core::txn;
use bellwether_core::wire;
use bellwether_zk::{Node, ReadResult};
use futures::future::try_join_all;

use super::{Ended, Purge, Purged, Selection, ServerClock, TRIES};
use crate::client::Client;
use crate::client::error::{Error, Subject};
use crate::client::runtime::Zk;
use crate::client::session::Written;

/// Segments per page. Each is as large as a hundred records.
pub(super) const SEGMENTS: usize = 16;

/// The state of a page: the versions of the buckets, and each segment, finished or absent, with its znodes.
struct Page {
    removals: BTreeMap<Bucket, i32>,
    gone: BTreeSet<SegmentId>,
    finished: Vec<(SegmentId, Chunks, Vec<Option<Node>>)>,
}

/// A selected segment.
struct Match {
    id: SegmentId,
    chunks: Chunks,
    jobs: usize,
}

impl Client {
    /// Removes the selected segments of a page, or counts them.
    pub(super) async fn segment_page(
        &self,
        purge: &Purge,
        page: &[SegmentId],
        clock: ServerClock,
        done: &mut Purged,
    ) -> Result<(), Error> {
        // Only members that have succeeded are in a segment.
        if purge.state != Some(Ended::Succeeded) {
            return Ok(());
        }
        let mut left = page.to_vec();
        // The segments of removals whose replies were lost, until a read does not find them.
        let mut sent = BTreeMap::new();
        let (mut tries, mut is_first) = (0, true);
        while tries < TRIES {
            let by = self.by();
            let read = self.0.session.read(by, |zk| read(zk.clone(), left.clone())).await?;
            let now = clock.at(self.0.session.now());
            read.gone.iter().filter_map(|id| sent.remove(id)).for_each(|jobs| done.note(jobs));
            let mut found = Vec::new();
            for (id, chunks, nodes) in read.finished {
                let Some(is_too_recent) = matches(purge, &nodes, now) else { continue };
                let extracted = chunks.members(ChunkEnd::Extracted);
                let jobs = chunks.members(ChunkEnd::Succeeded).without(extracted).len() as usize;
                if !is_too_recent {
                    found.push(Match { id, chunks, jobs });
                } else if is_first {
                    done.too_recent += jobs as u64;
                }
            }
            is_first = false;
            if !purge.remove || found.is_empty() {
                done.matched += found.iter().map(|found| found.jobs as u64).sum::<u64>();
                return Ok(());
            }
            let change = self.change(ChangeKind::Removed);
            let buckets = found.iter().map(|found| Bucket::of(&found.id.job())).collect::<BTreeSet<_>>();
            let counts = buckets.iter().filter_map(|bucket| Some((*bucket, *read.removals.get(bucket)?)));
            let mut ops = counts
                .map(|(bucket, removals)| txn::count_removal(bucket, removals, change.as_ref()))
                .collect::<Vec<_>>();
            // A segment has at most 201 znodes, so the first one fits.
            let fits = |found: &&Match| {
                let more = txn::segment::remove(found.id, &found.chunks);
                let fits = ops.len() + more.len() <= MAX_TXN_OPS;
                ops.extend(more.into_iter().filter(|_| fits));
                fits
            };
            let removed =
                found.iter().take_while(fits).map(|found| (found.id, found.jobs)).collect::<Vec<_>>();
            left = found.into_iter().map(|found| found.id).collect();
            let written = match self.0.session.commit(by, ops).await {
                // A chunk that was not listed: the segment is looked at again.
                Err(Error::Refused(Reason::NotEmpty)) => Written::Rejected,
                written => written?,
            };
            match written {
                Written::Applied => {
                    left.drain(..removed.len());
                    removed.iter().for_each(|(_, jobs)| done.note(*jobs));
                    if left.is_empty() {
                        return Ok(());
                    }
                }
                // Or another process removed records of a bucket.
                Written::Rejected => tries += 1,
                Written::Unknown => {
                    tries += 1;
                    sent.extend(removed);
                }
            }
        }
        Err(Error::Contended { subject: Subject::Page, tries: TRIES })
    }
}

/// Reads the buckets first, then the chunks, then their data.
async fn read(zk: Zk, segments: Vec<SegmentId>) -> ReadResult<Page> {
    zk.sync(path::JOBS.to_owned()).await?;
    let buckets = segments.iter().map(|id| Bucket::of(&id.job())).collect::<BTreeSet<_>>();
    let versions = zk.get_many(buckets.iter().map(|bucket| bucket.jobs()).collect());
    let lists = zk.children_many(segments.iter().copied().map(path::segment).collect());
    let versions = versions.await?.into_iter().map(|node| node.map_or(0, |node| node.version));
    let removals = buckets.into_iter().zip(versions).collect();
    let (mut gone, mut finished) = (BTreeSet::new(), Vec::new());
    for (id, names) in segments.into_iter().zip(lists.await?) {
        let Some(names) = names else {
            gone.insert(id);
            continue;
        };
        let chunks = Chunks::of_names(names.iter().map(String::as_str));
        // A segment with a foreign child cannot be deleted.
        if chunks.open(id).is_empty() && chunks.names().len() == names.len() {
            finished.push((id, chunks));
        }
    }
    let paths = finished.iter().map(|(id, chunks)| segment_paths(*id, chunks)).collect::<Vec<_>>();
    let all = paths.concat();
    let nodes = try_join_all(all.chunks(MAX_READ_BATCH).map(|paths| zk.get_many(paths.to_vec()))).await?;
    let mut nodes = nodes.into_iter().flatten();
    let finished = finished.into_iter().zip(paths).map(|((id, chunks), paths)| {
        let nodes = nodes.by_ref().take(paths.len()).collect();
        (id, chunks, nodes)
    });
    Ok(Page { removals, gone, finished: finished.collect() })
}

/// Returns whether a selected segment ended within the last minute; `None` if it is not selected as a whole.
fn matches(purge: &Purge, nodes: &[Option<Node>], now: WallMillis) -> Option<bool> {
    let (segment, chunks) = nodes.split_first()?;
    let segment = segment.as_ref().map(|node| node.data.as_slice())?;
    let data = chunks.iter().map(|chunk| chunk.as_ref().map(|chunk| (chunk.data.as_slice(), chunk.modified)));
    let FoundSegment::Over(ends) = FoundSegment::of(Some(segment), data) else { return None };
    let kind = wire::decode::<Segment>(segment).ok()?.head.kind;
    let ended = ends.iter().map(|(at, modified)| retention::ended(*at, *modified, now)).max()?;
    let modified = ends.iter().map(|(_, modified)| *modified).max()?;
    let is_too_recent = now.since(modified) < MIN_RETENTION;
    Selection::Of(purge).lets(Ended::Succeeded, &kind, now.since(ended)).then_some(is_too_recent)
}

#[cfg(test)]
mod tests;
