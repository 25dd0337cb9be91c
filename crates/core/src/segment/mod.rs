//! Segments: up to a hundred plain jobs in one znode.
//!
//! A *segment* is immutable. It holds the payloads of its members and everything that they share, and it represents only first
//! attempts. A member that needs more (another attempt, a cancel of its own, progress) is *extracted*: it gets a record, like a
//! job that was submitted alone. At any time a member is in one place:
//!
//! | place | znode | how it is read |
//! | --- | --- | --- |
//! | waiting | an entry in a slot of `/ready` | [`EntryName`]; without data it is the whole segment, otherwise a mask |
//! | assigned | a slice in a worker's inbox | [`Slice`]: given and not over |
//! | ended | a chunk below the segment | [`ChunkName`]: succeeded, cancelled or expired |
//! | extracted | a chunk `x` below the segment, and the record | the record; `x` takes precedence over an end |
//!
//! Every move is one transaction ([`crate::txn::segment`]) that sets or deletes the znode that the member leaves at the version
//! that was read. The names of entries and slices never occur twice, so versions do not alias. So two moves of one member cannot
//! both commit.
//!
//! A worker begins members in the order of their numbers, and only below the committed [`Slice::begun`]. A recovery requeues only
//! members at or above it, which have not run; those below get a record whose first attempt is closed. So a first attempt runs
//! once.

mod body;
mod chunk;
mod entry;
mod id;
mod members;
mod slice;

pub use body::{Head, Member, Pointer, Segment};
pub use chunk::{ChunkEnd, ChunkName, Results};
pub use entry::{EntryName, Nonce};
pub use id::{MemberId, SegmentId};
pub use members::{MAX_PACKED, MIN_PACKED, Members};
pub use slice::{Slice, SliceName};

/// Parses a number in a name: decimal digits without a sign or leading zeros.
fn number<T: std::str::FromStr + ToString>(digits: &str) -> Option<T> {
    digits.parse::<T>().ok().filter(|number| number.to_string() == digits)
}
