//! The paths of segments.

use super::ASSIGNMENTS;
use crate::name::WorkerId;
use crate::segment::{ChunkName, SegmentId, SliceName};

/// Parent of the buckets of segments.
pub const SEGMENTS: &str = "/segments";

/// The bucket of a segment.
#[must_use]
pub fn segment_bucket(segment: SegmentId) -> String {
    format!("{SEGMENTS}/{:03x}", segment.bucket())
}

/// A segment.
#[must_use]
pub fn segment(segment: SegmentId) -> String {
    format!("{}/{segment}", segment_bucket(segment))
}

/// A chunk of a segment.
#[must_use]
pub fn segment_chunk(id: SegmentId, chunk: ChunkName) -> String {
    format!("{}/{chunk}", segment(id))
}

/// A slice in a worker's inbox.
#[must_use]
pub fn slice(worker: WorkerId, slice: SliceName) -> String {
    format!("{ASSIGNMENTS}/{worker}/{slice}")
}
