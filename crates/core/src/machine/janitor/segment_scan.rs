//! The segments of a bucket that is scanned: finds those whose members have all left, and when they ended.
//!
//! A list of the chunks shows whether a segment is finished, so only finished ones are read.

use std::collections::VecDeque;

use crate::path;
use crate::segment::{ChunkEnd, Chunks, Members, SegmentId};

use super::READ;

/// Most segments of one read. Each is as large as a hundred records.
const SEGMENTS: usize = 16;

/// See the [module](self).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct SegmentScan {
    unlisted: VecDeque<SegmentId>,
    /// Those whose chunks are listed now.
    sought: Vec<SegmentId>,
    /// Those that are finished.
    unread: VecDeque<(SegmentId, Chunks)>,
}

/// The next request of a scan.
pub(super) enum Next {
    /// List the chunks of these segments.
    List(Vec<SegmentId>),
    /// Read these finished segments.
    Read(Vec<(SegmentId, Chunks)>),
}

/// Numbers of members in lists of chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Listed {
    /// Those that wait or are assigned.
    pub(super) open: usize,
    /// Those that have records of their own.
    pub(super) extracted: usize,
}

impl SegmentScan {
    pub(super) fn push(&mut self, segment: SegmentId) {
        self.unlisted.push_back(segment);
    }

    pub(super) fn next(&mut self) -> Option<Next> {
        if !self.unread.is_empty() {
            let few = self.unread.len().min(SEGMENTS);
            return Some(Next::Read(self.unread.drain(..few).collect()));
        }
        let few = self.unlisted.len().min(READ);
        self.sought = self.unlisted.drain(..few).collect();
        (few > 0).then(|| Next::List(self.sought.clone()))
    }

    /// Handles the answer to the last [`Next::List`].
    pub(super) fn listed(&mut self, lists: Vec<Option<Vec<String>>>) -> Listed {
        let mut all = Listed::default();
        for (id, names) in std::mem::take(&mut self.sought).into_iter().zip(lists) {
            // Absent: removed since the bucket was listed.
            let Some(names) = names else { continue };
            let chunks = Chunks::of_names(names.iter().map(String::as_str));
            all.extracted += len(chunks.members(ChunkEnd::Extracted));
            let open = len(chunks.open(id));
            all.open += open;
            // A segment with a foreign child cannot be deleted.
            if open == 0 && chunks.names().len() == names.len() {
                self.unread.push_back((id, chunks));
            }
        }
        all
    }
}

/// The number of members whose results are only in the segment.
pub(super) fn succeeded(chunks: &Chunks) -> usize {
    len(chunks.members(ChunkEnd::Succeeded).without(chunks.members(ChunkEnd::Extracted)))
}

fn len(members: Members) -> usize {
    members.len() as usize
}

/// The paths of a segment and of its chunks.
#[must_use]
pub fn paths(id: SegmentId, chunks: &Chunks) -> Vec<String> {
    let chunks = chunks.names().iter().map(|name| path::segment_chunk(id, *name));
    std::iter::once(path::segment(id)).chain(chunks).collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn id(n: u128) -> SegmentId {
        SegmentId::new(Uuid::from_u128(n), 4, 1_000).unwrap()
    }

    fn list(lists: &[Option<&[&str]>]) -> (Listed, Vec<SegmentId>) {
        let mut scan = SegmentScan::default();
        (0..).zip(lists).for_each(|(n, _)| scan.push(id(n)));
        let Some(Next::List(sought)) = scan.next() else { panic!("the segments are listed") };
        assert_eq!(sought.len(), lists.len());
        let names = |names: &&[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let listed = scan.listed(lists.iter().map(|list| list.as_ref().map(names)).collect());
        let read = match scan.next() {
            Some(Next::Read(finished)) => finished.into_iter().map(|(id, _)| id).collect(),
            Some(Next::List(_)) => panic!("all are listed"),
            None => Vec::new(),
        };
        assert!(scan.next().is_none());
        (listed, read)
    }

    #[test]
    fn only_finished_segments_are_read() {
        let (listed, read) =
            list(&[Some(&["sf"]), Some(&["s7"]), Some(&[]), None, Some(&["s3", "xc", "x1"])]);
        assert_eq!(read, [id(0), id(4)]);
        assert_eq!(listed, Listed { open: 5, extracted: 3 });
    }

    #[test]
    fn a_segment_with_a_foreign_child_is_left_alone() {
        assert_eq!(list(&[Some(&["sf", "notes"])]).1, []);
    }

    #[test]
    fn many_segments_are_listed_and_read_in_steps() {
        let mut scan = SegmentScan::default();
        (0..READ as u128 + 1).for_each(|n| scan.push(id(n)));
        let (mut lists, mut reads) = (Vec::new(), Vec::new());
        while let Some(next) = scan.next() {
            match next {
                Next::List(sought) => {
                    lists.push(sought.len());
                    scan.listed(vec![Some(vec!["sf".to_owned()]); sought.len()]);
                }
                Next::Read(finished) => reads.push(finished.len()),
            }
        }
        assert_eq!(lists, [READ, 1]);
        assert_eq!((reads.iter().sum::<usize>(), reads[0]), (READ + 1, SEGMENTS));
    }

    #[test]
    fn the_paths_of_a_segment_are_its_own_and_those_of_its_chunks() {
        let chunks = Chunks::of_names(["s3", "xc"]);
        let of_chunks = chunks.names().iter().map(|name| path::segment_chunk(id(0), *name));
        let all = std::iter::once(path::segment(id(0))).chain(of_chunks).collect::<Vec<_>>();
        assert_eq!((paths(id(0), &chunks), all.len()), (all, 3));
    }
}
