//! The names under `/ready`, where everything that waits for a worker has an entry.
//!
//! ```text
//!  /ready/{shard}/{class}/{slot}/{entry}
//! ```
//!
//! | part | meaning |
//! | --- | --- |
//! | shard | 16 of them, by a hash of the class: a list of classes stays small |
//! | [class](Class) | jobs that the same workers can take: kind, required tags, whether they have a lane |
//! | [slot](Slot) | a minute of the rank: the first slot of a class has its most urgent entries |
//! | entry | one job ([`RecordEntry`]), or a segment under the id `@{segment}` ([`SegmentId`](crate::segment::SegmentId)) |
//!
//! So a leader finds the most urgent entries of each class by names alone, without reading or holding the others.
//!
//! The path of a job's entry follows from its record ([`ReadyEntry`]): class and [`rank`] from what the job is and since when it
//! waits, and the slot's part from what its submission chose. Classes and slots are containers, which
//! [the driver](crate::txn::Parents) creates and ZooKeeper removes.

mod class;
mod entry;
mod place;
mod slot;

pub use class::{Class, ClassName, SHARDS, Shard};
pub use entry::RecordEntry;
pub use place::{ReadyEntry, Waiting};
pub use slot::{Rank, Slot, rank};

/// Parses a number in a name: decimal digits without leading zeros, after an optional minus sign.
pub(crate) fn number<T: std::str::FromStr + ToString>(digits: &str) -> Option<T> {
    digits.parse::<T>().ok().filter(|number| number.to_string() == digits)
}
